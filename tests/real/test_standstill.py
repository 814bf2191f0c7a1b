# SPDX-License-Identifier: BSD-2-Clause
"""Real guests that QEMU stops: seen as what they are, woken, watched, and quiet."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec.structs import replace

from moorage.errors import Failed, Unreachable, WrongState
from moorage.node.hypervisors.base import Drive
from moorage.node.hypervisors.kvm import Kvm, consoles
from moorage.node.hypervisors.kvm.accelerator import Accelerators
from moorage.node.hypervisors.kvm.monitor import conversation
from moorage.storage import Where
from moorage.units import Mib
from support.qemu_pair import Lab

pytestmark = pytest.mark.real

BUILT = Path(__file__).parents[2] / ".build" / "guest"
PATIENCE = 120.0


@pytest.fixture
def small(lab: Lab) -> Iterator[Path]:
    """Return a file system of 24 MiB."""
    where = lab.top / f"small-{uuid4().hex[:6]}"
    where.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24M", "none", where], check=True
    )
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", where], check=True)


def image(where: Path) -> Drive:
    """Return a drive of 64 MiB, most of which is not there yet."""
    file = where / "image"
    with file.open("wb") as made:
        made.truncate(64 << 20)
    return Drive(disk=str(uuid4()), slot=0, size=Mib(64), where=Where(path=str(file)))


async def seen(lab: Lab, uuid: str) -> tuple[str, str]:
    found = await lab.one.find(uuid)
    return (found.state, found.cause) if found else ("", "")


async def until(lab: Lab, uuid: str, state: tuple[str, str]) -> None:
    async with asyncio.timeout(PATIENCE):
        while await seen(lab, uuid) != state:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def test_a_guest_without_room_says_so_and_goes_on_when_there_is(
    lab: Lab, small: Path
) -> None:
    drive = image(small)
    filler = small / "filler"
    filler.write_bytes(bytes(16 << 20))
    spec = lab.spec(drive)
    await lab.one.start(spec)
    async with lab.inside(lab.one, spec) as inside:
        await inside.wait_ready()
        device = await inside.disk(drive.disk)
        write = (
            f"dd if=/dev/zero of={device} bs=1M count=20 conv=fsync 2>&1; echo ended"
        )
        writing = asyncio.create_task(inside.run(write, 3 * PATIENCE))
        await until(lab, spec.uuid, ("paused", "io-error"))
        with pytest.raises(Failed, match=r"stands still \(io-error"):
            await lab.one.start(spec)
        filler.unlink()
        await lab.one.start(spec)
        assert await seen(lab, spec.uuid) == ("running", "")
        assert "ended" in await writing
    await lab.one.stop(spec.uuid, 0)


async def test_a_paused_guest_says_why_it_is_silent_and_is_woken(lab: Lab) -> None:
    spec = lab.spec()
    await lab.one.start(spec)
    async with lab.inside(lab.one, spec) as inside:
        await inside.wait_ready()
        async with conversation(lab.one._home(spec.uuid)) as monitor:
            await monitor.ask("stop")
        assert await seen(lab, spec.uuid) == ("paused", "paused")
        with pytest.raises(Unreachable) as caught:
            await inside.run("true", 1.0)
        assert "QEMU says paused" in caught.value.message
        assert "its console ends:" in caught.value.message
        await lab.one.start(spec)
        await inside.run("true")
        async with conversation(lab.one._home(spec.uuid)) as monitor:
            await monitor.ask("stop")
        await lab.one.reboot(spec.uuid)
        assert await seen(lab, spec.uuid) == ("running", "")
    await lab.one.stop(spec.uuid, 0)


async def test_a_guest_that_would_end_is_not_reset(lab: Lab) -> None:
    spec = lab.spec(reboot_behavior="exit")
    await lab.one.start(spec)
    with pytest.raises(WrongState, match="ends when it is reset") as refused:
        await lab.one.reboot(spec.uuid)
    assert refused.value.hint == f"gnt-instance reboot -t hard {spec.name}"
    assert await seen(lab, spec.uuid) == ("running", "")
    await lab.one.stop(spec.uuid, 0)


async def test_a_guest_is_started_paused_and_let_go(lab: Lab) -> None:
    spec = lab.spec()
    still = replace(spec, paused=True)
    await lab.one.start(still)
    assert await seen(lab, spec.uuid) == ("paused", "prelaunch")
    await lab.one.start(still)  # asked for again: it stays as it is
    assert await seen(lab, spec.uuid) == ("paused", "prelaunch")
    await lab.one.start(spec)
    async with lab.inside(lab.one, spec) as inside:
        await inside.wait_ready()
    await lab.one.stop(spec.uuid, 0)


async def test_a_guest_that_talks_without_end_does_not_fill_its_node(lab: Lab) -> None:
    spec = lab.spec()
    await lab.one.start(spec)
    log = lab.one._home(spec.uuid).file("consolelog")
    tending = asyncio.create_task(lab.one.tend())
    async with lab.inside(lab.one, spec) as inside:
        await inside.wait_ready()
        talk = "(while :; do cat /bin/busybox > /dev/ttyS0; done) >/dev/null 2>&1 &"
        await inside.run(talk)
        cut = 0
        async with asyncio.timeout(PATIENCE):
            before = 0
            while cut < 2:
                size = log.stat().st_size
                cut += size < before
                before = size
                await asyncio.sleep(0.2)
        await inside.run("true")
    tending.cancel()
    assert log.stat().st_size < 4 * consoles.LARGEST
    await lab.one.stop(spec.uuid, 0)


STUB = """#!{python}
import os, sys

words = sys.argv[1:]
if "-qmp" in words:  # a trial: a firmware runs, and no kernel is one that we know
    sys.exit(33 if "-bios" in words else 1)
if "kvm" in words:  # a guest: it comes up, and stands still
    place = words.index("kvm")
    words[place : place + 1] = ["tcg", "-S"]
    words[words.index("host")] = "max"
os.execv("{qemu}", ["qemu-system-x86_64", *words])
"""


async def test_the_first_guest_is_watched_where_no_kernel_could_be_tried(
    lab: Lab,
) -> None:
    """KVM stops it at once: it is started again, emulated, and so is the next one."""
    stub, device = lab.top / "stub", lab.top / "kvm"
    qemu = shutil.which("qemu-system-x86_64")
    stub.write_text(STUB.format(python=sys.executable, qemu=qemu))
    stub.chmod(0o755)
    device.touch()
    node = Kvm(lab.top / "watched", images=lab.images, program=str(stub))
    node._launcher.accelerators = Accelerators(lab.top / "verdicts", str(stub), device)
    own = {"security_model": "none"}  # only the agent's user comes to the stub
    first = replace(lab.spec(lab.drive("file")), hvparams=own)
    second = replace(lab.spec(lab.drive("file")), hvparams=own)
    try:
        for spec in (first, second):
            await node.start(spec)
            found = await node.find(spec.uuid)
            assert found
            assert (found.state, found.cause) == ("running", "")
        known = node.accelerator()
        assert known
        assert (known.name, known.proof) == ("tcg", "guest")
        assert known.reason == "QEMU stopped the first guest with prelaunch"
    finally:
        for spec in (first, second):
            await node.stop(spec.uuid, 0)
