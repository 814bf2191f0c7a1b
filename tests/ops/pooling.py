# SPDX-License-Identifier: BSD-2-Clause
"""Storage pools on four simulated nodes, for the tests of them."""

from pathlib import Path
from typing import Any

from moorage.testing.cluster import ClusterBuilder, SimCluster

ADD, CONNECT = "OP_STORAGE_POOL_ADD", "OP_STORAGE_POOL_CONNECT"
REMOVE, DISCONNECT = "OP_STORAGE_POOL_REMOVE", "OP_STORAGE_POOL_DISCONNECT"
MODIFY = "OP_STORAGE_POOL_SET_PARAMS"


async def town(directory: Path) -> SimCluster:
    """Two nodes in group default, two in group far; web runs, its disks are none."""
    builder = ClusterBuilder(nodes=2).node("far1", "far").node("far2", "far")
    return await SimCluster.start(directory, builder.instance("web", "node1"))


async def pooled(sim: SimCluster, name: str = "nas1", **fields: Any) -> None:
    asked = {"provider": "san", "groups": ["default"]} | fields
    await sim.run(ADD, pool_name=name, **asked)


async def disk(sim: SimCluster, name: str = "d", **fields: Any) -> Any:
    asked = {"name": name, "pool": "nas1", "size": 64} | fields
    await sim.run("OP_DISK_ADD", **asked)
    return sim.config.disk(name)


def env(sim: SimCluster, script: str, node: str = "node1") -> dict[str, str]:
    """Return the variables of the last call of a provider's script."""
    ran = sim.nodes.nodes[node].machine.ran
    found = [one for one in ran if one.argv[0].endswith(f"/{script}")]
    return dict(found[-1].env)
