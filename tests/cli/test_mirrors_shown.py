# SPDX-License-Identifier: BSD-2-Clause
"""How both copies of mirrored disks are, as commands tell it."""

from collections.abc import Callable, Iterator

import pytest
import yaml

from moorage.testing.cluster import ClusterBuilder
from moorage.testing.served import Served, served

ADD = "gnt-instance add -t drbd -n node1:node2 --no-install --no-nics"


@pytest.fixture
def sim() -> Iterator[Served]:
    with served(ClusterBuilder()) as found:
        yield found


def test_a_mirror_is_drawn_as_ganeti_draws_it(
    types: Callable[..., str], sim: Served
) -> None:
    types(f"{ADD} --disk 0:size=64M,name=root web1")
    (told,) = yaml.safe_load(types("gnt-instance info web1"))
    (disk,) = told["Disks"]
    assert (disk["nodeA"], disk["nodeB"]) == ("node1, minor=0", "node2, minor=0")
    assert disk["port"] == 11000
    assert disk["on primary"] == "/dev/drbd0 (147:0) in sync, status ok"
    assert disk["on secondary"] == "/dev/drbd0 (147:0) in sync, status ok"
    sizes = [child[f"child {n}"] for n, child in enumerate(disk["child devices"])]
    assert sizes == ["plain, size 64M", "plain, size 128M"]
    san = sim.cluster.nodes.san
    san.mirrors["node2 0"] |= {"mine": "", "other": ""}
    (told,) = yaml.safe_load(types("gnt-instance info web1"))
    assert told["Disks"][0]["on primary"] == (
        "/dev/drbd0 (147:0) WFConnection, UpToDate/DUnknown, status *DEGRADED*"
    )
    (told,) = yaml.safe_load(types("gnt-disk info root"))
    assert "*DEGRADED*" in told["On primary"]
    assert told["Child devices"][1].startswith("128M xenvg/")
    (plan,) = yaml.safe_load(types("gnt-instance info -s web1"))
    assert "on primary" not in plan["Disks"][0]
    looked = types("gnt-cluster verify-disks")
    assert "Disk root of instance 'web1' has one good copy: node node1 says" in looked
    assert "Activating disks for instance 'web1'" in looked
    assert types("gnt-disk list --no-headers -o behind root").strip() == "node2"
    (told,) = yaml.safe_load(types("gnt-disk info root"))
    assert told["On primary"] == "/dev/drbd0 in sync, status ok"
    assert told["Missed writes"] == "node2"
    types("gnt-cluster verify-disks")
    last = types("gnt-cluster verify-disks")
    assert last == "All disks that should be attached are\n"


def test_how_far_a_sync_is(types: Callable[..., str], sim: Served) -> None:
    sim.cluster.nodes.san.slow_sync = 1000
    types(f"{ADD} --disk 0:size=64M,name=root --no-wait-for-sync web1")
    (told,) = yaml.safe_load(types("gnt-instance info web1"))
    assert "*RECOVERING* " in told["Disks"][0]["on primary"]
    assert "%, ETA 4s, status *DEGRADED*" in told["Disks"][0]["on secondary"]
    looked = types("gnt-cluster verify-disks")
    assert "has one good copy: node node1 says SyncSource" in looked
    refused = types("gnt-instance failover -f web1", status=1)
    assert "the copy of disk root on node node2 is not up to date" in refused
    assert "--ignore-consistency" in refused


def test_a_disk_does_not_grow_while_its_copies_are_apart(
    types: Callable[..., str], sim: Served
) -> None:
    """It is refused before anything grew, with a command that mends it."""
    types(f"{ADD} --disk 0:size=64M,name=root web1")
    san = sim.cluster.nodes.san
    san.mirrors["node2 0"] |= {"mine": "", "other": ""}
    sizes = {key: one["size"] for key, one in san.logical.items()}
    grow = "gnt-instance grow-disk --ignore-ipolicy web1 0 64M"
    refused = types(grow, status=1)
    assert "the copies of disk root are not the same: node node1 says WF" in refused
    assert "hint: gnt-instance activate-disks --wait-for-sync web1" in refused
    assert "nothing was changed" in refused
    assert {key: one["size"] for key, one in san.logical.items()} == sizes
    types("gnt-instance activate-disks --wait-for-sync web1")
    types(grow)
    types("gnt-instance shutdown web1")
    types("gnt-node modify -O yes node2")
    refused = types("gnt-disk grow --ignore-ipolicy root 64M", status=1)
    assert "node node2 is marked offline: its copy of disk root cannot grow" in refused
    types("gnt-node modify -O no node2")
    types("gnt-disk grow root 64M")
    data = [one["size"] for key, one in san.logical.items() if key.endswith("_data")]
    assert data == [192, 192]


def test_whose_a_minor_is_is_told_as_ganeti_tells_it(types: Callable[..., str]) -> None:
    types(f"{ADD} --disk 0:size=64M --disk 1:size=64M web1")
    types(f"{ADD.replace('node1:node2', 'node2:node3')} --disk 0:size=64M web2")
    types("gnt-disk add -t drbd -n node3:node2 -s 64M spare")
    assert types("gnt-node list-drbd node2").splitlines() == [
        "Node  Minor Instance Disk   Role      PeerNode",
        "node2     0 web1     disk/0 secondary node1",
        "node2     1 web1     disk/1 secondary node1",
        "node2     2 web2     disk/0 primary   node3",
        "node2     3 -        spare  -         node3",
    ]
    types("gnt-instance failover -f web1")
    bare = "gnt-node list-drbd --no-headers --separator=:"
    assert types(f"{bare} node1").splitlines() == [
        "node1:0:web1:disk/0:secondary:node2",
        "node1:1:web1:disk/1:secondary:node2",
    ]
    (*_, told) = yaml.safe_load(types("gnt-node list-drbd --json node2"))
    assert (told["minor"], told["role"], told["disk"]) == (3, None, "spare")


def test_a_node_without_mirrors_has_an_empty_table(types: Callable[..., str]) -> None:
    told = types("gnt-node list-drbd node3")
    assert told.split() == [
        *("Node", "Minor", "Instance"),
        *("Disk", "Role", "PeerNode"),
    ]
    assert types("gnt-node list-drbd --no-headers node3") == ""
    assert "node 'nobody' is not known" in types("gnt-node list-drbd nobody", 1)
