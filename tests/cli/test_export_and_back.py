# SPDX-License-Identifier: BSD-2-Clause
"""Exports made, listed, brought back and removed by command, on simulated nodes."""

from collections.abc import Callable, Iterator

import pytest

from moorage.testing.cluster import ClusterBuilder
from moorage.testing.served import Served, served


@pytest.fixture
def sim() -> Iterator[Served]:
    with served(ClusterBuilder()) as found:
        yield found


@pytest.mark.requirement("S0-54")
def test_an_export_over_a_snapshot_and_back(
    types: Callable[..., str], sim: Served
) -> None:
    """The whole row as it is typed; which scripts run is tested with the operation."""
    disk = "--disk 0:size=64M,dev_type=ext,provider=san,name=root"
    types(f"gnt-instance add -n node1 --no-install --no-nics {disk} web1")
    types("gnt-backup export -n node2 web1")
    listed = types("gnt-backup list --no-headers")
    assert listed.split()[:2] == ["node2", "web1"]
    assert types("gnt-backup list --no-headers -n node1") == ""
    assert types("gnt-backup list --no-headers -n node1 -n node2") == listed
    assert "node 'nosuch' is not known" in types("gnt-backup list -n nosuch", 1)

    async def scripts(cluster) -> list[tuple[str, str]]:
        return [
            (name, one.argv[0].rpartition("/")[2])
            for name, node in cluster.nodes.nodes.items()
            for one in node.machine.ran
            if "VOL_NAME" in one.env and one.env["VOL_NAME"].endswith(".snap")
        ]

    assert sim.inside(scripts) == [
        ("node1", "remove"),
        ("node2", "attach"),
        ("node2", "detach"),
    ]
    shown = types("gnt-disk list --no-headers --separator=: -o name,status")
    assert len(shown.splitlines()) == 1  # no snapshot is left
    types("gnt-instance remove -f web1")
    types("gnt-backup import --src-node node2 -n node2 web1")
    shown = types("gnt-disk list --no-headers --separator=: -o dev_type,size,instance")
    assert shown == "ext:64:web1\n"
    types("gnt-backup remove web1")
    assert types("gnt-backup list --no-headers") == ""


def test_an_import_goes_where_it_is_told_or_where_the_planner_says(
    types: Callable[..., str], sim: Served
) -> None:
    """The export lies on node2; `--rate` counts on the way, and is not rounded up."""
    disk = "--disk 0:size=64M,dev_type=file"
    types(f"gnt-instance add -n node2 --no-install --no-nics {disk} web1")
    types("gnt-backup export web1")

    async def rates(cluster) -> list[int]:
        machine = cluster.nodes.nodes["node2"].machine
        return [offer.rate for offer in machine.offers.values()]

    there = "gnt-backup import --src-node=node2 --src-dir=web1"
    told = types(f"{there} -n node1 --rate 2.5M web2")
    assert told.endswith("Imported instance web2 on node1\n")
    assert sim.inside(rates) == [2]
    assert "on node1" in types(f"{there} -n node1 web3")
    for name in ("node2", "node3"):
        types(f"gnt-node modify --drained=yes {name}")
    for number, words in enumerate(("", "-I hail", "-g default")):
        told = types(f"{there} {words} web{number + 4}")
        assert told.endswith("on node1\n"), words
    assert "only one of these goes" in types(f"{there} -n node1 -I hail web9", 1)
    assert "memory" in types(f"{there} -B memory=1T web9", 1)
    listed = types("gnt-backup list --no-headers -o node,export")
    assert listed.split() == ["node2", "web1"]
