# SPDX-License-Identifier: BSD-2-Clause
"""The OS definition ``image``: what it takes, fetches, keeps and tells cloud-init."""

import fcntl
import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request

import pytest
import yaml

from moorage.errors import BadInput, Failed, MoorageError, NotFound
from moorage.node.extensions.examples import share
from moorage.node.extensions.oses import look
from moorage.node.system_images import __main__ as scripts
from moorage.node.system_images import catalogue, keeping, seed
from moorage.node.system_images.catalogue import Source

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGLittr/Ok/GL9qjH2xhnHjCr7LBUzpNRlEGtCFRIk2T"
SHA = "0" * 128
ENV = {"INSTANCE_NAME": "web1.example.com", "INSTANCE_UUID": "u1", "NIC_COUNT": "0"}


def silent(_done: int, _total: int) -> None:
    """Hear nothing."""


# -- the catalogue --------------------------------------------------------------------


def test_the_definition_offers_a_variant_for_each_file() -> None:
    found = look(share() / "os" / "image")
    assert found.problem == ""
    assert found.variants == ("debian-12",)
    assert set(found.parameters) == {"ssh_key", "user_data", "dns"}
    assert catalogue.read(share() / "os/image/variants", "debian-12").remote


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('image = "http://x/y"', "needs sha512, or sums"),
        ('image = "y.qcow2"', "no path and no address"),
        ('image = "/y"\nformat = "vmdk"', "qcow2 or raw"),
        ('image = "/y"\nsums = "https://x/s"', "sums is for an image from an address"),
        ('image = "http://x/y"\nsums = "http://x/s"', "begins with https"),
        ('image = "http://x/y"\nsha512 = "00"', "128 hexadecimal digits"),
        (f'image = "/y"\nsha512 = "{SHA}"\nsha256 = "{SHA[64:]}"', "one is enough"),
        ('image = "/y"\nimages = "/z"', "unknown field"),
        ("image = ", "Invalid value"),
    ],
)
def test_a_file_that_names_no_image(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(BadInput, match=said):
        catalogue.read(tmp_path, "odd")


def test_a_file_that_an_editor_left_is_no_variant(tmp_path: Path) -> None:
    shutil.copytree(share() / "os" / "image", tmp_path / "image", symlinks=False)
    (tmp_path / "image/variants/.#x.toml").write_text("")
    assert look(tmp_path / "image").variants == ("debian-12",)


def test_a_file_that_others_may_write_or_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "open.toml").write_text('image = "/y"')
    (tmp_path / "open.toml").chmod(0o666)
    with pytest.raises(Failed, match="is not believed"):
        catalogue.read(tmp_path, "open")
    with pytest.raises(NotFound, match="there is no image 'none'"):
        catalogue.read(tmp_path, "none")


# -- fetched once, verified, kept -----------------------------------------------------


class Server(ThreadingHTTPServer):
    """Serves a directory, and counts."""

    asked = 0

    def finish_request(self, *given: object) -> None:
        self.asked += 1
        super().finish_request(*given)  # type: ignore[arg-type]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Server, str, Path]]:
    top = tmp_path / "served"
    top.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_words: object) -> None:
            """Say nothing."""

    server = Server(("127.0.0.1", 0), partial(Quiet, directory=str(top)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server, f"http://127.0.0.1:{server.server_port}", top
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_image_is_fetched_once_and_kept(served, tmp_path: Path) -> None:
    server, address, top = served
    content = b"x" * 3_000_000
    (top / "a.raw").write_bytes(content)
    digits = hashlib.sha512(content).hexdigest()
    source, told = Source(f"{address}/a.raw", sha512=digits), list[tuple[int, int]]()
    cache = tmp_path / "cache"
    for _ in range(2):
        with keeping.opened(source, cache, lambda *it: told.append(it)) as file:
            assert file.read() == content
    assert server.asked == 1
    assert told[-1] == (3_000_000, 3_000_000)
    assert cache.stat().st_mode & 0o077 == 0


def test_what_is_not_as_its_checksum_says_is_not_kept(served, tmp_path: Path) -> None:
    _, address, top = served
    (top / "a.raw").write_bytes(b"something else")
    cache = tmp_path / "cache"
    source = Source(f"{address}/a.raw", sha512=SHA)
    with pytest.raises(BadInput, match="is not the image that was meant"):
        keeping.opened(source, cache, silent)
    assert [path.suffix for path in cache.iterdir()] == [".lock"]
    with pytest.raises(Failed, match="File not found"):
        keeping.opened(Source(f"{address}/b.raw", sha512=SHA), cache, silent)
    with pytest.raises(Failed, match="refused"):
        keeping.opened(Source("http://127.0.0.1:1/a", sha512=SHA), cache, silent)


def test_what_a_fetch_left_that_was_killed_is_no_image(served, tmp_path: Path) -> None:
    _, address, top = served
    (top / "a.raw").write_bytes(b"all of it")
    digits = hashlib.sha512(b"all of it").hexdigest()
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    (cache / f"sha512-{digits}.part").write_bytes(b"all of it, and a part of another")
    with keeping.opened(
        Source(f"{address}/a.raw", sha512=digits), cache, silent
    ) as file:
        assert file.read() == b"all of it"


def test_what_killed_fetches_left_goes_with_the_next_one(
    served: Any, tmp_path: Path
) -> None:
    _, address, top = served
    (top / "a.raw").write_bytes(b"all of it")
    digits = hashlib.sha512(b"all of it").hexdigest()
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    for name in ("old", "held"):
        (cache / f"sha512-{name}.part").write_bytes(b"a part of it")
    with (cache / "sha512-held.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        keeping.opened(Source(f"{address}/a.raw", sha512=digits), cache, silent).close()
    assert [path.stem for path in cache.glob("*.part")] == ["sha512-held"]


def test_a_fetch_leaves_room_on_the_disk(
    served: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, address, top = served
    (top / "a.raw").write_bytes(b"all of it")
    digits = hashlib.sha512(b"all of it").hexdigest()
    monkeypatch.setattr(keeping, "_RESERVE", 1 << 60)  # no disk has as much
    with pytest.raises(Failed, match="is not kept: it needs 1 MiB more in"):
        keeping.opened(
            Source(f"{address}/a.raw", sha512=digits), tmp_path / "cache", silent
        )
    assert not [*(tmp_path / "cache").glob("*.part")]


def test_a_list_of_checksums_is_followed_over_https_alone() -> None:
    asked, follow = Request("https://a.example/sums"), keeping.HttpsAlone()
    given: tuple[Any, ...] = (asked, None, 302, "Found", {})
    assert follow.redirect_request(*given, "https://b.example/sums")
    with pytest.raises(Failed, match="leads to an address that is not https"):
        follow.redirect_request(*given, "http://b.example/sums")


def test_a_file_of_the_node_is_opened_over_no_link(tmp_path: Path) -> None:
    (tmp_path / "a.raw").write_bytes(b"a")
    (tmp_path / "link.raw").symlink_to(tmp_path / "a.raw")
    with keeping.opened(Source(f"{tmp_path}/a.raw"), tmp_path / "c", silent) as file:
        assert file.read() == b"a"
    for name, why in (
        ("link.raw", "symbolic link"),
        (".", "regular"),
        ("b", "No such"),
    ):
        with pytest.raises(Failed, match=why):
            keeping.opened(Source(f"{tmp_path}/{name}"), tmp_path / "c", silent)
    checked = Source(f"{tmp_path}/link.raw", sha512=SHA)
    with pytest.raises(Failed, match="symbolic link"):
        keeping.opened(checked, tmp_path / "c", silent)


# -- what cloud-init is told ----------------------------------------------------------


def network(**more: str) -> list[dict[str, object]]:
    nic = {f"NIC_0_{key}": value for key, value in more.items() if key.isupper()}
    dns = {"OSP_DNS": more["dns"]} if "dns" in more else {}
    env = {**ENV, "NIC_COUNT": "1", "NIC_0_MAC": "AA:00:00:00:00:01", **nic, **dns}
    (card,) = json.loads(seed.files(env)["network-config"])["config"]
    assert (card["name"], card["mac_address"]) == ("eth0", "aa:00:00:00:00:01")
    return list(card["subnets"])


def test_name_and_keys() -> None:
    found = seed.files(
        {**ENV, "OSP_SSH_KEY": f"{KEY} a@b\n\n  ssh-rsa {rsa()}\n"},
    )
    assert json.loads(found["meta-data"]) == {
        "instance-id": "u1",
        "local-hostname": "web1.example.com",
        "public-keys": [f"{KEY} a@b", f"ssh-rsa {rsa()}"],
    }
    assert found["user-data"].startswith("#cloud-config\n")
    assert json.loads(found["network-config"]) == {"config": "disabled"}


def test_any_comment_of_a_key_is_one_for_yaml() -> None:
    for odd in ("\U0001f600", "\x7f", "\x9f", "\ufeff", "é"):
        found = seed.files({**ENV, "OSP_SSH_KEY": f"{KEY} a{odd}b"})["meta-data"]
        for read in (json.loads, yaml.safe_load):
            keys = read(found)["public-keys"]
            assert "".join(keys).endswith(f" a{odd}b"), ascii(odd)


def rsa() -> str:
    return "AAAAB3NzaC1yc2EAAAADAQABAAABgQC9r1pmf9khNdpKNTg9"


def test_addresses_are_those_on_record() -> None:
    lan = {"NETWORK_SUBNET": "192.0.2.0/28", "NETWORK_GATEWAY": "192.0.2.14"}
    assert network() == [{"type": "dhcp"}]
    assert network(IP="192.0.2.3") == [{"type": "dhcp"}]
    assert network(IP="192.0.2.3", **lan) == [
        {"type": "static", "address": "192.0.2.3/28", "gateway": "192.0.2.14"}
    ]
    six = {"NETWORK_SUBNET6": "2001:db8::/64", "NETWORK_GATEWAY6": "2001:db8::1"}
    assert network(IP="2001:db8::7", dns="2001:db8::2", **lan, **six) == [
        {
            "type": "static6",
            "address": "2001:db8::7/64",
            "gateway": "2001:db8::1",
            "dns_nameservers": ["2001:db8::2"],
        }
    ]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SSH_KEY", "/root/.ssh/id_ed25519.pub", "ssh_key is no public key"),
        ("SSH_KEY", f'command="x" {KEY}', "ssh_key is no public key"),
        ("SSH_KEY", KEY.replace("ed25519 ", "rsa "), "ssh_key is no public key"),
        ("SSH_KEY", f"{KEY}\n{KEY[:-9]}!", "line 2 of ssh_key"),
        ("SSH_KEY", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3", "a private key"),
        ("SSH_KEY", f"{KEY}\n" * 101, "100 are enough"),
        ("USER_DATA", "/etc/shadow", "begins with no line that cloud-init knows"),
        ("USER_DATA", "#!" + "x" * 100_000, "more than 96 KiB"),
        ("DNS", "ns1.example.com", "no list of addresses"),
        ("DNS", "192.0.2.1 " * 9, "8 are enough"),
    ],
)
def test_a_parameter_that_is_refused(name: str, value: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        seed.check({**ENV, f"OSP_{name}": value})


def test_no_value_of_a_parameter_is_a_crash() -> None:
    for value in ("", "\n", "\x7f", "ssh-rsa AAAA", "#", "é" * 100, "::", "a b c"):
        for name in ("SSH_KEY", "USER_DATA", "DNS"):
            with suppress(MoorageError):
                seed.check({**ENV, f"OSP_{name}": value})


# -- its scripts -----------------------------------------------------------------------


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Stand where the scripts do, with a disk and an image ``one``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "variants").mkdir()
    (tmp_path / "one.raw").write_bytes(bytes(1 << 20))
    (tmp_path / "variants/one.toml").write_text(f'image = "{tmp_path}/one.raw"')
    (tmp_path / "disk").write_bytes(b"precious" * 500_000)
    given = {"DISK_COUNT": "1", "DISK_0_PATH": str(tmp_path / "disk")}
    more = {"OS_CACHE": str(tmp_path / "cache"), "OS_UID_POOL": "[]"}
    return {**ENV, **given, **more, "OS_VARIANT": "one"}


@pytest.mark.parametrize(
    ("path", "access", "said"),
    [
        ("/nowhere", "rw", "mformat is missing"),
        ("", "ro", "the first disk is read only"),
        ("", "rw", "has no partition table"),
    ],
)
def test_nothing_is_written_before_what_can_be_known(
    env: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    access: str,
    said: str,
) -> None:
    before = Path("disk").read_bytes()
    if path:
        monkeypatch.setenv("PATH", path)
    with pytest.raises(MoorageError, match=said):
        scripts.create({**env, "DISK_0_ACCESS": access})
    assert Path("disk").read_bytes() == before


def test_what_create_would_refuse_is_refused_before(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts.verify(env)
    Path("one.raw").rename("two.raw")
    with pytest.raises(BadInput, match="there is no image"):
        scripts.verify(env)
    Path("one.raw").symlink_to("two.raw")
    with pytest.raises(Failed, match="symbolic link"):
        scripts.verify(env)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Failed, match="mformat is missing"):
        scripts.verify(env)
