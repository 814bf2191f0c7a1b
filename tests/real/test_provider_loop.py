# SPDX-License-Identifier: BSD-2-Clause
"""The bundled provider loop, for real: its devices."""

# ruff: noqa: ASYNC230 - a test may block

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from provided import MIB, Storage, holds, left_over, size_of, stale, write

from moorage.node.machine.commands import PATH
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


async def test_a_link_that_comes_between_leads_nowhere(loop: Storage) -> None:
    """losetup finds out the path, then opens it: a link is put there in between."""
    disk, node = loop.disk(), loop.node("n1")
    await loop(node.create(disk))
    image, secret = loop.images / disk.volume, loop.top / "log" / "secret"
    secret.write_bytes(b"SECRET".ljust(16 * MIB, b"."))
    tools = loop.top / "log" / "tools"
    tools.mkdir()
    real = shutil.which("losetup")
    (tools / "losetup").write_text(f"""#!/bin/sh
case "$*" in
*--find*)
    path=$(readlink /proc/self/fd/8)
    mv "{image}" "{image}.away"
    ln -s "{secret}" "{image}"
    exec {real} --find --show -- "$path" ;;
esac
exec {real} "$@"
""")
    (tools / "losetup").chmod(0o755)
    steps = with_path(node.attach(disk), f"{tools}:{PATH}")
    assert "there was another file at" in await stale(loop, steps)
    assert loop.loops() == []
    assert secret.read_bytes() == b"SECRET".ljust(16 * MIB, b".")


def with_path(steps, path: str):
    """Yield the commands of some steps, with another PATH."""
    sent = None
    while True:
        try:
            command = steps.send(sent)
        except StopIteration as stop:
            return stop.value
        sent = yield replace(command, env={**command.env, "PATH": path})
