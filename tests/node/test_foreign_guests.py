# SPDX-License-Identifier: BSD-2-Clause
"""Processes of Ganeti's are found by their pid files, whatever they say themselves."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moorage.errors import Failed, WrongState
from moorage.node.hypervisors.base import GuestSpec
from moorage.node.hypervisors.kvm import Kvm, adopting
from moorage.node.hypervisors.kvm.adopting import Ganetis
from moorage.testing.foreign import until
from moorage.units import Mib

UUID = "0a1b2c3d-0000-4000-8000-000000000000"
Begin = Callable[..., int]


@pytest.fixture
def kvm(tmp_path: Path) -> Kvm:
    (tmp_path / "ganeti" / "pid").mkdir(parents=True)
    found = Kvm(tmp_path / "run")
    found.run_dir.mkdir()
    found.ganetis = Ganetis(tmp_path / "ganeti", found.run_dir)
    return found


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Start what stands for a guest: a process with the words that tell it apart."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, name: str = "web1", pid_file: str = "") -> int:
        file = tmp_path / "ganeti" / "pid" / name
        sleeps = [sys.executable, "-c", "import time; time.sleep(60)"]
        more = ["-name", name, "-pidfile", pid_file or str(file), *words]
        started.append(subprocess.Popen([*sleeps, *more]))
        pid = started[-1].pid
        words_of = Path(f"/proc/{pid}/cmdline")
        until(lambda: bool(words_of.read_bytes()), "it has no command line")
        file.write_text(f"{pid}\n")
        return pid

    yield start
    for one in started:
        one.kill()
        one.wait()


def spec(uuid: str = UUID) -> GuestSpec:
    return GuestSpec(uuid=uuid, name="web1", memory=Mib(64))


async def test_it_is_seen_and_gets_no_orders_though_its_monitor_is_silent(
    kvm: Kvm, begin: Begin
) -> None:
    pid = begin("-uuid", UUID)
    (told,) = await kvm.foreign()
    assert (told.uuid, told.name, told.pid) == (UUID, "web1", pid)
    assert "monitor gives no answer" in told.monitor
    (seen,) = await kvm.guests()
    assert (seen.state, seen.origin) == ("running", "foreign")
    for order in (
        kvm.start(spec()),
        kvm.stop(UUID, 0),
        kvm.reboot(UUID),
        kvm.incoming(spec()),
        kvm.unplug(UUID, "disk"),
    ):
        with pytest.raises(WrongState, match=rf"that Ganeti started \({pid}\)"):
            await order
    assert (await kvm.foreign())[0].pid == pid


@pytest.mark.parametrize(
    ("drive", "afar"),
    [
        ("file=rbd:pool/image:id=admin,format=raw,if=none", ("rbd",)),
        ("file=gluster+unix:///gv0/disk?socket=/run/s,format=raw", ("gluster",)),
        ("file=gluster://h:24007/gv0/disk,format=raw", ("gluster",)),
        ("file=/dev/rbd0,format=raw", ()),
        ("file=/srv/rbd:x,format=raw", ()),
    ],
)
async def test_what_it_reaches_by_itself_is_told(
    kvm: Kvm, begin: Begin, drive: str, afar: tuple[str, ...]
) -> None:
    begin("-uuid", UUID, "-drive", drive)
    (told,) = await kvm.foreign()
    assert told.afar == afar


async def test_one_that_cannot_be_asked_is_not_ended(kvm: Kvm, begin: Begin) -> None:
    pid = begin("-uuid", UUID)
    kvm.ganetis.patience = 0.2
    with pytest.raises(Failed, match="monitor of guest web1 gave no answer"):
        await kvm.end_foreign(UUID, "web1", 1.0)
    assert (await kvm.foreign())[0].pid == pid


async def test_one_that_was_asked_and_says_no_more_is_waited_for(
    kvm: Kvm, begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its monitor takes the button, and is never heard again."""
    heard: list[str] = []

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if "system_powerdown" not in heard:
            writer.write(b'{"QMP": {"version": {}, "capabilities": []}}\n')
            while request := await reader.read(1 << 16):
                asked = json.loads(request)  # one at a time, and without a newline
                heard.append(asked["execute"])
                told = {"status": "running"} if heard[-1] == "query-status" else {}
                said = asked | {"return": told}
                del said["execute"]
                writer.write(json.dumps(said).encode() + b"\n")
        writer.close()

    monkeypatch.setattr(adopting, "_BUTTON", 0.1)
    kvm.ganetis.patience = 0.5
    pid = begin("-uuid", UUID)
    (tmp_path / "ganeti" / "ctrl").mkdir()
    place = tmp_path / "ganeti" / "ctrl" / "web1.qmp"
    async with await asyncio.start_unix_server(answer, place):
        with pytest.raises(Failed, match="was asked to power off, and its process"):
            await kvm.end_foreign(UUID, "web1", 2.0)
    assert heard[-1] == "system_powerdown"
    assert (await kvm.foreign())[0].pid == pid


@pytest.mark.parametrize("word", ["", "../../etc"])
async def test_one_that_says_no_uuid_may_be_any(
    kvm: Kvm, begin: Begin, word: str
) -> None:
    begin(*(("-uuid", word) if word else ()))
    (told,) = await kvm.foreign()
    assert told.uuid == ""
    with pytest.raises(Failed, match="nobody can tell which instance it is"):
        await kvm.find(UUID)
    with pytest.raises(WrongState, match="that Ganeti started"):
        await kvm.start(spec())


async def test_a_pid_file_of_another_process_is_nothing(
    kvm: Kvm, begin: Begin, tmp_path: Path
) -> None:
    """Its process ended, and the number was given to somebody else."""
    begin("-uuid", UUID, pid_file=str(tmp_path / "other"))
    (tmp_path / "ganeti" / "pid" / "odd").write_text("no number")
    assert await kvm.foreign() == []
    assert await kvm.find(UUID) is None


HALF_DEAD = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).syscall(60, 0)  # exit: of this thread alone
"""


def test_one_whose_first_thread_has_ended_may_still_write(
    kvm: Kvm, tmp_path: Path
) -> None:
    """So does QEMU end: its disks are open until its last thread is gone."""
    file = tmp_path / "ganeti" / "pid" / "web1"
    words = ["-name", "web1", "-pidfile", str(file), "-uuid", UUID]
    with subprocess.Popen([sys.executable, "-c", HALF_DEAD, *words]) as process:
        try:
            status = Path(f"/proc/{process.pid}/status")
            until(lambda: "State:\tZ" in status.read_text(), "it does not end")
            file.write_text(f"{process.pid}\n")
            with pytest.raises(Failed, match="nobody can tell which instance it is"):
                kvm.ganetis.find(UUID)
        finally:
            process.kill()
    assert kvm.ganetis.find(UUID) is None


async def test_who_cannot_be_asked_is_not_taken_over(kvm: Kvm, begin: Begin) -> None:
    pid = begin("-uuid", UUID)
    kvm.ganetis.patience = 0.2
    with pytest.raises(Failed, match="monitor of guest web1 gave no answer"):
        await kvm.adopt(spec())
    found = await kvm.find(UUID)
    assert found
    assert found.origin == "foreign"
    assert list(kvm.run_dir.iterdir()) == []
    assert (await kvm.foreign())[0].pid == pid
