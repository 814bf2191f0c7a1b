# SPDX-License-Identifier: BSD-2-Clause
"""What a power cut leaves: whole files; and what is met where one was torn before."""

import logging
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage import durable
from moorage.daemons.agent import Settings, read_settings, write_settings
from moorage.daemons.paths import NodePlaces
from moorage.errors import BadInput, Failed, Stale
from moorage.model import Disk, Held
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.doors import enrolment
from moorage.node.records.attachments import Attachments
from moorage.node.records.creations import Creations
from moorage.node.records.fence import Fence
from moorage.storage import Where
from moorage.units import Mib

DISK = Disk(
    uuid="d1",
    name="data",
    dev_type="ext",
    logical_id=("san", "vol1"),
    size=Mib(64),
    epoch=3,
)


class Disc:
    """What is on the disk for sure: told by watching what is synced, and when.

    Attributes
    ----------
    kept
        The files by path, with the content that a power cut would leave.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kept: dict[Path, bytes] = {}
        self._data: dict[int, bytes] = {}
        monkeypatch.setattr(durable.os, "fsync", self._synced)

    def _synced(self, handle: int) -> None:
        found = Path(f"/proc/self/fd/{handle}").readlink()
        if found.is_file():
            self._data[found.stat().st_ino] = found.read_bytes()
            return
        for path in found.iterdir():
            if path.is_file():
                self.kept[path] = self._data.get(path.stat().st_ino, b"")

    def missing(self, top: Path) -> list[str]:
        """Return the files that a cut would take, empty or leave as they were."""
        files = [path for path in top.rglob("*") if path.is_file()]
        return [p.name for p in files if self.kept.get(p) != p.read_bytes()]


def fence(top: Path) -> None:
    Fence(top / "fence").pass_term(3)
    Fence(top / "fence").pass_disk(DISK)
    Fence(top / "fence").pass_disk(replace(DISK, epoch=4))


def held(top: Path) -> None:
    shelf = Attachments(top / "held")
    shelf.put(DISK, Where(path="/dev/x"))
    shelf.use("d1", "kvm", "g1")


def makings(top: Path) -> None:
    made = Creations(top / "makings")
    made.begin(DISK, of=DISK, before=None)
    made.end(DISK, "made")


def authority(top: Path) -> None:
    durable.make(top / "keys")
    Authority.make(top / "keys", "one")


def settings(top: Path) -> None:
    write_settings(NodePlaces(top / "node"), Settings(port=7))


@pytest.mark.parametrize("write", [fence, held, makings, authority, settings])
def test_what_was_written_survives_a_power_cut(
    write: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disc = Disc(monkeypatch)
    write(tmp_path)
    assert len(disc.kept) > 0
    assert disc.missing(tmp_path) == []


def test_the_data_is_on_the_disk_before_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = []

    def synced(handle: int) -> None:
        kind = "data" if Path(f"/proc/self/fd/{handle}").is_file() else "name"
        order.append((kind, (tmp_path / "x").exists()))

    monkeypatch.setattr(durable.os, "fsync", synced)
    durable.write(tmp_path / "x", b"1")
    assert order == [("data", False), ("name", True)]


def test_new_directories_are_on_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr(durable, "sync", synced.append)
    durable.make(tmp_path / "a/b")
    durable.make(tmp_path / "a/b")
    assert synced == [tmp_path, tmp_path / "a"]


def test_a_leader_of_the_past_does_not_make_room_for_another_one(
    tmp_path: Path,
) -> None:
    fence = Fence(tmp_path)
    fence.pass_leader(8, "first")
    with pytest.raises(Stale, match="term 7 is over"):
        fence.pass_leader(7, "former")
    with pytest.raises(Stale, match="another master of term 8") as caught:
        fence.pass_leader(8, "second")
    assert caught.value.hint == "moorage master stop"
    fence.pass_leader(8, "first")


def test_a_step_that_brings_no_higher_number_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every step would wait for the disk, and no epoch would ever be old."""
    fence(tmp_path)
    Fence(tmp_path / "fence").pass_leader(3, "mark")
    monkeypatch.setattr(durable.os, "fsync", lambda _: pytest.fail("it has written"))
    again = Fence(tmp_path / "fence")
    again.pass_term(3)
    again.pass_leader(3, "mark")
    again.pass_disk(replace(DISK, epoch=4))


@pytest.mark.parametrize("torn", [b"", b"\n", b"1", b"zz\n", b"\xff\n", b"-1\n"])
def test_a_fence_that_cannot_be_read_is_no_lower_one(
    torn: bytes, tmp_path: Path
) -> None:
    for name, sure, step in (
        (
            "term",
            "no other master of the cluster is left",
            lambda: Fence(tmp_path).pass_term(12),
        ),
        (
            "term",
            "no other master of the cluster is left",
            lambda: Fence(tmp_path).promise_term(12),
        ),
        (
            "disk-d1",
            "no other node uses disk data",
            lambda: Fence(tmp_path).pass_disk(replace(DISK, epoch=12)),
        ),
    ):
        (tmp_path / name).write_bytes(torn)
        with pytest.raises(Failed, match=f"the fence {tmp_path}/{name} cannot be") as c:
            step()
        way_out = f"make sure that {sure}; then, on the node: rm {tmp_path}/{name}"
        assert c.value.hint == way_out
        (tmp_path / name).unlink()
        step()
    with pytest.raises(Stale):
        Fence(tmp_path).pass_term(11)


@pytest.mark.parametrize("torn", [b"", b"{", b'{"epoch":1}', b"\xff"])
def test_a_held_disk_that_cannot_be_read_is_not_held(
    torn: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shelf = Attachments(tmp_path)
    shelf.put(DISK, Where(path="/dev/x"))
    (tmp_path / "d1").write_bytes(torn)
    with caplog.at_level(logging.WARNING):
        assert (shelf.all(), shelf.get("d1"), shelf.users("d1")) == ([], None, ())
    assert "disk d1 here cannot be read" in caplog.text
    shelf.put(DISK, Where(path="/dev/x"))
    assert [one.disk for one in shelf.all()] == ["d1"]


NOTED = {
    "fence/term": b"3\n",
    "fence/leader": b"3 mark\n",
    "fence/disk-d1": b"4\n",
    "held/d1": b'{"epoch":3,"where":{"path":"/dev/x","block":false,"uris":{"kvm":"u"}},'
    b'"users":[["kvm","g1"]],"lent":["kvm","g2"],"boot":"b1"}',
    "makings/volume-2dbb780646a5e35a94afa7d4e82bd5f1": b'{"disk":"d1",'
    b'"volume":["ext","san","vol1"],"copy":false,"before":null,"came":"made"}',
}
"""What an agent leaves, by file."""


def test_a_later_agent_finds_what_an_earlier_one_noted(tmp_path: Path) -> None:
    """Were a file called otherwise, a step of the past would pass its fence."""
    for name, data in NOTED.items():
        durable.write(tmp_path / name, data)
    fence = Fence(tmp_path / "fence")
    assert fence.term == 3
    with pytest.raises(Stale, match="another master of term 3"):
        fence.pass_leader(3, "other")
    with pytest.raises(Stale, match="is at epoch 4"):
        fence.pass_disk(DISK)
    shelf = Attachments(tmp_path / "held", "b1")
    assert shelf.all() == [Held(disk="d1", path="/dev/x", uris={"kvm": "u"}, epoch=3)]
    assert (shelf.users("d1"), shelf.borrower("d1")) == (
        (("kvm", "g1"),),
        ("kvm", "g2"),
    )
    made = Creations(tmp_path / "makings").of(DISK)
    assert made
    assert (made.disk, made.came) == ("d1", "made")


def test_a_draft_that_a_crash_left_counts_for_nothing(tmp_path: Path) -> None:
    """It may be whole, and its rename alone be missing."""
    fence(tmp_path)
    held(tmp_path)
    makings(tmp_path)
    for path in [one for one in tmp_path.rglob("*") if one.is_file()]:
        whole = path.read_bytes().replace(b"d1", b"d2")
        path.with_name(f".{path.name}2").write_bytes(whole)
    assert [one.disk for one in Attachments(tmp_path / "held", "b1").all()] == ["d1"]
    assert Fence(tmp_path / "fence").old(math.inf) == {"d1"}
    assert Creations(tmp_path / "makings").old(math.inf) == {"d1"}


@pytest.mark.parametrize("name", ["ca.key", "ca.pem", "master.pem"])
@pytest.mark.parametrize("torn", [b"", b"-----BEGIN"])
def test_keys_of_a_cluster_that_cannot_be_read(
    name: str, torn: bytes, tmp_path: Path
) -> None:
    Authority.make(tmp_path, "one")
    (tmp_path / name).write_bytes(torn)
    with pytest.raises(Failed, match=f"keys in {tmp_path} cannot be read") as caught:
        Authority(tmp_path).asking()
    assert "\n" not in caught.value.message
    assert (name in caught.value.message) == (not torn)


@pytest.mark.parametrize("name", ["ca.pem", "node.key", "node.pem", "name"])
def test_keys_of_a_node_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    authority(tmp_path)
    key = tls.new_key()
    found = Authority(tmp_path / "keys")
    signed = found.sign_node(tls.self_signed(key, "n"), "n")
    at = tmp_path / "node"
    at.mkdir()
    for file, data in {
        "node.key": tls.key_pem(key),
        "node.pem": tls.pem(signed),
        "ca.pem": tls.pem(found.certificate),
        "name": b"n",
    }.items():
        durable.write(at / file, data)
    assert enrolment.name(at) == "n"
    tls.serving(at)
    (at / name).write_bytes(b"")
    read = enrolment.name if name == "name" else tls.serving
    with pytest.raises(Failed) as caught:
        read(at)
    assert str(at) in caught.value.message
    assert caught.value.hint.startswith(f"rm {at}/*; start the agent; then: gnt-node")


def test_settings_that_cannot_be_read(tmp_path: Path) -> None:
    settings(tmp_path)
    places = NodePlaces(tmp_path / "node")
    assert read_settings(places).port == 7
    places.settings.write_bytes(b"")
    with pytest.raises(BadInput, match="does not hold settings"):
        read_settings(places)


def test_a_directory_that_is_gone_is_made_again(tmp_path: Path) -> None:
    """A node that leaves forgets its fences; a last question may be under way."""
    path = tmp_path / "fence" / "term"
    durable.write(path, b"1\n")
    shutil.rmtree(path.parent)
    durable.write(path, b"2\n")
    assert path.read_bytes() == b"2\n"
