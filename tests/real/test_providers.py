# SPDX-License-Identifier: BSD-2-Clause
"""The two bundled providers and the bundled OS definition, for real."""

# ruff: noqa: ASYNC110, ASYNC220, ASYNC221, ASYNC230 - a test may block

import asyncio
import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from qemu.qmp import QMPClient

from moorage.errors import CommandFailed
from moorage.model import Disk
from moorage.node import oses
from moorage.node.commands import drive, run
from moorage.node.providers import Providers
from moorage.storage import Output, Site, Template, VolumeRequest, Where, template_named
from moorage.storage.provider import usable
from moorage.storage.uri import protocol_node
from moorage.units import Mib

pytestmark = pytest.mark.real

SHARE = Path(__file__).parents[2] / "share"
MIB = 1024 * 1024


@dataclass
class Storage:
    """A directory of images, and nodes that use it."""

    provider: str
    top: Path
    access: str = "kernelspace"
    serial: int = 0
    disks: list[Disk] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.top / "images").mkdir()
        (self.top / "log").mkdir()

    @property
    def images(self) -> Path:
        return self.top / "images"

    @property
    def run(self):
        return partial(run, log_dir=self.top / "log", timeout=60)

    def node(self, name: str) -> Template:
        providers = usable(Providers([SHARE / "extstorage"]).scan())
        return template_named("ext")(Site(node=name, providers=providers))

    def disk(self, epoch: int = 1, size: int = 16) -> Disk:
        ext = template_named("ext")
        params = {
            "provider": self.provider,
            "access": self.access,
            "dir": str(self.images),
            "run": str(self.top / "run"),
        }
        self.serial += 1
        unique = f"{self.top.name}-{self.serial}"
        disk = Disk(
            uuid=f"uuid-of-{unique}",
            dev_type="ext",
            logical_id=ext.logical_id(VolumeRequest(unique=unique, params=params)),
            size=Mib(size),
            params=ext.parameters(params),
            epoch=epoch,
        )
        self.disks.append(disk)
        return disk

    async def __call__(self, steps):
        return await drive(steps, self.run)

    def processes(self) -> list[int]:
        """The daemons that serve something below our directory."""
        found = []
        for one in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = one.read_bytes()
            except OSError:  # it ended meanwhile
                continue
            if b"qemu-storage-daemon" in line and str(self.top).encode() in line:
                found.append(int(one.parent.name))
        return found

    def loops(self) -> list[str]:
        told = subprocess.run(
            ["losetup", "--list", "--json", "--output", "NAME,BACK-FILE"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        devices = json.loads(told)["loopdevices"] if told.strip() else []
        return [
            one["name"]
            for one in devices
            if str(one["back-file"]).startswith(str(self.top))
        ]

    def clean(self) -> None:
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        for device in self.loops():
            subprocess.run(["losetup", "--detach", device], check=True)


def storage(provider: str, access: str = "kernelspace") -> Iterator[Storage]:
    top = Path(tempfile.mkdtemp(prefix="mrg", dir="/var/tmp"))
    made = Storage(provider, top, access)
    try:
        yield made
    finally:
        made.clean()
        shutil.rmtree(top)


@pytest.fixture
def qsd() -> Iterator[Storage]:
    yield from storage("qsd", "userspace")


@pytest.fixture
def loop() -> Iterator[Storage]:
    yield from storage("loop")


@pytest.fixture(params=["qsd", "loop"])
def either(request) -> Iterator[Storage]:
    access = {"qsd": "userspace", "loop": "kernelspace"}[request.param]
    yield from storage(request.param, access)


def reached(where: Where) -> str:
    return where.path or where.uris["kvm"]


def qemu_io(where: str, *commands: str) -> subprocess.CompletedProcess[str]:
    told = [word for one in commands for word in ("-c", one)]
    argv = ["qemu-io", "-f", "raw", *told, where]
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60)


def write(where: Where, pattern: int, at: str = "0", length: str = "1M") -> None:
    done = qemu_io(reached(where), f"write -P {pattern} {at} {length}", "flush")
    assert done.returncode == 0, done.stdout + done.stderr


def holds(where: Where, pattern: int, at: str = "0", length: str = "1M") -> bool:
    done = qemu_io(reached(where), f"read -P {pattern} {at} {length}")
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0


def size_of(where: str) -> int:
    argv = ["qemu-img", "info", "--output", "json", "-f", "raw", where]
    told = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return int(json.loads(told)["virtual-size"])


def left_over(made: Storage) -> list[str]:
    """What is still there of all volumes, besides logs and locks."""
    files = [one for one in made.top.rglob("*") if not one.is_dir()]
    names = [str(one.relative_to(made.top)) for one in files]
    kept = [
        name for name in names if not name.startswith("log/") and name != "run/lock"
    ]
    return [*kept, *map(str, made.processes()), *made.loops()]


@pytest.mark.requirement("S0-22", "S0-57", "S0-66")
def test_the_bundled_providers_are_valid() -> None:
    found = usable(Providers([SHARE / "extstorage"]).scan())
    assert {name: one.problem for name, one in found.items()} == {"loop": "", "qsd": ""}
    assert set(found["qsd"].parameters) == {"dir", "run", "direct"}
    assert found["qsd"].optional == ("snapshot", "open", "close")
    assert found["loop"].optional == ("snapshot",)


@pytest.mark.requirement(
    "S0-25", "S0-26", "S0-28", "S0-29", "S0-30", "S0-51", "S0-57", "S0-65"
)
async def test_a_whole_life_with_every_step_taken_twice(either: Storage) -> None:
    disk, node = either.disk(), either.node("n1")
    for _ in range(2):
        await either(node.create(disk))
        await either(node.setinfo(disk, "originstname+web1"))
    first = await either(node.attach(disk))
    await either(node.open(disk, exclusive=True))
    assert await either(node.attach(disk)) == first
    await either(node.open(disk, exclusive=True))
    assert len(either.processes()) + len(either.loops()) == 1
    assert size_of(reached(first)) == 16 * MIB
    write(first, 0xA5)
    for _ in range(2):
        await either(node.close(disk))
        await either(node.detach(disk))
    assert either.processes() == []
    assert either.loops() == []
    assert holds(await either(node.attach(disk)), 0xA5)
    info = Path(f"{either.images}/{disk.volume}.info")
    assert info.read_text() == "originstname+web1\n"
    await either(node.detach(disk))
    for _ in range(2):
        await either(node.remove(disk))
        await either(node.detach(disk))
    assert left_over(either) == []


@pytest.mark.requirement("S0-26", "S0-42")
async def test_remove_of_an_attached_volume_leaves_nothing(either: Storage) -> None:
    disk, node = either.disk(), either.node("n1")
    await either(node.create(disk))
    await either(node.attach(disk))
    await either(node.open(disk, exclusive=True))
    await either(node.remove(disk))
    assert left_over(either) == []


@pytest.mark.requirement("S0-25", "S0-50")
async def test_create_refuses_a_file_of_another_size(either: Storage) -> None:
    disk, node = either.disk(), either.node("n1")
    image = either.images / disk.volume
    image.write_bytes(b"precious")
    with pytest.raises(CommandFailed, match="exists with 8 bytes instead of 16777216"):
        await either(node.create(disk))
    assert image.read_bytes() == b"precious"


@pytest.mark.requirement("S0-52")
async def test_attach_of_no_volume_fails_with_what_the_script_said(
    either: Storage,
) -> None:
    with pytest.raises(CommandFailed) as caught:
        await either(either.node("n1").attach(either.disk()))
    assert caught.value.message.startswith(
        "External storage's attach script failed (exited with exit code 1), "
        "last lines of output:\n"
    )
    assert "there is no image" in caught.value.message
    assert left_over(either) == []


@pytest.mark.requirement("S0-27", "S0-40")
async def test_grow_keeps_the_data_and_old_connections(either: Storage) -> None:
    disk, node = either.disk(), either.node("n1")
    await either(node.create(disk))
    old = await either(node.attach(disk))
    await either(node.open(disk, exclusive=True))
    write(old, 0x11)
    with subprocess.Popen(
        ["qemu-io", "-f", "raw", reached(old)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as busy:  # a guest that holds the old connection
        assert busy.stdin
        assert busy.stdout
        for _ in range(2):
            await either(node.grow(disk, Mib(24)))
        new = await either(node.attach(disk))
        assert size_of(reached(new)) == 24 * MIB
        assert holds(new, 0x11)
        write(new, 0x22, "20M")
        busy.stdin.write("write -P 0x33 8M 1M\nflush\nquit\n")
        busy.stdin.close()
        assert "wrote 1048576/1048576" in busy.stdout.read()
    assert holds(new, 0x33, "8M")
    assert holds(new, 0x22, "20M")
    await either(node.grow(disk, Mib(20)))  # never smaller
    assert size_of(reached(await either(node.attach(disk)))) == 24 * MIB
    await either(node.detach(disk))
    await either(node.remove(disk))
    assert left_over(either) == []


async def test_a_snapshot_is_a_volume_of_its_own(either: Storage) -> None:
    disk, node = either.disk(), either.node("n1")
    await either(node.create(disk))
    where = await either(node.attach(disk))
    write(where, 0x42)
    for _ in range(2):
        await either(node.snapshot(disk, "copy.snap", Mib(20)))
    write(where, 0x43)
    identity = node.snapshot_id(disk, "copy.snap")
    copy = replace(disk, uuid="other", logical_id=identity, size=Mib(20))
    there = await either(node.attach(copy))
    assert size_of(reached(there)) == 20 * MIB
    assert holds(there, 0x42)
    for one in (copy, disk):
        await either(node.detach(one))
        await either(node.remove(one))
    assert left_over(either) == []


# -- qsd: the lease ------------------------------------------------------------------


async def stale(made: Storage, steps) -> str:
    with pytest.raises(CommandFailed) as caught:
        await made(steps)
    return caught.value.message


@pytest.mark.requirement("S0-49", "S0-55")
async def test_one_epoch_has_one_writer(qsd: Storage) -> None:
    disk, here, there = qsd.disk(epoch=3), qsd.node("n1"), qsd.node("n2")
    await qsd(here.create(disk))
    await qsd(here.attach(disk))
    await qsd(here.open(disk, exclusive=True))
    idle = await qsd(there.attach(disk))  # the URI, but nobody serves it
    assert len(qsd.processes()) == 1
    assert "Failed to connect" in qemu_io(reached(idle), "read 0 1M").stderr
    for exclusive in (True, False):
        told = await stale(qsd, there.open(disk, exclusive=exclusive))
        assert "is open (exclusive) on node n1 with epoch 3" in told
    assert len(qsd.processes()) == 1
    await qsd(here.close(disk))
    assert qsd.processes() == []
    await qsd(there.open(disk, exclusive=True))
    write(idle, 0x77)


@pytest.mark.requirement("S0-49", "S0-55", "S0-56")
async def test_a_migration_shares_the_volume_for_a_while(qsd: Storage) -> None:
    disk, here, there = qsd.disk(), qsd.node("n1"), qsd.node("n2")
    await qsd(here.create(disk))
    source = await qsd(here.attach(disk))
    await qsd(here.open(disk, exclusive=True))
    await qsd(here.open(disk, exclusive=False))
    target = await qsd(there.attach(disk))
    await qsd(there.open(disk, exclusive=False))
    assert source.uris != target.uris
    write(source, 0x51)
    assert holds(target, 0x51)
    told = await stale(qsd, there.open(disk, exclusive=True))
    assert "is open (shared) on node n1" in told
    await qsd(here.close(disk))
    await qsd(there.open(disk, exclusive=True))
    await qsd(here.detach(disk))
    write(target, 0x52)
    assert len(qsd.processes()) == 1


async def test_a_higher_epoch_fences_the_old_holder(qsd: Storage) -> None:
    disk, dead, here = qsd.disk(epoch=4), qsd.node("n1"), qsd.node("n2")
    await qsd(dead.create(disk))
    await qsd(dead.attach(disk))
    await qsd(dead.open(disk, exclusive=True))
    for pid in qsd.processes():  # the node loses power
        os.kill(pid, signal.SIGKILL)
    moved = replace(disk, epoch=5)
    where = await qsd(here.attach(moved))
    await qsd(here.open(moved, exclusive=True))
    write(where, 0x61)
    late = "with epoch 5: a step with epoch 4 comes too late"
    assert late in await stale(qsd, dead.open(disk, exclusive=True))
    assert late in await stale(qsd, dead.attach(disk))
    assert late in await stale(qsd, here.close(disk))
    assert late in await stale(qsd, here.detach(disk))
    await qsd(dead.detach(disk))  # clears up what the power loss left there
    assert holds(where, 0x61)


@pytest.mark.requirement("S0-66")
async def test_a_cluster_without_epochs_is_served(qsd: Storage) -> None:
    disk = qsd.disk()

    async def old(command):
        env = {k: v for k, v in command.env.items() if k != "VOL_EPOCH"}
        return await qsd.run(type(command)(command.argv, env=env, cwd=command.cwd))

    here, there = qsd.node("n1"), qsd.node("n2")
    await drive(here.create(disk), old)
    await drive(here.attach(disk), old)
    await drive(here.open(disk, exclusive=True), old)
    where = await drive(there.attach(disk), old)
    await drive(there.open(disk, exclusive=True), old)
    write(where, 0x71)


async def test_a_daemon_that_died_is_started_again(qsd: Storage) -> None:
    disk, node = qsd.disk(), qsd.node("n1")
    await qsd(node.create(disk))
    where = await qsd(node.attach(disk))
    (pid,) = qsd.processes()
    os.kill(pid, signal.SIGKILL)
    while qsd.processes():
        await asyncio.sleep(0.01)
    assert await qsd(node.attach(disk)) == where
    write(where, 0x10)


async def test_a_socket_path_that_is_too_long_is_named(qsd: Storage) -> None:
    disk = qsd.disk()
    node = qsd.node("n" * 80)
    await qsd(node.create(disk))
    told = await stale(qsd, node.attach(disk))
    assert "longer than 107 bytes: choose a shorter parameter 'run'" in told


# -- loop ----------------------------------------------------------------------------


@pytest.mark.requirement("S0-11", "S0-51", "S0-69")
async def test_two_nodes_of_one_machine_have_two_devices(loop: Storage) -> None:
    disk, here, there = loop.disk(), loop.node("n1"), loop.node("n2")
    await loop(here.create(disk))
    first, second = await loop(here.attach(disk)), await loop(there.attach(disk))
    assert first.block
    assert first.path != second.path
    assert first.uris == {"kvm": f"file:{loop.images}/{disk.volume}"}
    write(first, 0x81)
    assert holds(second, 0x81)
    await loop(here.grow(disk, Mib(32)))
    assert size_of(str(first.path)) == size_of(str(second.path)) == 32 * MIB
    await loop(here.detach(disk))
    assert loop.loops() == [second.path]


async def test_a_device_of_an_interrupted_run_is_taken_up(loop: Storage) -> None:
    disk, node = loop.disk(), loop.node("n1")
    await loop(node.create(disk))
    where = await loop(node.attach(disk))
    (record,) = (loop.top / "run").glob("n1/*")
    record.write_text("taking\n")  # killed between taking the device and noting it
    assert await loop(node.attach(disk)) == where
    record.write_text("taking\n")
    await loop(node.detach(disk))
    assert loop.loops() == []


def losetup(*words: str) -> str:
    argv = ["losetup", *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("how", [[], ["--read-only"], ["--offset", "4096"]])
async def test_a_device_of_somebody_elses_is_left_alone(
    loop: Storage, how: list[str]
) -> None:
    disk, node = loop.disk(), loop.node("n1")
    await loop(node.create(disk))
    image = str(loop.images / disk.volume)
    theirs = losetup("--find", "--show", *how, image).strip()
    where = await loop(node.attach(disk))
    assert where.path != theirs
    write(where, 0x21)
    await loop(node.detach(disk))
    assert loop.loops() == [theirs]


async def test_a_device_in_use_is_left_as_it_is(loop: Storage) -> None:
    """Nor is it marked to vanish later; a second attempt is refused as the first."""
    disk, node = loop.disk(), loop.node("n1")
    await loop(node.create(disk))
    where = await loop(node.attach(disk))
    with Path(str(where.path)).open("rb"):
        for _ in range(2):
            assert "is in use" in await stale(loop, node.detach(disk))
        told = losetup("--noheadings", "--output", "AUTOCLEAR", str(where.path))
        assert told.strip() == "0"
        assert await loop(node.attach(disk)) == where
    await loop(node.detach(disk))
    assert left_over(loop) == [f"images/{disk.volume}"]


async def test_a_device_that_is_marked_to_vanish_still_counts(loop: Storage) -> None:
    disk, node = loop.disk(), loop.node("n1")
    await loop(node.create(disk))
    where = await loop(node.attach(disk))
    with Path(str(where.path)).open("rb"):
        losetup("--detach", str(where.path))
        assert "is in use" in await stale(loop, node.detach(disk))
    await loop(node.detach(disk))
    assert left_over(loop) == [f"images/{disk.volume}"]


# -- both ----------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["qsd", "loop"])
async def test_any_character_may_be_in_a_path(provider: str) -> None:
    access = {"qsd": "userspace", "loop": "kernelspace"}[provider]
    odd = Path(tempfile.mkdtemp(prefix="m,r:g =%&+?;'", dir="/var/tmp"))
    (odd / "top").mkdir()
    made = Storage(provider, odd / "top", access)
    try:
        disk, node = made.disk(), made.node("n1")
        await made(node.create(disk))
        where = await made(node.attach(disk))
        drive = {"driver": "raw", "file": protocol_node(where.uris["kvm"])}
        done = qemu_io(f"json:{json.dumps(drive)}", "write -P 85 0 1M", "flush")
        assert done.returncode == 0, done.stdout + done.stderr
        assert (made.images / disk.volume).read_bytes()[:4] == b"UUUU"
        assert await made(node.attach(disk)) == where
        assert len(made.processes()) == (provider == "qsd")
        await made(node.detach(disk))
        assert left_over(made) == [f"images/{disk.volume}"]
    finally:
        made.clean()
        shutil.rmtree(odd)


@pytest.mark.parametrize("verb", ["snapshot", "setinfo", "open"])
async def test_what_is_renamed_is_on_the_disk_before(
    either: Storage, verb: str
) -> None:
    """A power cut leaves the old file or the new one, and no empty one."""
    if verb == "open" and either.provider == "loop":
        return
    disk, node = either.disk(), either.node("n1")
    await either(node.create(disk))
    tools, log = either.top / "tools", either.top / "log" / "tools"
    tools.mkdir()
    for tool in ("sync", "mv"):
        noted = f'echo {tool} "$@" >>{log}\nexec /bin/{tool} "$@"'
        (tools / tool).write_text(f"#!/bin/sh\n{noted}\n")
        (tools / tool).chmod(0o755)
    environ = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "VOL_NAME": disk.volume,
        "VOL_NODE": "n1",
        "VOL_EPOCH": "1",
        "VOL_METADATA": "web1",
        "VOL_SNAPSHOT_NAME": "copy.snap",
        "VOL_SNAPSHOT_SIZE": "16",
        "EXTP_DIR": str(either.images),
        "EXTP_RUN": str(either.top / "run"),
    }
    home = SHARE / "extstorage" / either.provider
    subprocess.run([f"./{verb}"], check=True, env=environ, cwd=home, timeout=120)
    lines = [line.split() for line in log.read_text().splitlines()]
    moves = [n for n, words in enumerate(lines) if words[0] == "mv"]
    assert moves
    for number in moves:
        moved = lines[number][-2]
        assert any(moved in words for words in lines[:number] if words[0] == "sync")
    shutil.rmtree(tools)
    await either(node.detach(disk))


# -- the OS definition ---------------------------------------------------------------


@pytest.mark.requirement("S0-65")
async def test_the_os_is_written_to_a_path_or_through_a_uri(either: Storage) -> None:
    disk, node = either.disk(), either.node("n1")
    await either(node.create(disk))
    where = await either(node.attach(disk))
    image = either.top / "system.raw"
    content = hashlib.sha256(b"boot").digest() * (3 * MIB // 32)
    image.write_bytes(content)
    install = oses.Install(
        instance="web1",
        os="tiny",
        disks=(oses.OsDisk(uuid=disk.uuid, size=disk.size, where=where),),
        osparams={"image": str(image)},
    )
    found = oses.usable(oses.scan([SHARE / "os"]))
    await oses.create(found, install, either.run)
    copy = either.top / "copy.raw"
    argv = ["qemu-img", "convert", "-f", "raw", "-O", "raw", reached(where), str(copy)]
    subprocess.run(argv, check=True, timeout=60)
    assert copy.read_bytes() == content + bytes(13 * MIB)
    (log,) = (either.top / "log").glob("create-tiny+default-web1-*.log")
    assert "writing" in log.read_text()


async def test_an_image_that_does_not_fit_is_refused(loop: Storage) -> None:
    target, image = loop.top / "disk.raw", loop.top / "system.raw"
    target.write_bytes(bytes(MIB))
    image.write_bytes(bytes(2 * MIB))
    install = oses.Install(
        instance="web1",
        os="tiny+default",
        disks=(oses.OsDisk(uuid="u", size=Mib(1), where=Where(path=str(target))),),
        osparams={"image": str(image)},
    )
    found = oses.usable(oses.scan([SHARE / "os"]))
    with pytest.raises(CommandFailed, match="holds 1048576 bytes") as caught:
        await oses.create(found, install, loop.run)
    assert caught.value.message.startswith("OS create script failed (exited with")


@pytest.mark.parametrize("action", ["verify", "rename"])
async def test_the_other_scripts_of_the_os_run(loop: Storage, action: str) -> None:
    found = oses.usable(oses.scan([SHARE / "os"]))
    command = oses.command(action, found, oses.Install(instance="web1", os="tiny"))
    assert await loop.run(command) == Output()


async def test_export_and_import_carry_the_data(either: Storage) -> None:
    disk, node = either.disk(size=4), either.node("n1")
    await either(node.create(disk))
    where = await either(node.attach(disk))
    write(where, 0x21)
    base = {"PATH": os.environ["PATH"], "INSTANCE_NAME": "web1"}
    key = "PATH" if where.path else "URI"
    dump = either.top / "dump"
    script = SHARE / "os/tiny/export"
    env = {**base, f"EXPORT_DISK_{key}": reached(where)}
    with dump.open("wb") as target:
        subprocess.run([script], check=True, env=env, cwd=script.parent, stdout=target)
    assert dump.read_bytes() == b"\x21" * MIB + bytes(3 * MIB)
    dump.write_bytes(b"\x22" * (4 * MIB))
    script = SHARE / "os/tiny/import"
    env = {**base, f"IMPORT_DISK_{key}": reached(where)}
    with dump.open("rb") as source:
        subprocess.run([script], check=True, env=env, cwd=script.parent, stdin=source)
    assert holds(where, 0x22, "0", "4M")


@pytest.mark.requirement("S0-27", "S0-65")
async def test_a_machine_moves_over_to_the_grown_volume(qsd: Storage) -> None:
    disk, node = qsd.disk(), qsd.node("n1")
    await qsd(node.create(disk))
    old = await qsd(node.attach(disk))
    write(old, 0x91)
    monitor = qsd.top / "qmp"
    argv = ["qemu-system-x86_64", "-machine", "pc,accel=tcg", "-nodefaults", "-S"]
    argv += ["-display", "none", "-m", "64", "-qmp", f"unix:{monitor},server,wait=off"]
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    machine = subprocess.Popen(argv, **quiet)
    client = QMPClient("machine")
    try:
        while not monitor.exists():
            await asyncio.sleep(0.02)
        await client.connect(str(monitor))
        await client.execute("blockdev-add", nbd("old", old))
        await client.execute("blockdev-add", raw("disk", "old"))
        guest = {"driver": "virtio-blk-pci", "drive": "disk", "id": "d0"}
        await client.execute("device_add", guest)
        await qsd(node.grow(disk, Mib(24)))
        new = await qsd(node.attach(disk))
        await client.execute("blockdev-add", nbd("new", new))
        await client.execute("blockdev-reopen", {"options": [raw("disk", "new")]})
        size = {"node-name": "disk", "size": 24 * MIB}
        await client.execute("block_resize", size)
        await client.execute("blockdev-del", {"node-name": "old"})
        (block,) = await client.execute("query-block")
        assert block["inserted"]["image"]["virtual-size"] == 24 * MIB
    finally:
        await client.disconnect()
        machine.kill()
        machine.wait()
    assert holds(new, 0x91)
    await qsd(node.detach(disk))
    assert qsd.processes() == []


def nbd(name: str, where: Where) -> dict[str, object]:
    path, _, export = where.uris["kvm"].removeprefix("nbd:unix:").partition(":")
    server = {"type": "unix", "path": path}
    export = export.removeprefix("exportname=")
    return {"driver": "nbd", "node-name": name, "server": server, "export": export}


def raw(name: str, below: str) -> dict[str, object]:
    return {"driver": "raw", "node-name": name, "file": below}
