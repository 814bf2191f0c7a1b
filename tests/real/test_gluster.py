# SPDX-License-Identifier: BSD-2-Clause
"""Disks in a real Gluster volume: through its mount, and by QEMU itself."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.testing.gluster import VOLUME, Gluster

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def gluster() -> Iterator[Gluster]:
    with Gluster("127.0.84.1") as found:
        yield found


@pytest.fixture(scope="module")
def lake(town: Any, gluster: Gluster) -> Iterator[Any]:
    """The town, told where Gluster is, and two guests that run without disks."""
    mounted = town.path / "local" / VOLUME  # all nodes are one machine: one mount
    given = f"--gluster-storage-dir={mounted.parent}"
    town.type(f"gnt-cluster modify {given} -D gluster:host={gluster.address}")
    town.guest("lake1", "node1")
    town.guest("lake2", "node2")
    try:
        yield town
        for name in ("lake1", "lake2"):
            town.type(f"gnt-instance remove -f --shutdown-timeout 0 {name}")
        assert town.ask("gnt-disk list -o name") == []
        assert images(gluster) == []
        reset = "--gluster-storage-dir= -D gluster:host=default"
        town.type(f"gnt-cluster modify {reset}")
    finally:
        subprocess.run(["umount", mounted], check=True)
        mounted.rmdir()


def images(gluster: Gluster) -> list[Path]:
    return [path for path in gluster.files.glob("ganeti/*") if path.is_file()]


@pytest.mark.requirement("S0-11")
@pytest.mark.parametrize("access", ["kernelspace", "userspace"])
def test_a_disk_is_plugged_grown_copied_and_moved_while_its_guest_runs(
    lake: Any, gluster: Gluster, access: str
) -> None:
    lake.type(f"gnt-disk add -t gluster -s 32M --access {access} g1")
    lake.type("gnt-disk attach g1 lake1")
    disk = lake.uuid("g1")
    written = lake.write("lake1", disk)
    lake.type("gnt-disk grow g1 32M")
    assert lake.size("lake1", disk) == 64
    (image,) = images(gluster)
    assert image.stat().st_size == 64 << 20
    lake.type("gnt-instance migrate -f -n node3 lake1")
    assert lake.checksum("lake1", disk) == written
    lake.type("gnt-disk detach g1")
    lake.type("gnt-disk snapshot g1 --name s1")
    lake.type("gnt-disk attach s1 lake2")
    assert lake.checksum("lake2", lake.uuid("s1")) == written
    lake.type("gnt-disk detach s1")
    for name in ("s1", "g1"):
        lake.type(f"gnt-disk remove -f {name}")
    lake.type("gnt-instance migrate -f -n node1 lake1")
