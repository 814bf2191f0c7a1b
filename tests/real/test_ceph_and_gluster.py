# SPDX-License-Identifier: BSD-2-Clause
"""Disks in a real Ceph cluster and in real Gluster volumes, and between the two.

Ceph asks for keys, and guests have no rights. Gluster's images are opened through its
mount, and by QEMU itself. Both are in one file, so that each is started once.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.ceph import POOL, SECOND, USER, Ceph
from support.gluster import VOLUME, Gluster

pytestmark = pytest.mark.real

OTHER = "gv1"
"""A second Gluster volume."""
OURS = "11111111-2222-4333-8444-55555555555"


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


# -- Gluster ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gluster() -> Iterator[Gluster]:
    with Gluster("127.0.84.1") as found:
        yield found


@pytest.fixture(scope="module")
def lake(town: Any, gluster: Gluster) -> Iterator[Any]:
    """The town, told where Gluster is, and two guests that run without disks."""
    given = f"--gluster-storage-dir={town.path}/local"
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
        unmount(town.path / "local")


def unmount(directory: Path) -> None:
    """Unmount all volumes there: the nodes are one machine, and may mount one twice."""
    for line in Path("/proc/mounts").read_text().splitlines():
        if line.split()[1].startswith(f"{directory}/"):
            subprocess.run(["umount", line.split()[1]], check=True)
    for name in (VOLUME, OTHER):
        with suppress(FileNotFoundError):
            (directory / name).rmdir()


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


# -- from one to the other, and pools --------------------------------------------------


@pytest.fixture(scope="module")
def far(sea: Any, lake: Any, gluster: Gluster) -> Iterator[Path]:
    """Two storage pools; return where the images are of that in Gluster."""
    brick = gluster.add(OTHER)
    # The nodes are one machine: all at once, they would mount it in one place.
    at = lake.path / "local" / OTHER
    at.mkdir(parents=True)
    mount = ["mount", "-t", "glusterfs", f"{gluster.address}:{OTHER}", at]
    subprocess.run(mount, check=True)
    sea.type(f"gnt-storage pool add -t rbd -D pool={SECOND} -g default fast")
    lake.type(f"gnt-storage pool add -t gluster -D volume={OTHER} -g default far")
    yield brick / "ganeti"
    for name in ("fast", "far"):
        sea.type(f"gnt-storage pool remove -f {name}")


def test_a_disk_goes_through_all_of_them_running_and_at_rest(
    sea: Any, ceph: Ceph, far: Path
) -> None:
    """From image files by Ceph and Gluster and back; every byte is compared."""
    sea.type("gnt-disk add -t sharedfile -s 24M c1")
    disk = sea.uuid("c1")
    before = os.urandom(24 << 20)
    Path(sea.stage.disk("c1")["logical_id"][-1]).write_bytes(before)
    sea.type("gnt-disk attach c1 sea1")
    begins = sea.checksum("sea1", disk)
    for way, rbd, gluster in (
        ("move --pool fast", 1, 0),
        ("move --pool far", 0, 1),
        ("convert -t sharedfile", 0, 0),
    ):
        sea.type(f"gnt-disk {way} c1")
        assert sea.checksum("sea1", disk) == begins
        assert len(ceph.told("rbd", "ls", SECOND)) == rbd
        assert len(list(far.glob("*"))) == gluster
    sea.type("gnt-disk detach c1")
    for way in ("-t rbd", "-t gluster", "-t sharedfile"):
        sea.type(f"gnt-disk convert {way} c1")
        assert len(ceph.told("rbd", "ls")) == (way == "-t rbd")
    assert Path(sea.stage.disk("c1")["logical_id"][-1]).read_bytes() == before
    sea.type("gnt-disk remove -f c1")


def test_pools_in_them_place_an_instance_and_keep_their_disks(
    sea: Any, ceph: Ceph, far: Path
) -> None:
    """An instance is placed by itself, with a disk in each pool."""
    disks = "--disk 0:size=16M,pool=far,name=p0 --disk 1:size=16M,pool=fast,name=p1"
    sea.type(f"gnt-instance add {disks} --no-install --no-start --no-nics sea5")
    assert len(ceph.told("rbd", "ls", SECOND)) == len(list(far.glob("*"))) == 1
    refused = sea.refused("gnt-storage pool disconnect far default")
    assert "a disk uses it: p0 (sea5)" in refused
    for name in ("p0", "p1"):
        sea.type(f"gnt-disk detach {name}")
        sea.type(f"gnt-disk attach {name} sea2")
        written = sea.write("sea2", sea.uuid(name))
        sea.type(f"gnt-disk detach {name}")
        sea.type(f"gnt-disk attach {name} sea1")
        assert sea.checksum("sea1", sea.uuid(name)) == written
        sea.type(f"gnt-disk detach {name}")
        sea.type(f"gnt-disk remove -f {name}")
    sea.type("gnt-instance remove -f sea5")
    assert [*ceph.told("rbd", "ls", SECOND), *far.glob("*")] == []


def test_what_was_done_behind_the_clusters_back_is_found_and_mended(
    sea: Any, lake: Any, ceph: Ceph
) -> None:
    """A volume of each gets another name: one is missing, and one is forgotten."""
    for name, template in (("b1", "rbd"), ("b2", "gluster")):
        sea.type(f"gnt-disk add -t {template} -s 16M {name}")
    image, path = (sea.stage.disk(name)["logical_id"][-1] for name in ("b1", "b2"))
    ceph.ask("rbd", "rename", f"{POOL}/{image}", f"{POOL}/{OURS}1.rbd.disk0")
    file = lake.path / "local" / VOLUME / path
    file.rename(file.with_name(f"{OURS}2.gluster.disk0"))
    found = json.loads(sea._run("gnt-storage reconcile --json", shown=True).stdout)
    assert found["counts"]["forgotten"] == found["counts"]["missing"] == 2
    assert [one["do"] for one in found["plan"]] == ["quarantine"] * 2 + ["suspend"] * 2
    assert "The plan is done" in sea.type("gnt-storage reconcile --apply --yes")
    disks = sea.ask("gnt-disk list -o uuid,name,status,volume")
    assert {disk["status"] for disk in disks} == {"quarantined"}
    for disk in disks:
        if disk["name"]:
            sea.type(f"gnt-disk forget -f --reason 'it is gone' {disk['name']}")
        else:
            sea.type(f"gnt-disk modify --lift-quarantine {disk['uuid']}")
            sea.type(f"gnt-disk attach {disk['uuid']} sea1")
            assert sea.size("sea1", disk["uuid"]) == 16
            sea.type(f"gnt-disk detach {disk['uuid']}")
            sea.type(f"gnt-disk remove -f {disk['uuid']}")
    assert ceph.told("rbd", "ls") == []
    assert not list(file.parent.glob("*"))
