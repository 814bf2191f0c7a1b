# SPDX-License-Identifier: BSD-2-Clause
"""Exclusive storage, typed: a disk has physical volumes for itself."""

from collections.abc import Callable, Iterator

import pytest

from moorage.testing.cluster import ClusterBuilder
from moorage.testing.served import Served, served

Types = Callable[..., str]
BARE = "--no-install --no-nics"


@pytest.fixture
def sim() -> Iterator[Served]:
    """Serve three nodes: the second has two physical volumes, the others one."""
    with served(ClusterBuilder()) as found:
        groups = found.cluster.nodes.san.groups
        for node, devices in (("node1", "a"), ("node2", "ab"), ("node3", "a")):
            held = {f"/dev/sd{one}": 10_000 for one in devices}
            groups[f"{node} xenvg"] = {"devices": held}
        yield found


@pytest.fixture
def full(types: Types, sim: Served) -> Served:
    """Let nodes have exclusive storage, and the first an instance on all of its."""
    types("gnt-cluster modify --node-parameters exclusive_storage=true")
    disk = "--disk 0:size=1G,spindles=1"
    types(f"gnt-instance add -t plain -n node1 {BARE} --no-start {disk} web1")
    return sim


@pytest.mark.parametrize(
    "line",
    [
        "gnt-disk add -t plain -n node1 -s 1G --spindles 1 data1",
        "gnt-instance modify --disk add:size=1G,spindles=1 web1",
        "gnt-instance recreate-disks --disk 0:spindles=2 web1",
    ],
)
def test_no_job_begins_that_lacks_spindles(
    types: Types, full: Served, line: str
) -> None:
    volumes = dict(full.cluster.nodes.san.logical)
    refused = types(line, status=1)
    asked = 2 if "=2" in line else 1
    assert "node node1 has no room for" in refused
    assert f"spindles (asked {asked}, free 0)" in refused
    assert "nothing was changed" in refused
    assert full.cluster.nodes.san.logical == volumes


@pytest.mark.parametrize(
    "line",
    [
        "gnt-instance modify -t drbd -n node2 web1",
        "gnt-instance move -f -n node2 web1",
    ],
)
def test_mirrored_disks_are_not_beside_those_with_spindles(
    types: Types, full: Served, line: str
) -> None:
    volumes = dict(full.cluster.nodes.san.logical)
    refused = types(line, status=1)
    assert "mirrored disks are not supported with exclusive storage" in refused
    assert "nothing was changed" in refused
    assert full.cluster.nodes.san.logical == volumes


@pytest.mark.parametrize(
    "line",
    [
        "gnt-instance move -f -n node2 web1",
        "gnt-instance replace-disks -n node2 web2",
        f"gnt-instance add -t drbd -n node1:node2 {BARE} --disk 0:size=1G web3",
        "gnt-disk add -t drbd -n node1:node2 -s 1G data1",
    ],
)
def test_nor_where_only_the_other_node_has_them(
    types: Types, sim: Served, line: str
) -> None:
    types(f"gnt-instance add -t plain -n node1 {BARE} --disk 0:size=1G web1")
    types(f"gnt-instance add -t drbd -n node1:node3 {BARE} --disk 0:size=1G web2")
    types("gnt-node modify --node-parameters exclusive_storage=true node2")
    refused = types(line, status=1)
    assert "exclusive storage, which node node2 has" in refused
    assert "nothing was changed" in refused
    assert not any(one.startswith("node2 ") for one in sim.cluster.nodes.san.logical)


@pytest.mark.parametrize(
    "line",
    [
        "gnt-instance modify -t drbd -n node2 web1",
        "gnt-instance move -f -n node2 web1",
    ],
)
@pytest.mark.usefixtures("sim")
def test_metadata_has_room_beside_the_first_copy(types: Types, line: str) -> None:
    disk = "--disk 0:size=9900M"
    types(f"gnt-instance add -t plain -n node1 {BARE} --no-start {disk} web1")
    refused = types(line, status=1)
    assert "node node1 has no room for" in refused
    assert "(asked 128 MiB, free 100 MiB)" in refused
    assert "nothing was changed" in refused


def test_a_snapshot_is_on_the_disks_own_physical_volumes(
    types: Types, sim: Served
) -> None:
    types("gnt-cluster modify --node-parameters exclusive_storage=true")
    types("gnt-disk add -t plain -n node2 -s 1G --spindles 1 data1")
    types("gnt-disk snapshot data1")
    used = [one["devices"] for one in sim.cluster.nodes.san.logical.values()]
    assert used == [["/dev/sda"], ["/dev/sda"]]
    assert types("gnt-node list --no-headers -o spfree node2").strip() == "1"
    assert "  Spindles: 1\n" in types("gnt-disk info data1")
