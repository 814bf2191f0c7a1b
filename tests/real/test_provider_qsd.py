# SPDX-License-Identifier: BSD-2-Clause
"""The bundled provider qsd, for real: its lease, and its daemons."""

# ruff: noqa: ASYNC110, ASYNC221 - a test may block

import asyncio
import os
import signal
import subprocess
from pathlib import Path

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
    stale,
    write,
)

from moorage.node.verbs.context import drive

pytestmark = pytest.mark.real
CONFINED = SHARE / "extstorage/qsd/confined"


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


def status(pid: int) -> dict[str, str]:
    """Return what the kernel says of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    words = (one.partition(":") for one in lines)
    return {key: value.strip() for key, _, value in words}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
async def test_the_daemon_is_a_user_of_its_own_that_may_do_nothing(
    qsd: Storage,
) -> None:
    node, found = qsd.node("n1"), []
    for disk in (qsd.disk(), qsd.disk()):
        await qsd(node.create(disk))
        where = await qsd(node.attach(disk))
        write(where, 0x41)
    for pid in qsd.processes():
        told = status(pid)
        uid, *others = told["Uid"].split()
        assert int(uid) >= 2_100_000_000
        assert {uid, *told["Gid"].split()} == {uid} == {*others}
        assert told["Groups"] == ""
        for one in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(told[one], 16) == 0
        assert (told["NoNewPrivs"], told["Seccomp"]) == ("1", "2")
        handles = [f"{one.readlink()}" for one in Path(f"/proc/{pid}/fd").iterdir()]
        images = [one for one in handles if one.startswith(str(qsd.images))]
        assert len(set(images)) == 1
        found.append(uid)
    assert len(set(found)) == 2
    for image in qsd.images.iterdir():  # nobody's, now that the daemons have them open
        known = image.stat()
        assert (known.st_uid, known.st_gid, known.st_mode & 0o777) == (0, 0, 0o600)


PROBES = {
    "a process": "os.fork()",
    "a connection": "socket.socket()",
    "another process's memory": "libc.ptrace(16, 1, 0, 0)",
    "a name": "os.unlink('/proc/self/fd/8')",
    "a user": "os.setuid(0)",
    "a priority": "os.setpriority(os.PRIO_PROCESS, 0, 5)",
}
TRY = """
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
for name, probe in {probes!r}.items():
    ctypes.set_errno(0)
    try:
        eval(probe)
        number = ctypes.get_errno()
    except OSError as error:
        number = error.errno
    os.write(2, f"{{name}} {{errno.errorcode.get(number, 'OK')}};".encode())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_who_takes_the_daemon_can_do_nothing_with_it(qsd: Storage) -> None:
    """Any program in the daemon's place, as a guest's QEMU may make of it."""
    image = qsd.images / "image"
    image.write_bytes(bytes(MIB))
    handle = os.open(image, os.O_RDWR)
    program = TRY.format(probes=PROBES)
    argv = [CONFINED, "2100000000-2100009999", qsd.top / "s", qsd.top / "p"]
    argv += ["/usr/bin/python3", "-IS", "-c", program]
    try:
        done = subprocess.run(
            argv,
            check=False,
            capture_output=True,
            text=True,
            preexec_fn=lambda: os.dup2(handle, 8, inheritable=True),
            close_fds=False,
            timeout=60,
        )
    finally:
        os.close(handle)
    assert done.returncode == 1  # it serves no NBD
    told = dict(one.rsplit(" ", 1) for one in done.stderr[5:].rstrip(";\n").split(";"))
    assert told == dict.fromkeys(PROBES, "EPERM")
    assert image.stat().st_mode & 0o777 == 0o600
    assert not (qsd.top / "s").exists()


@pytest.mark.parametrize("gone", [False, True])
async def test_a_daemon_of_the_former_scripts_is_found_and_ended(
    qsd: Storage, gone: bool
) -> None:
    """They named the socket in other words, and the daemon was root's."""
    disk, node = qsd.disk(), qsd.node("n1")
    await qsd(node.create(disk))
    where = await qsd(node.attach(disk))
    (new,) = qsd.processes()
    (record,) = (qsd.top / "run/n1").glob("*.pid")
    path = record.with_suffix(".sock")
    os.kill(new, signal.SIGKILL)
    while qsd.processes():
        await asyncio.sleep(0.01)
    path.unlink()
    image = qsd.images / disk.volume
    subprocess.run(
        [
            *("qemu-storage-daemon", "--daemonize", "--pidfile", record),
            "--blockdev",
            f"driver=file,node-name=image,locking=off,filename={image}",
            *("--blockdev", "driver=raw,node-name=disk,file=image"),
            *("--nbd-server", f"addr.type=unix,addr.path={path},max-connections=0"),
            "--export",
            f"type=nbd,id=export,node-name=disk,name={disk.volume},writable=on",
        ],
        check=True,
    )
    old = int(record.read_text())
    while qsd.processes() != [old]:  # the one that it forked from ends
        await asyncio.sleep(0.01)
    assert await qsd(node.attach(disk)) == where
    assert qsd.processes() == [old]
    write(where, 0x19)
    if gone:
        await qsd(node.remove(disk))
        assert left_over(qsd) == []
    else:
        await qsd(node.detach(disk))
        assert left_over(qsd) == [f"images/{disk.volume}"]
