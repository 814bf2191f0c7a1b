# SPDX-License-Identifier: BSD-2-Clause
"""One cluster, asked through every door: verify, hcheck, hspace, hail, add.

The cluster is simulated, its master and socket are real, and so are the programs.
"""

import asyncio
import json
import re
import tempfile
import threading
from pathlib import Path

import pytest

from moorage.api.luxi import LuxiClient
from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.cli.htools import hail, hcheck, hscan, hspace
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.machine import PROVIDERS

MEMORY = 18_000
"""Of each instance: three fit on a node of 64 GiB, four GiB of which are its own."""
SPEC = {
    "memory-size": MEMORY,
    "cpu-count": 1,
    "disk-size": 64,
    "disk-count": 1,
    "nic-count": 0,
    "spindle-use": 1,
}


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
        self._nodes, self._without = nodes, without
        self._ready, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(60)

    async def _serve(self):
        self.directory.joinpath("nodes").mkdir()
        builder = ClusterBuilder(self._nodes)
        cluster = await SimCluster.start(self.directory / "nodes", builder)
        for name in self._without:
            machine = cluster.nodes.nodes[name].machine
            machine.installed = [one for one in PROVIDERS if one.name != "san"]
        server = LuxiServer(
            Sources(cluster.truth, cluster.nodes, cluster.engine), Path(self.socket)
        )
        await server.start()
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

    def verify(self):
        """Return how many nodes cannot be lost; none of that is an error."""
        _, found = self.run("OP_CLUSTER_VERIFY")
        assert all("ExtStorage provider" in e["message"] for e in found["errors"])
        assert len(found["errors"]) <= len(self._without)
        assert {one["code"] for one in found["warnings"]} <= {"ENODESHAREDN1"}
        return len(found["warnings"])


@pytest.fixture
def opened():
    made = []
    with tempfile.TemporaryDirectory() as directory:

        def opened_(nodes, without=()):
            made.append(Doors(Path(directory), nodes, without))
            return made[-1]

        yield opened_
        for one in made:
            one.close()


def unlosable(doors, capsys):
    """Return how many nodes hcheck says cannot be lost."""
    capsys.readouterr()
    hcheck.main([f"--luxi={doors.socket}", "--machine-readable", "--no-simulation"])
    out = capsys.readouterr().out
    return int(re.search(r"HCHECK_INIT_CLUSTER_GN1_FAIL=(\d+)", out)[1])


def room(doors, capsys):
    """Return how many more instances of the standard size hspace sees room for."""
    capsys.readouterr()
    hspace.main(
        [f"--luxi={doors.socket}", "--machine-readable", "--disk-template", "ext"]
    )
    out = capsys.readouterr().out
    first, last = (
        int(re.search(rf"HTS_{when}_INST_CNT=(\d+)", out)[1]) for when in ("INI", "FIN")
    )
    return last - first


def would_take(doors, tmp_path, capsys):
    """Say whether hail would place one more."""
    hscan.main([f"--luxi={doors.socket}", "-d", str(tmp_path)])
    request = {
        "type": "allocate",
        "name": "asked",
        "required_nodes": 1,
        "memory": MEMORY,
        "vcpus": 1,
        "disk_space_total": 64,
        "disk_template": "ext",
        "disks": [{"size": 64, "mode": "rw"}],
        "spindle_use": 1,
        "tags": [],
        "nics": [],
    }
    empty = {"nodegroups": {}, "nodes": {}, "instances": {}, "cluster_tags": []}
    empty["enabled_hypervisors"] = ["kvm"]
    message = tmp_path / "message"
    message.write_text(json.dumps(empty | {"request": request}))
    capsys.readouterr()
    hail.main(["-t", str(tmp_path / "LOCAL.data"), str(message)])
    told = capsys.readouterr()
    assert told.err == ""
    return json.loads(told.out)["success"]


@pytest.mark.requirement("S2-14", "S2-06")
def test_every_door_gives_one_answer(opened, tmp_path, capsys):
    """Safe, at the limit, and beyond: all doors agree at each step."""
    doors = opened(3)
    bounds = [{"min": SPEC | {"memory-size": 128}, "max": SPEC | {"cpu-count": 8}}]
    policy = {"minmax": bounds, "std": SPEC}
    assert doors.run("OP_CLUSTER_SET_PARAMS", ipolicy=policy)[0]
    left = room(doors, capsys)
    assert left == 6  # what is on one of three nodes fits on the other two
    for number in range(left):
        assert would_take(doors, tmp_path, capsys)
        assert doors.add(f"w{number}")
        assert (doors.verify(), unlosable(doors, capsys)) == (0, 0)
        assert room(doors, capsys) == left - number - 1
    assert not would_take(doors, tmp_path, capsys)
    assert not doors.add("more")
    assert doors.add("beyond", pnode="node1")
    lost = unlosable(doors, capsys)
    assert lost > 0
    assert doors.verify() == lost
    assert not doors.add("more")
    assert not would_take(doors, tmp_path, capsys)
    assert doors.add("anyway", ignore_capacity=True)
    assert doors.verify() == unlosable(doors, capsys)


@pytest.mark.requirement("S2-03")
def test_only_nodes_that_reach_the_provider_count(opened, capsys):
    """A provider that is valid on three of five nodes: survival counts those alone."""
    doors = opened(5, ("node4", "node5"))
    made = 0
    while made < 10 and doors.add(f"w{made}"):
        made += 1
        assert (doors.verify(), unlosable(doors, capsys)) == (0, 0)
    assert made == 6
    assert doors.add("beyond", pnode="node1")
    assert doors.verify() == unlosable(doors, capsys) > 0
    for name in ("node4", "node5"):
        fields = {"instance_name": "beyond", "target_node": name}
        assert not doors.run("OP_INSTANCE_MIGRATE", **fields)[0]


@pytest.mark.requirement("S2-14")
def test_disks_of_several_templates_are_read_alike(opened, capsys):
    """Memory is what survival asks for, whatever becomes of a local disk's data."""
    doors = opened(2)
    large = {"beparams": {"memory": 32_000}, "ignore_capacity": True}
    disks = [{"size": 64, "dev_type": "ext", "provider": "san"}]
    disks.append({"size": 64, "dev_type": "file"})
    for number in (1, 2):
        assert doors.add(f"w{number}", disks=disks, pnode=f"node{number}", **large)
    assert doors.verify() == unlosable(doors, capsys) == 2
