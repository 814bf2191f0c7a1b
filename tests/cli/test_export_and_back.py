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
