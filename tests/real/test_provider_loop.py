# SPDX-License-Identifier: BSD-2-Clause
"""The bundled provider loop, for real: its devices."""

# ruff: noqa: ASYNC230 - a test may block

import subprocess
from pathlib import Path

import pytest
from provided import MIB, Storage, holds, left_over, size_of, stale, write

from moorage.units import Mib

pytestmark = pytest.mark.real


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
