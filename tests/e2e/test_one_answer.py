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
from moorage.testing.stored import SHARED_DIR

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
        self._loop, self._cluster = asyncio.get_running_loop(), cluster
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

    def enable(self, *templates):
        fields = {"enabled_disk_templates": list(templates)}
        assert self.run("OP_CLUSTER_SET_PARAMS", **fields)[0]

    def end_guests(self):
        """Let every guest end by itself."""
        asyncio.run_coroutine_threadsafe(self._end_guests(), self._loop).result(60)

    async def _end_guests(self):
        for node in self._cluster.nodes.nodes.values():
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


def told(program, doors, capsys, *more):
    """Return what a program says about the cluster, by key where it tells keys."""
    capsys.readouterr()
    program.main([f"--luxi={doors.socket}", *more])
    return capsys.readouterr().out


@pytest.mark.requirement("S2-14")
def test_what_should_run_and_does_not_counts_at_every_door(opened, capsys):
    """Guests that ended keep their memory on record, for they will start again."""
    doors = opened(3)
    bounds = [{"min": SPEC | {"memory-size": 128}, "max": SPEC | {"cpu-count": 8}}]
    assert doors.run("OP_CLUSTER_SET_PARAMS", ipolicy={"minmax": bounds, "std": SPEC})[
        0
    ]
    for number in range(7):
        assert doors.add(f"w{number}", pnode=f"node{number % 3 + 1}")
    lost, more = unlosable(doors, capsys), room(doors, capsys)
    assert lost > 0
    doors.end_guests()
    assert unlosable(doors, capsys) == lost
    assert room(doors, capsys) == more
    assert len(doors.warned()) == lost


@pytest.mark.requirement("S4-13", "S4-14")
def test_a_shared_directory_counts_once_at_every_door(opened, tmp_path, capsys):
    """One TiB that three nodes share is one TiB, and what is unknown is not 0."""
    doors = opened(3)
    doors.enable("sharedfile")
    out = told(hspace, doors, capsys, "--disk-template=sharedfile")
    assert re.search(r"DSK 1048576\b", out), out
    keys = told(hspace, doors, capsys, "-p", "--machine-readable")
    assert re.search(r"HTS_CLUSTER_DSK=1048576\b", keys), keys
    table = told(hscan, doors, capsys, "-d", str(tmp_path), "-p")
    assert "1024" in table
    assert "3072" not in table
    doors.enable("ext")
    keys = told(hspace, doors, capsys, "--machine-readable")
    assert "HTS_CLUSTER_DSK=unknown" in keys


@pytest.mark.requirement("S4-01", "S4-05")
def test_units_are_told_in_the_form_of_type_key_and_more(opened):
    """Each node's units with their room, and the one unit of each disk."""
    doors = opened(2)
    assert doors.add("s1", disk_template="sharedfile", disks=[{"size": 64}])
    assert doors.add("e1")
    with LuxiClient(doors.socket) as client:
        _, ((node, storage), *_) = client.query("node", ["name", "storage"])
        _, rows = client.query("instance", ["name", "disk.sunits"])
    assert node[1] == "node1"
    units = {tuple(one["sunit"][:2]): one for one in storage[1]}
    shared = units["sharedfile", SHARED_DIR]
    assert shared["sunit"] == ["sharedfile", SHARED_DIR, []]
    assert (shared["free"], shared["total"]) == (1024 * 1024, 1024 * 1024)
    assert units["ext", "san"]["free"] is units["ext", "san"]["total"] is None
    told = {name[1]: sunits[1] for name, sunits in rows}
    assert told["s1"] == [["sharedfile", SHARED_DIR, []]]
    assert told["e1"] == [["ext", "san", []]]
