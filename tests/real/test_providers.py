# SPDX-License-Identifier: BSD-2-Clause
"""The two bundled providers and the bundled OS definition, for real."""

# ruff: noqa: ASYNC220, ASYNC221 - a test may block

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from provided import (
    MIB,
    SHARE,
    Storage,
    holds,
    left_over,
    qemu_io,
    reached,
    size_of,
    write,
)
from qemu.qmp import QMPClient
from qemu.qmp.protocol import ConnectError

from moorage.errors import CommandFailed
from moorage.node.extensions import oses
from moorage.node.extensions.providers import Providers
from moorage.protocol import InstallSystem
from moorage.storage import Output, Where
from moorage.storage.provider import usable
from moorage.storage.uri import protocol_node
from moorage.units import Mib

pytestmark = pytest.mark.real


@pytest.mark.requirement("S0-22", "S0-57", "S0-66")
def test_the_bundled_providers_are_valid() -> None:
    found = usable(Providers([SHARE / "extstorage"]).scan())
    assert sorted(found) == ["loop", "named", "qsd"]
    assert not any(one.problem for one in found.values())
    assert set(found["qsd"].parameters) == {"dir", "run", "direct"}
    more = ("list", "capacity")
    assert found["qsd"].optional == ("snapshot", "open", "close", *more)
    assert found["loop"].optional == ("snapshot", *more)


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
        "VOL_AT_DIR": str(either.images),
        "VOL_AT_RUN": str(either.top / "run"),
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


def asked(os: str, *disks: oses.OsDisk, **more: Any) -> oses.Install:
    return oses.Install(
        InstallSystem(uuid="", name="web1", os=os, **more), "node1", disks
    )


@pytest.mark.requirement("S0-65")
async def test_the_os_is_written_to_a_path_or_through_a_uri(either: Storage) -> None:
    disk, node = either.disk(), either.node("n1")
    await either(node.create(disk))
    where = await either(node.attach(disk))
    image = either.top / "system.raw"
    content = hashlib.sha256(b"boot").digest() * (3 * MIB // 32)
    image.write_bytes(content)
    install = asked("tiny", oses.OsDisk(disk, where), osparams={"image": str(image)})
    found = oses.usable(oses.scan([SHARE / "os"]))
    await either.run(oses.command("create", found, install))
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
    disk = oses.OsDisk(replace(loop.disk(), size=Mib(1)), Where(path=str(target)))
    install = asked("tiny+default", disk, osparams={"image": str(image)})
    found = oses.usable(oses.scan([SHARE / "os"]))
    with pytest.raises(CommandFailed, match="holds 1048576 bytes") as caught:
        await loop.run(oses.command("create", found, install))
    assert caught.value.message.startswith("OS create script failed (exited with")


@pytest.mark.parametrize("action", ["verify", "rename"])
async def test_the_other_scripts_of_the_os_run(loop: Storage, action: str) -> None:
    found = oses.usable(oses.scan([SHARE / "os"]))
    command = oses.command(action, found, asked("tiny"))
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


async def connected(
    client: QMPClient, machine: "subprocess.Popen[bytes]", monitor: Path
) -> None:
    """Connect to a QEMU that has just been started."""
    while True:
        try:
            await client.connect(str(monitor))
        except ConnectError:  # it is not there yet, or does not listen yet
            assert machine.poll() is None
            await asyncio.sleep(0.02)
        else:
            return


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
        await connected(client, machine, monitor)
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
