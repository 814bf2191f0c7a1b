# SPDX-License-Identifier: BSD-2-Clause
"""The ways to ask a cluster: its nodes are simulated, its master and socket are real.

Programs are called as they would be typed.
"""

import asyncio
import threading
from pathlib import Path

from moorage.api.luxi import LuxiClient
from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.machine import PROVIDERS

MEMORY = 18_000
"""Of each instance: three fit on a node of 64 GiB, four GiB of which are its own."""


class Doors:
    """The ways to ask a live cluster.

    Parameters
    ----------
    nodes
        How many nodes it has.
    without
        Those that lack the provider.
    """

    def __init__(self, directory, nodes, without=()):
        self.directory = directory
        self.socket = str(directory / "luxi.sock")
        self.nodes, self._without = nodes, without
        self._ready, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(60)

    async def _serve(self):
        self.directory.joinpath("nodes").mkdir()
        builder = ClusterBuilder(self.nodes)
        cluster = await SimCluster.start(self.directory / "nodes", builder)
        for name in self._without:
            machine = cluster.nodes.nodes[name].machine
            machine.installed = [one for one in PROVIDERS if one.name != "san"]
        server = LuxiServer(
            Sources(cluster.config_store, cluster.nodes, cluster.engine),
            Path(self.socket),
        )
        await server.start()
        self._loop, self.cluster = asyncio.get_running_loop(), cluster
        self._ready.set()
        await asyncio.to_thread(self._done.wait)
        await server.stop()
        await cluster.stop()

    def close(self):
        self._done.set()
        self._thread.join(60)

    def run(self, op_id, **fields):
        """Run a job; return whether it succeeded, and its result."""
        with LuxiClient(self.socket) as client:
            job = client.submit_job([{"OP_ID": op_id, **fields}])
            while True:
                (row,) = client.query_jobs([job], ["status", "opresult"])
                if row[0] in ("success", "error"):
                    return row[0] == "success", row[1][0]
                client.call("WaitForJobChange", job, ["status"], [row[0]], 0, 5.0)

    def add(self, name, **more):
        fields = {
            "disk_template": "ext",
            "disks": [{"size": 64, "provider": "san"}],
            "beparams": {"memory": MEMORY},
        }
        fields |= {"instance_name": name} | more
        return self.run("OP_INSTANCE_CREATE", **fields)[0]

    def nodes_of(self, name):
        """Return the names of an instance's primary node and secondary ones."""
        config = self.cluster.config
        found = config.instance(name)
        return [one.name for one in config.nodes_of(found)]

    def enable(self, *templates):
        fields = {"enabled_disk_templates": list(templates)}
        assert self.run("OP_CLUSTER_SET_PARAMS", **fields)[0]

    def end_guests(self):
        """Let every guest end by itself."""
        asyncio.run_coroutine_threadsafe(self._end_guests(), self._loop).result(60)

    async def _end_guests(self):
        for node in self.cluster.nodes.nodes.values():
            for guest in await node.hypervisor.guests():
                await node.hypervisor.stop(guest.uuid, 0)

    def warned(self):
        """Return the nodes that verify says cannot be lost."""
        _, found = self.run("OP_CLUSTER_VERIFY")
        lost = [one for one in found["warnings"] if one.get("code") == "ENODESHAREDN1"]
        return [one["object"] for one in lost]

    def verify(self):
        """Return how many nodes cannot be lost; none of that is an error."""
        _, found = self.run("OP_CLUSTER_VERIFY")
        assert found["errors"] == []
        others = [one for one in found["warnings"] if not one.get("code")]
        assert all("ExtStorage provider" in one["message"] for one in others)
        assert len(others) <= len(self._without)
        return len(found["warnings"]) - len(others)
