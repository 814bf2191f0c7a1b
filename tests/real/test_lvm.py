# SPDX-License-Identifier: BSD-2-Clause
"""Logical volumes of real LVM, on nodes with kernels of their own."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.real

BARE = "-t diskless --no-install --no-nics --ignore-capacity"
FILES = "/srv/ganeti/file-storage"
OURS = "11111111-2222-4333-8444-555555555551"
SUM = "dd if=/dev/{0} bs=64k count=16 2>/dev/null | sha256sum"


def test_nodes_have_a_kernel_with_device_mapper_and_drbd(hamlet: Any) -> None:
    assert len(hamlet.ask("gnt-node list -o name")) == len(hamlet.nodes)
    assert "version: 8" in hamlet.nodes[1].run("cat /proc/drbd")


def test_a_volume_is_made_grown_copied_and_removed(hamlet: Any) -> None:
    before = hamlet.volumes()
    hamlet.type("gnt-disk add -t plain -s 32M -n node1 lv1")
    (name,) = hamlet.volumes().keys() - before.keys()
    hamlet.nodes[0].run(f"dd if=/dev/urandom of=/dev/{name} bs=64k count=16")
    written = hamlet.nodes[0].run(SUM.format(name))
    hamlet.type("gnt-disk grow lv1 30M")
    assert hamlet.volumes()[name] == 64
    hamlet.type("gnt-disk snapshot lv1 --name copy1")
    (copy,) = hamlet.volumes().keys() - before.keys() - {name}
    hamlet.nodes[0].run(f"dd if=/dev/zero of=/dev/{name} bs=64k count=16")
    assert hamlet.nodes[0].run(SUM.format(copy)) == written
    assert hamlet.nodes[0].run(SUM.format(name)) != written
    hamlet.type("gnt-disk remove -f copy1")
    hamlet.type("gnt-disk remove -f lv1")
    assert hamlet.volumes() == before


def test_a_volume_is_adopted_with_its_data_unless_it_is_in_use(hamlet: Any) -> None:
    node = hamlet.nodes[0]
    node.run("lvcreate -qq -Wn -L 16M -n legacy xenvg; mkfs.ext4 -q /dev/xenvg/legacy")
    node.run("mount /dev/xenvg/legacy /mnt && echo kept >/mnt/file")
    add = "gnt-disk add -t plain --adopt legacy -n node1 old1"
    assert "it is mounted at /mnt" in hamlet.refused(add)
    node.run("umount /mnt")
    hamlet.type(add)
    (disk,) = hamlet.ask("gnt-disk list -o volume,size old1")
    assert (disk["volume"], disk["size"]) == ("legacy", 16)
    hamlet.type(f"gnt-instance add {BARE} -n node1 inn1")
    hamlet.type("gnt-disk attach old1 inn1")
    node.run("mount -o ro /dev/xenvg/legacy /mnt; grep kept /mnt/file; umount /mnt")
    told = hamlet.refused("gnt-instance failover -f -n node2 inn1")
    assert "disk layout 'plain' does not allow failover" in told
    hamlet.type("gnt-instance remove -f --shutdown-timeout 0 inn1")
    assert "xenvg/legacy" not in hamlet.volumes()


def test_with_exclusive_storage_nobody_else_is_on_its_device(hamlet: Any) -> None:
    node = hamlet.nodes[0]
    node.run("vgcreate -qq lone /dev/ubdb")
    modify = "gnt-node modify --node-parameters exclusive_storage={} node1"
    hamlet.type(modify.format("true"))
    add = "gnt-disk add -t plain -s 16M -n node1 -D vg=lone"
    assert "the disk needs a number of spindles" in hamlet.refused(f"{add} one1")
    hamlet.type(f"{add} --spindles 1 one1")
    told = hamlet._run(f"{add} --spindles 1 two1", shown=True)
    assert "not enough empty physical volumes" in told.stderr
    devices = node.run("lvs --noheadings -o devices lone").split()
    assert [one.partition("(")[0] for one in devices] == ["/dev/ubdb"]
    hamlet.type("gnt-disk remove -f one1")
    hamlet.type(modify.format("default"))
    node.run("vgremove -qq lone")


@pytest.fixture
def spare(hamlet: Any) -> Iterator[str]:
    """Return the name of a pool in a volume group of its own, on both nodes."""
    for node in hamlet.nodes:
        node.run("vgcreate -qq lone /dev/ubdb")
    hamlet.type("gnt-storage pool add -t plain -D vg=lone -g default spare")
    yield "spare"
    hamlet.type("gnt-storage pool remove -f spare")
    for node in hamlet.nodes:
        node.run("vgremove -qq lone")


def test_a_disk_goes_from_a_file_to_volume_groups_and_back(
    hamlet: Any, spare: str
) -> None:
    """A pool of logical volumes, the cluster's volume group, and image files."""
    node, before = hamlet.nodes[0], hamlet.volumes()
    allow = f"mkdir -p /etc/ganeti; echo {FILES} >/etc/ganeti/file-storage-paths"
    for each in hamlet.nodes:
        each.run(f"mkdir -p -m 700 {FILES}; {allow}")
    hamlet.type(f"gnt-cluster modify --file-storage-dir={FILES}")
    hamlet.type("gnt-disk add -t file -s 16M -n node1 f1")
    path = hamlet.ask("gnt-disk list -o volume f1")[0]["volume"]
    node.run(f"dd if=/dev/urandom of={path} bs=1M count=16 conv=notrunc")
    written = node.run(f"sha256sum <{path}")
    for way, group in (
        (f"move --pool {spare}", "lone"),
        ("convert -D vg=xenvg", "xenvg"),
    ):
        hamlet.type(f"gnt-disk {way} f1")
        (name,) = hamlet.volumes().keys() - before.keys()
        assert name.startswith(f"{group}/")
        assert node.run(f"sha256sum </dev/{name}") == written
    hamlet.type("gnt-disk convert -t file f1")
    assert hamlet.volumes() == before
    path = hamlet.ask("gnt-disk list -o volume f1")[0]["volume"]
    assert node.run(f"sha256sum <{path}") == written
    hamlet.type("gnt-disk remove -f f1")

    disk = f"--disk 0:size=16M,pool={spare}"
    hamlet.type(f"gnt-instance add {disk} --no-install --no-nics inn2")
    home = hamlet.ask("gnt-instance list -o pnode inn2")[0]["pnode"]
    at = [node.name for node in hamlet.nodes].index(home)
    assert [name for name in hamlet.volumes(at) if name.startswith("lone/")]
    assert "a disk uses it" in hamlet.refused(
        "gnt-storage pool disconnect spare default"
    )
    hamlet.type("gnt-instance remove -f inn2")


def test_what_was_done_behind_the_clusters_back_is_found_and_mended(
    hamlet: Any,
) -> None:
    """A volume gets another name: a disk is without one, and one is of no disk."""
    node, before = hamlet.nodes[0], hamlet.volumes()
    hamlet.type("gnt-disk add -t plain -s 16M -n node1 b1")
    (name,) = hamlet.volumes().keys() - before.keys()
    node.run(f"lvrename {name} xenvg/{OURS}.disk0")
    found = json.loads(hamlet._run("gnt-storage reconcile --json", shown=True).stdout)
    assert [one["do"] for one in found["plan"]] == ["quarantine", "suspend"]
    assert "The plan is done" in hamlet.type("gnt-storage reconcile --apply --yes")
    hamlet.type("gnt-disk forget -f --reason 'it is gone' b1")
    (found,) = hamlet.ask("gnt-disk list -o uuid,size,status,volume")
    assert (found["size"], found["status"]) == (16, "quarantined")
    assert found["volume"] == f"{OURS}.disk0"
    hamlet.type(f"gnt-disk modify --lift-quarantine {found['uuid']}")
    hamlet.type(f"gnt-disk remove -f {found['uuid']}")
    assert hamlet.volumes() == before


def test_a_mirrored_disk_goes_to_an_export_and_comes_back(hamlet: Any) -> None:
    """LVM makes no snapshot of such a disk: it is read where it is, at rest."""
    a, b = hamlet.nodes
    disk = "-t drbd --disk 0:size=16M --ignore-ipolicy"
    hamlet.type(f"gnt-instance add {disk} --no-install -n {a.name}:{b.name} exp1")
    a.run("dd if=/dev/urandom of=/dev/drbd0 bs=1M count=16 oflag=direct")
    told = a.run("md5sum </dev/drbd0")
    hamlet.type("gnt-instance shutdown exp1")
    hamlet.type(f"gnt-backup export -n {a.name} exp1")
    hamlet.type("gnt-instance remove -f exp1")
    taken = f"--src-node {a.name} --src-dir exp1 --ignore-ipolicy"
    hamlet.type(f"gnt-backup import {taken} -t drbd -n {a.name}:{b.name} --start exp1")
    assert "Primary/Secondary" in a.run("cat /proc/drbd")
    assert a.run("md5sum </dev/drbd0") == told
    hamlet.type("gnt-instance remove -f --shutdown-timeout 0 exp1")
    hamlet.type("gnt-backup remove -f exp1")
    assert hamlet.volumes(0) == hamlet.volumes(1) == {}
