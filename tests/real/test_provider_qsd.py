# SPDX-License-Identifier: BSD-2-Clause
"""The bundled provider qsd, for real: its lease, and its daemons."""

# ruff: noqa: ASYNC110 - a test may block

import asyncio
import os
import signal

import pytest
from msgspec.structs import replace
from provided import (
    Storage,
    holds,
    qemu_io,
    reached,
    stale,
    write,
)

from moorage.node.commands import drive

pytestmark = pytest.mark.real


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
