# SPDX-License-Identifier: BSD-2-Clause
"""Disks in a real Ceph cluster that asks for keys, with guests that have no rights."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from moorage.testing.ceph import POOL, USER, Ceph

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def ceph() -> Iterator[Ceph]:
    with Ceph("127.0.83.1") as found:
        found.wait_for_room()
        yield found


@pytest.fixture(scope="module")
def sea(town: Any, ceph: Ceph) -> Iterator[Any]:
    """The town, told where Ceph is, and two guests that run without disks."""
    given = f"pool={POOL},user-id={USER},conf={ceph.conf},access=userspace"
    town.type(f"gnt-cluster modify -D rbd:{given}")
    town.guest("sea1", "node1")
    town.guest("sea2", "node2")
    yield town
    for name in ("sea1", "sea2"):
        town.type(f"gnt-instance remove -f --shutdown-timeout 0 {name}")
    assert town.ask("gnt-disk list -o name") == []
    assert ceph.told("rbd", "ls") == []
    given = "pool=default,user-id=default,conf=default,access=default"
    town.type(f"gnt-cluster modify -D rbd:{given}")


@pytest.mark.requirement("S0-06")
def test_a_disk_is_plugged_grown_and_copied_while_its_guest_runs(
    sea: Any, ceph: Ceph
) -> None:
    sea.type("gnt-disk add -t rbd -s 32M r1")
    sea.type("gnt-disk attach r1 sea1")
    disk = sea.uuid("r1")
    written = sea.write("sea1", disk)
    (image,) = ceph.told("rbd", "ls")
    sea.type("gnt-disk grow r1 32M")
    assert sea.size("sea1", disk) == 64
    assert ceph.told("rbd", "info", f"rbd/{image}")["size"] == 64 << 20

    sea.type("gnt-disk snapshot r1 --name s1")
    changed = sea.write("sea1", disk)
    sea.type("gnt-disk attach s1 sea2")
    assert sea.checksum("sea2", sea.uuid("s1")) == written != changed

    sea.type("gnt-instance migrate -f -n node3 sea1")
    assert sea.checksum("sea1", disk) == changed
    sea.type("gnt-disk detach r1")
    assert not sea.sees("sea1", disk)
    sea.type("gnt-disk attach r1 sea2")
    assert sea.checksum("sea2", disk) == changed
    sea.type("gnt-disk detach r1")
    sea.type("gnt-disk remove -f r1")
    assert sea.checksum("sea2", sea.uuid("s1")) == written
    sea.type("gnt-disk detach s1")
    sea.type("gnt-disk remove -f s1")


@pytest.mark.requirement("S0-06", "S0-08")
def test_a_guest_starts_with_its_disk_and_fails_over_with_it(
    sea: Any, ceph: Ceph
) -> None:
    sea.guest("sea3", "node1", "-t rbd --disk 0:size=32M,name=r3")
    disk = sea.uuid("r3")
    written = sea.write("sea3", disk)
    sea.type("gnt-instance failover -f -n node2 sea3")
    assert sea.checksum("sea3", disk) == written
    sea.type("gnt-instance remove -f --shutdown-timeout 0 sea3")
    assert ceph.told("rbd", "ls") == []


def test_qemu_keeps_no_key_that_it_was_handed_with_a_disk(sea: Any, ceph: Ceph) -> None:
    keyring = Path(ceph.conf.parent, "keyring")
    assert (keyring.stat().st_mode | ceph.conf.parent.stat().st_mode) & 0o077 == 0
    sea.type("gnt-disk add -t rbd -s 32M r4")
    sea.type("gnt-disk attach r4 sea1")
    sea.guest("sea4", "node1", "-t rbd --disk 0:size=32M")
    for guest in ("sea1", "sea4"):
        assert _kept(sea.ask(f"gnt-instance list -o uuid {guest}")[0]["uuid"]) == []
    sea.type("gnt-instance remove -f --shutdown-timeout 0 sea4")
    sea.type("gnt-disk detach r4")
    sea.type("gnt-disk remove -f r4")


def _kept(uuid: str) -> list[str]:
    """Return what a guest's QEMU can read of what it was handed."""
    homes = [link for link in Path("/proc").glob("[0-9]*/cwd") if _is(link, uuid)]
    assert homes
    return [text for home in homes for text in _texts(home.parent) if text]


def _is(link: Path, uuid: str) -> bool:
    try:
        return link.readlink().name == uuid
    except OSError:
        return False


def _texts(process: Path) -> list[str]:
    """Return the files without a name that a process has, as it can read them."""
    found = []
    for descriptor in (process / "fd").iterdir():
        with suppress(OSError):
            if "memfd:ceph.conf" in str(descriptor.readlink()):
                found.append(descriptor.read_text())
    return found
