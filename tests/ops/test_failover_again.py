# SPDX-License-Identifier: BSD-2-Clause
"""A failover whose target cannot start the guest: each refusal names the way out."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from desk import Desk, desk
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour

WAY_OUT = "hint: gnt-instance failover web1"


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Desk]:
    """Return hands at a cluster where web1's node2 is off, and node3 starts nothing."""
    cluster: SimCluster = await harbour(tmp_path / "nodes")
    await cluster.run("OP_INSTANCE_MIGRATE", instance_name="web1", target_node="node2")
    cluster.nodes.cut_power("node2")
    machine = cluster.nodes.nodes["node3"].machine
    machine.refuse = lambda _, command: command.argv[0].endswith("/attach")
    async with desk(cluster, tmp_path) as found:
        await found.types("gnt-node modify --offline yes node2")
        yield found
    assert cluster.nodes.san.broken == []
    await cluster.stop()


async def test_it_is_repeated_by_the_command_that_the_hints_name(at: Desk) -> None:
    shown = "gnt-instance list --no-headers --separator=: -o pnode,status web1"
    said = await at.refused("gnt-instance failover -f -n node3 web1")
    assert WAY_OUT in said
    assert await at.types(shown) == "node2:ERROR_nodeoffline\n"  # as before it
    assert WAY_OUT in await at.refused("gnt-instance startup web1")
    assert WAY_OUT in await at.refused("gnt-instance shutdown web1")
    await at.types("gnt-instance failover -f -n node1 web1")
    assert await at.types(shown) == "node1:running\n"


async def test_the_node_itself_comes_back_and_its_guest_starts_there(at: Desk) -> None:
    await at.refused("gnt-instance failover -f -n node3 web1")
    at.cluster.nodes.nodes["node2"].boot()
    await at.types("gnt-node modify --offline no node2")
    await at.types("gnt-instance startup web1")
    shown = "gnt-instance list --no-headers --separator=: -o pnode,status web1"
    assert await at.types(shown) == "node2:running\n"
