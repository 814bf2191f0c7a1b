# SPDX-License-Identifier: BSD-2-Clause
"""Guests that Ganeti started are taken over as they run: real QEMU, no cluster."""

import asyncio
import json
import logging
import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec.structs import replace
from qemu.qmp import QMPClient

from moorage.errors import Failed, WrongState
from moorage.node.hypervisors.base import Drive, GuestSpec
from moorage.node.hypervisors.kvm.adopting import Ganetis
from moorage.protocol import Door
from moorage.storage import Where
from moorage.testing.foreign import until
from moorage.testing.guest import Guest
from moorage.units import Mib
from support.qemu_pair import ARGUMENTS, Lab

pytestmark = pytest.mark.real

LOG = logging.getLogger(__name__)
BUILT = Path(__file__).parents[2] / ".build" / "guest"
WRITER = """mke2fs -q {0} >/dev/null && mount -t ext4 {0} /mnt && cd /
    (i=0; while [ ! -e /stop ]; do i=$((i+1)); echo $i >> /mnt/log; sync
    cut -d' ' -f1 /proc/uptime >> /mnt/times; usleep 5000; done) \\
    </dev/null >/dev/null 2>&1 &"""
ENOUGH = "until [ $(wc -l < /mnt/log) -gt {0} ]; do usleep 100000; done"
CHECK = """touch /stop; usleep 300000; n=$(wc -l < /mnt/log)
    seq 1 $n | cmp - /mnt/log && echo $n"""
ANSWERED = "until [ $(grep -c ttl /pings) -gt {0} ]; do usleep 100000; done"
GAP = "awk 'NR>1&&$1-p>m{m=$1-p}{p=$1}END{print m}' /mnt/times"


class Old:
    """What Ganeti keeps in a directory, and the guests that it starts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.started: list[subprocess.Popen[bytes]] = []
        for name in ("pid", "ctrl"):
            (directory / name).mkdir(parents=True)

    def at(self, name: str, kind: str) -> Path:
        return self.directory / "ctrl" / f"{name}.{kind}"

    def start(
        self,
        spec: GuestSpec,
        *more: Path,
        channel: Path,
        words: Sequence[str] = (),
        by: Sequence[str] = (),
    ) -> int:
        """Start a guest with a command line as Ganeti's; return its process."""
        name = spec.name
        pid_file = self.directory / "pid" / name
        sockets = {
            kind: f"unix:{self.at(name, kind)},server=on,wait=off"
            for kind in ("monitor", "qmp", "kvmd", "serial")
        }
        disks = [drive.where.path for drive in spec.drives] + [str(one) for one in more]
        argv = [
            *by,
            *("qemu-system-x86_64", "-name", name, "-m", "128", "-smp", "1"),
            *("-pidfile", str(pid_file), "-device", "virtio-balloon", "-machine", "pc"),
            *("-accel", "tcg", "-uuid", spec.uuid, "-display", "none", "-net", "none"),
            *("-kernel", str(BUILT / "vmlinuz"), "-initrd", str(BUILT / "initrd.gz")),
            *("-append", ARGUMENTS, "-monitor", sockets["monitor"]),
            *("-qmp", sockets["qmp"], "-qmp", sockets["kvmd"]),
            *("-serial", sockets["serial"], "-device", "virtio-serial"),
            *("-chardev", f"socket,id=c,path={channel},server=on,wait=off"),
            *("-device", "virtserialport,chardev=c,name=moorage"),
            *words,
        ]
        for slot, path in enumerate(disks):
            key, at = f"disk-{slot}32df160-7a22-4067", 0xC + slot
            how = "if=none,cache=none,aio=threads,discard=ignore,auto-read-only=off"
            argv += ["-drive", f"file={path},format=raw,id={key},{how}"]
            argv += ["-device", f"virtio-blk-pci,id={key},drive={key},addr={at:#x}"]
        quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        self.started.append(subprocess.Popen(argv, **quiet))
        return self.started[-1].pid

    def close(self) -> None:
        for one in self.started:
            one.kill()
            one.wait()


@pytest.fixture
def old(lab: Lab, tmp_path: Path):
    found = Old(tmp_path / "ganeti")
    lab.one.ganetis = Ganetis(found.directory, lab.one.run_dir)
    try:
        yield found
    finally:
        found.close()


@asynccontextmanager
async def never_stopped(old: Old, spec: GuestSpec) -> AsyncIterator[None]:
    """Say at the end that a guest stood still at no moment, as QEMU tells of it.

    A stopped guest's clock stands still, too: what it measures proves nothing.
    """
    client = QMPClient(spec.name)
    await client.connect(str(old.at(spec.name, "kvmd")))
    try:
        with client.listener(("STOP", "SUSPEND", "RESET", "RESUME")) as told:
            yield
            assert (await client.execute("query-status"))["status"] == "running"
            assert told.empty()
    finally:
        await client.disconnect()


async def foreign(lab: Lab, pid: int):
    """Wait until the node sees a process of Ganeti's whose monitor answers."""
    async with asyncio.timeout(60):
        while True:
            for one in await lab.one.foreign():
                if one.pid == pid and not one.monitor:
                    return one
            await asyncio.sleep(0.1)


async def origin(lab: Lab, uuid: str) -> tuple[str, str]:
    found = await lab.one.find(uuid)
    return (found.state, found.origin) if found else ("", "")


@pytest.fixture
def block(lab) -> Iterator[Drive]:
    """Return a drive of a block device, by a link to it, as to a logical volume."""
    drive = lab.drive("file", 1)
    find = ["losetup", "--find", "--show", drive.where.path]
    device = subprocess.check_output(find, text=True).strip()
    link = Path(f"{drive.where.path}.link")
    link.symlink_to(device)
    yield replace(drive, where=Where(path=str(link)))
    subprocess.run(["losetup", "--detach", device], check=True)


async def test_a_guest_is_taken_over_without_a_pause(lab, old, block, tmp_path) -> None:
    spec = lab.spec(lab.drive("file"), block)
    pid = old.start(spec, channel=tmp_path / "channel")
    seen = await foreign(lab, pid)
    assert (seen.uuid, seen.name, seen.adopted) == (spec.uuid, spec.name, False)
    paths = {str(Path(drive.where.path).resolve()) for drive in spec.drives}
    assert set(seen.files) == paths
    await nobody_has(lab, spec, pid)
    async with Guest(tmp_path / "channel") as inside:
        await inside.wait_ready()
        await inside.run(WRITER.format("/dev/vda"))
        await inside.run(ENOUGH.format(20))
        async with never_stopped(old, spec):
            await lab.one.adopt(spec)
            await lab.one.adopt(spec)
            await inside.run(ENOUGH.format(60))
        assert int(await inside.run(CHECK)) > 60
        LOG.info("longest gap of writes, s: %s", await inside.run(GAP))
    await is_ours(lab, spec, pid)
    await lab.one.stop(spec.uuid, 60)
    assert old.started[-1].wait(10) == 0
    assert await lab.one.find(spec.uuid) is None
    assert await lab.one.foreign() == []


@pytest.fixture
def street() -> Iterator[str]:
    """Return a network namespace with a bridge of its own, and a tap at it."""
    name = f"mrg-ping-{os.getpid()}"
    lines = (
        f"netns add {name}",
        f"-n {name} link add br0 type bridge",
        f"-n {name} addr add 10.77.0.1/24 dev br0",
        f"-n {name} tuntap add tap0 mode tap",
        f"-n {name} link set tap0 master br0 up",
        f"-n {name} link set br0 up",
    )
    try:
        for line in lines:
            subprocess.run(["ip", *line.split()], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)


async def test_its_pings_have_no_gap_while_it_is_taken_over(
    lab, old, street, tmp_path
) -> None:
    spec = lab.spec(lab.drive("file"))
    inside_of = ("ip", "netns", "exec", street)
    card = "tap,id=nic-8f1c2a10-7a22-4067,ifname=tap0,script=no,downscript=no"
    device = "virtio-net-pci,netdev=nic-8f1c2a10-7a22-4067,mac=aa:00:00:77:00:02"
    words = ("-netdev", card, "-device", device)
    pid = old.start(spec, channel=tmp_path / "channel", words=words, by=inside_of)
    await foreign(lab, pid)
    async with Guest(tmp_path / "channel") as inside:
        await inside.wait_ready()
        await inside.run("ip addr add 10.77.0.2/24 dev eth0; ip link set eth0 up")
        await inside.run("(ping -i 0.1 10.77.0.1 >/pings 2>&1) </dev/null >/dev/null &")
        await inside.run(ANSWERED.format(20))
        async with never_stopped(old, spec):
            await lab.one.adopt(spec)
            await inside.run(ANSWERED.format(60))
        told = await inside.run("kill -INT $(pidof ping); usleep 500000; cat /pings")
    numbers = [int(one) for one in re.findall(r"seq=(\d+) ttl", told)]
    assert numbers == [*range(len(numbers))]
    LOG.info("pings: %s", " ".join(told.splitlines()[-2:]))
    assert await origin(lab, spec.uuid) == ("running", "adopted")


@pytest.mark.parametrize("words", [(), ("-no-shutdown",)], ids=["plain", "stays"])
async def test_one_that_nobody_took_over_powers_itself_off(
    lab, old, tmp_path, words
) -> None:
    """Ganeti starts those whose users may shut them down so that QEMU stays."""
    spec = lab.spec(lab.drive("file"))
    pid = old.start(spec, channel=tmp_path / "channel", words=words)
    await foreign(lab, pid)
    with pytest.raises(Failed, match=rf"\({pid}\) is there after 0"):
        await lab.one.end_foreign(spec.uuid, spec.name, 0.0)
    assert await origin(lab, spec.uuid) == ("running", "foreign")
    async with Guest(tmp_path / "channel") as inside:
        await inside.wait_ready()
    await lab.one.end_foreign(spec.uuid, spec.name, 120)
    assert old.started[-1].wait(5) == 0
    await lab.one.end_foreign(spec.uuid, spec.name, 0)  # it is gone
    await lab.one.start(spec)
    assert await origin(lab, spec.uuid) == ("running", "")


async def nobody_has(lab, spec, pid: int) -> None:
    """Say that a guest counts as running, gets no orders, and is not started again."""
    assert await origin(lab, spec.uuid) == ("running", "foreign")
    assert spec.uuid in {one.uuid for one in await lab.one.guests()}
    see = lab.one.connect(spec.uuid, "serial", "")
    for order in (see, lab.one.start(spec), lab.one.stop(spec.uuid, 0)):
        with pytest.raises(WrongState, match=rf"Ganeti started \({pid}\)"):
            await order


async def is_ours(lab, spec, pid: int) -> None:
    """Say that a guest is one process, seen and consoled, and what it cannot have."""
    assert await origin(lab, spec.uuid) == ("running", "adopted")
    (mine,) = [one for one in await lab.one.guests() if one.uuid == spec.uuid]
    assert mine.disks == tuple(drive.disk for drive in spec.drives)
    await lab.one.start(spec)
    (told,) = await lab.one.foreign()
    assert (told.pid, told.adopted) == (pid, True)
    door = Door(port=1)
    for order in (
        lab.one.plug(spec.uuid, lab.drive("file", 2)),
        lab.one.connect(spec.uuid, "vnc", ""),
        lab.one.migrate(spec.uuid, "127.0.0.1", door, lambda *_: None),
    ):
        with pytest.raises(WrongState, match="runs as Ganeti started it"):
            await order
    line = await lab.one.connect(spec.uuid, "serial", "")
    line.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=line)
    writer.write(b"\necho $((40 + 2)) answers\n")
    async with asyncio.timeout(60):
        await reader.readuntil(b"42 answers")
    writer.close()


async def test_what_does_not_match_its_record_is_left_alone(lab, old, tmp_path) -> None:
    spec, more = lab.spec(lab.drive("file")), lab.drive("file", 1)
    pid = old.start(spec, Path(more.where.path), channel=tmp_path / "channel")
    await foreign(lab, pid)
    with pytest.raises(Failed, match="is no disk of it on record: it is left alone"):
        await lab.one.adopt(spec)
    absent = replace(more, where=Where(path=str(tmp_path)))
    with pytest.raises(Failed, match=r"does not have .* open"):
        await lab.one.adopt(replace(spec, drives=(*spec.drives, absent)))
    old.at(spec.name, "qmp").rename(tmp_path / "hidden")
    with pytest.raises(Failed, match="monitor"):
        await lab.one.adopt(replace(spec, drives=(*spec.drives, more)))
    assert (await lab.one.foreign())[0].monitor
    assert await origin(lab, spec.uuid) == ("running", "foreign")
    assert old.started[-1].poll() is None

    # a process that ended is nobody's: whatever its pid file says
    old.close()
    (old.directory / "pid" / spec.name).write_text(f"{pid}\n")
    assert await lab.one.find(spec.uuid) is None


@pytest.fixture
def village(new_town):
    """Return a cluster of one node."""
    with new_town(1) as found:
        yield found


def from_ganeti(town, at: Path) -> Path:
    """Write a file as Ganeti's, of a guest that is up, and let its disk alone here."""
    town.guest("web1", "node1", "-t sharedfile -s 64M --no-install --no-start")
    town.type("gnt-cluster modify -N link=br0")
    town.type(f"moorage export-config --master-ip 192.0.2.9 {at}/config.data")
    (at / "config.data.moorage").unlink()  # Ganeti leaves nothing beside its file
    text = (at / "config.data").read_text()
    document = json.loads(text)
    kinds = ("nodes", "nodegroups", "instances", "disks")
    ours = [document["cluster"]["uuid"], *(one for k in kinds for one in document[k])]
    for one in ours:  # it was another cluster's
        text = text.replace(one, str(uuid4()))
    (at / "config.data").write_text(text.replace('"down"', '"up"'))
    (image,) = (town.path / "shared").rglob("*.disk0")
    image.rename(at / "disk")
    town.type("gnt-instance remove -f web1")
    image.parent.mkdir(exist_ok=True)
    (at / "disk").rename(image)
    return image


def test_a_guest_runs_on_while_its_cluster_comes_over(village, tmp_path) -> None:
    """It is imported as it runs, not started again, taken over, started anew."""
    image = from_ganeti(village, tmp_path)
    (uuid,) = json.loads((tmp_path / "config.data").read_text())["instances"]
    old = Old(village.path / "ganeti" / "node1")
    try:
        spec = GuestSpec(uuid=uuid, name="web1", memory=Mib(128))
        pid = old.start(spec, image, channel=tmp_path / "channel")
        line = f"moorage import-config --yes {tmp_path}/config.data"
        assert "Nothing was changed" in village.refused(line)
        assert "adopt-guests" in village.enter(f"{line} --guests-run-on 2>&1")
        until(lambda: " ready " in shown(village), "nobody sees it")
        assert status(village) == "running"
        village.type("moorage watcher")
        village.type("gnt-instance startup web1")
        village.refused("gnt-instance shutdown web1")
        assert not list((village.scratch.node("node1").run / "kvm").glob("*/spec.json"))
        village.type("moorage adopt-guests --yes")
        assert str(pid) in shown(village)
        assert " adopted " in shown(village)
        assert "by Ganeti, and taken over" in village.type("gnt-instance info web1")
        assert status(village) == "running"
        village.type("gnt-instance reboot --shutdown-timeout 60 web1")
        assert old.started[-1].wait(30) == 0
        assert "No node has" in shown(village)
        assert status(village) == "running"
        village.type("gnt-instance shutdown --timeout 0 web1")
    finally:
        old.close()


def status(town) -> str:
    (row,) = town.ask("gnt-instance list -o status")
    return str(row["status"])


def shown(town) -> str:
    return str(town.enter("moorage adopt-guests --dry-run || true"))
