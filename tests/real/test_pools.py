# SPDX-License-Identifier: BSD-2-Clause
"""Storage pools with real guests: a directory of a pool's own, and a provider's."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.real


@pytest.fixture
def pooled(town: Any) -> Iterator[Any]:
    """Let the nodes have another directory; end pools and disks that a test leaves."""
    listed, directory = town.path / "file-storage-paths", town.path / "ssd"
    before = listed.read_text()
    directory.mkdir(mode=0o700)
    yield town
    if {"name": "pool1"} in town.ask("gnt-instance list -o name"):
        town.type("gnt-instance remove -f --shutdown-timeout 0 pool1")
    for disk in town.ask("gnt-disk list -o uuid,pool"):
        if disk["pool"]:
            town.type(f"gnt-disk remove -f {disk['uuid']}")
    for pool in town.ask("gnt-storage pool list -o name"):
        town.type(f"gnt-storage pool remove -f {pool['name']}")
    listed.write_text(before)
    assert list(directory.rglob("*.disk*")) == []


@pytest.mark.requirement("S0-82", "S0-83", "S0-84", "S0-85", "S0-86", "S0-87")
def test_disks_in_pools_serve_a_guest_and_move_with_it(pooled: Any) -> None:
    """A pool of files and one of a provider; the rows' rest is shown without guests."""
    town, directory = pooled, pooled.path / "ssd"
    make = f"gnt-storage pool add -t sharedfile -D directory={directory} -g default ssd"
    said = town.refused(make)
    assert "does not work on node node1 of node group default" in said
    assert str(directory) in said
    with (town.path / "file-storage-paths").open("a") as listed:
        listed.write(f"{directory}\n")
    town.type(make)
    names = "--volume-name '{instance}-{short}' --longest 18"
    town.type(f"gnt-storage pool add -p qsd -g default {names} nas1")
    told = town.type("gnt-storage diagnose ssd nas1")
    assert told.count("status: valid") == 6
    disks = "--disk 0:size=32M,pool=ssd,name=p0"
    disks += " --disk 1:size=32M,pool=nas1,access=userspace,name=p1"
    town.guest("pool1", "node1", disks)
    fields = "gnt-disk list -o uuid,volume"
    files, short = (town.ask(f"{fields} {name}")[0] for name in ("p0", "p1"))
    assert (directory / "pool1").is_dir()
    assert files["volume"].startswith(f"{directory}/pool1/")
    assert short["volume"].startswith("pool1-")
    assert len(short["volume"]) == 18
    sums = [town.write("pool1", disk["uuid"]) for disk in (files, short)]
    town.type("gnt-instance migrate -f -n node2 pool1")
    found = [town.checksum("pool1", disk["uuid"]) for disk in (files, short)]
    assert found == sums
    said = town.refused("gnt-storage pool remove -f nas1")
    assert "a disk uses it: p1 (pool1)" in said
    town.type("gnt-disk grow p0 32M")
    until = time.monotonic() + 180
    while town.size("pool1", files["uuid"]) != 64 and time.monotonic() < until:
        time.sleep(0.2)
    assert town.size("pool1", files["uuid"]) == 64
    assert town.ask("gnt-cluster verify")["errors"] == []
