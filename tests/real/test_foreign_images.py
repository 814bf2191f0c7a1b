# SPDX-License-Identifier: BSD-2-Clause
"""Images that somebody else wrote, with the real programs: what they can reach."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from moorage.errors import Failed
from moorage.model.uidpool import STANDARD
from moorage.node.extensions.providers import Providers
from moorage.node.local_host import LocalMachine
from moorage.node.machine.contents import Contents
from moorage.node.machine.images import Images
from moorage.storage import Command, Confined, Content

pytestmark = pytest.mark.real

ADD = (
    "gnt-instance add -t sharedfile --disk 0:size=4M --no-install --no-start --no-nics"
)
SECRET = b"secret-of-the-node-"


def folder(town: Any, name: str) -> Path:
    return Path(town.path / "export" / "node1" / name)


def image(town: Any, name: str) -> Path:
    (disk,) = town.disks(name)
    return Path(town.stage.disk(disk)["logical_id"][1])


def exported(town: Any) -> Path:
    """Make and export an instance; return its dump."""
    town.type(f"{ADD} -n node1 web1")
    image(town, "web1").write_bytes(os.urandom(4 << 20))
    town.type("gnt-backup export web1")
    return folder(town, "web1") / "disk0.qcow2"


def secret_file(where: Path) -> Path:
    """Return a file that root alone may read."""
    found = where / "secret"
    found.write_bytes(SECRET * 10000)
    found.chmod(0o600)
    return found


def qcow2(path: Path, *more: str, size: str = "4M") -> Path:
    """Make an image."""
    subprocess.check_call(
        ["qemu-img", "create", "-q", "-f", "qcow2", *more, path, size]
    )
    return path


def backed(path: Path, secret: Path) -> Path:
    return qcow2(path, "-F", "raw", "-b", str(secret))


def with_data_file(path: Path, secret: Path) -> Path:
    """Make an image whose data are in another file."""
    own = path.with_suffix(".data")
    found = qcow2(path, "-o", f"data_file={own},data_file_raw=on")
    own.unlink()
    own.symlink_to(secret)
    return found


@contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """Do something again and again."""
    over = Event()

    def again() -> None:
        while not over.is_set():
            with suppress(FileNotFoundError):
                work()

    thread = Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# -- through the door ------------------------------------------------------------------


def test_a_dump_that_is_swapped_all_the_time_is_whole_or_refused(quay: Any) -> None:
    dump = exported(quay)
    good = sha256(image(quay, "web1").read_bytes()).digest()
    evil = backed(quay.path / "evil.qcow2", secret_file(quay.path))
    honest = quay.path / "honest.qcow2"
    honest.write_bytes(dump.read_bytes())
    number = 0

    def swap() -> None:
        nonlocal number
        number += 1
        other = dump.with_suffix(".tmp")
        other.unlink(missing_ok=True)
        os.link((evil, honest)[number % 2], other)
        other.rename(dump)

    volumes = quay.stage.volumes()
    with meanwhile(swap):
        for one in range(6):
            quay.look(f"sh -c 'gnt-backup import --src-dir web1 new{one} || true'")
            if f"new{one}" not in quay.look("gnt-instance list -o name"):
                continue
            assert sha256(image(quay, f"new{one}").read_bytes()).digest() == good
    made = set(quay.stage.volumes()) - set(volumes)
    assert not any(SECRET in Path(one).read_bytes() for one in made)


def test_a_dump_that_is_written_to_while_it_is_copied_is_refused(quay: Any) -> None:
    """Even if it is put back: what was copied is not what was looked at."""
    dump = exported(quay)
    volumes = quay.stage.volumes()
    kept = dump.read_bytes()
    seen = list[int]()

    def scribble() -> None:
        if not copying(quay):
            return
        seen.append(1)
        with dump.open("r+b") as file:
            file.seek(len(kept) // 2)
            file.write(b"x" * 4096)
            file.seek(0)
            file.write(kept)

    with meanwhile(scribble):
        said = quay.refused("gnt-backup import --rate 2M --src-dir web1 web2")
    assert seen
    assert "written to while it was read" in said or "checksum" in said
    assert quay.stage.volumes() == volumes
    assert dump.read_bytes() == kept


@pytest.mark.parametrize("made", [backed, with_data_file])
def test_an_image_that_names_another_file_is_refused_before_qemu_sees_it(
    quay: Any, made: Callable[[Path, Path], Path]
) -> None:
    dump = exported(quay)
    dump.unlink()
    made(dump, secret_file(quay.path))
    at = dump.parent / "manifest.json"
    told = json.loads(at.read_text())
    told["dumps"][0] |= {
        "bytes": dump.stat().st_size,
        "sha256": sha256(dump.read_bytes()).hexdigest(),
    }
    at.write_text(json.dumps(told))
    volumes = quay.stage.volumes()
    assert "names another file" in quay.refused("gnt-backup import --src-dir web1 web2")
    assert quay.stage.volumes() == volumes


def test_a_huge_manifest_costs_its_node_nothing(quay: Any) -> None:
    at = exported(quay).parent / "manifest.json"
    at.write_text('{"name":"web1","cluster":"' + "x" * (100 << 20) + '"}')
    assert "larger than" in quay.refused("gnt-backup import --src-dir web1 web2")
    assert "larger than" in str(quay.ask("gnt-backup list -o export,state"))


# -- who reads them --------------------------------------------------------------------


def copying(town: Any) -> dict[str, dict[str, str]]:
    """Return what Linux says of the processes that copy images of a town, by name."""
    found = {}
    for at in Path("/proc").iterdir():
        with suppress(OSError):
            words = (at / "cmdline").read_bytes().split(b"\0")
            name = (at / "comm").read_text().strip()
            if name not in ("qemu-img", "qemu-system-x86"):
                continue
            ours = at.name in noted(town) and (b"convert" in words or b"none" in words)
            if ours:
                lines = (at / "status").read_text().splitlines()
                about = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
                net = str((at / "ns" / "net").readlink())
                root = " ".join(one.name for one in (at / "root").iterdir())
                found[name] = about | {"net": net, "root": root}
    return found


def noted(town: Any) -> set[str]:
    """Return the processes that the agents of a town noted."""
    found = set()
    for note in town.path.glob("node*/run/scripts/*"):
        with suppress(OSError, IndexError):
            found.add(note.read_text().partition("\n")[2].split()[0])
    return found


@pytest.mark.parametrize("way", ["import", "export"])
def test_who_reads_and_writes_dumps_has_no_rights(quay: Any, way: str) -> None:
    exported(quay)
    line = {
        "import": "gnt-backup import --rate 2M --src-dir web1 web2",
        "export": "gnt-backup export --rate 2M web1",
    }[way]
    seen = dict[str, dict[str, str]]()
    with meanwhile(lambda: seen.update(copying(quay))):
        quay.type(line)
    assert set(seen) == {"qemu-img", "qemu-system-x86"}
    for name, about in seen.items():
        (uid,) = set(about["Uid"].split())
        assert STANDARD[0][0] <= int(uid) <= STANDARD[0][1]
        for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(about[kind], 16) == 0
        assert about["NoNewPrivs"] == "1"
        assert about["Seccomp"] == ("2" if name == "qemu-system-x86" else "0")
        assert about["net"] != str(Path("/proc/self/ns/net").readlink())
        assert "root" not in about["root"].split()
        assert "proc" not in about["root"].split()


class Machine:
    """A machine with a directory of images."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.files = top / "images"
        self.files.mkdir(mode=0o700)
        listed = top / "listed"
        listed.write_text(f"{self.files}\n")
        images = Images("here", listed, [top / "state"])
        self.machine = LocalMachine(top / "log", Providers([]), [], images)
        self.machine.contents = Contents(top / "run")

    async def content(self, path: Path) -> bytes:
        """Return what a program gets of an image."""
        target = self.files / "copy"
        target.write_bytes(bytes(4 << 20))
        words = ("-f", "raw", "-O", "raw", "-n", str(path), str(target))
        contents = {
            str(path): Content("qcow2"),
            str(target): Content("raw", writes=True),
        }
        argv = ("qemu-img", "convert", *words)
        await self.machine.run(Command(argv, confined=Confined(contents, STANDARD)), 60)
        return target.read_bytes()


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("made", [backed, with_data_file])
async def test_qemu_follows_no_image_to_another_file(
    here: Machine, made: Callable[[Path, Path], Path]
) -> None:
    """As if the image had changed between the look at its header and its use.

    That everybody on the node may read the file is no reason to.
    """
    readable = Path("/etc/passwd")
    evil = made(here.files / "evil", readable)
    with suppress(Failed):
        assert readable.read_bytes()[:16] not in await here.content(evil)


async def test_noise_is_refused_in_a_sentence(here: Machine) -> None:
    noise = here.files / "noise"
    noise.write_bytes(b"QFI\xfb\0\0\0\3" + os.urandom(1 << 16))
    with pytest.raises(Failed, match="QEMU"):
        await here.content(noise)
    assert not list((here.top / "run").glob("[0-9]*"))
