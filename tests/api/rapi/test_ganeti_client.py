# SPDX-License-Identifier: BSD-2-Clause
"""Each method of Ganeti's own Python client, unchanged, in a whole life."""

import asyncio
import json
import re
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ganeti_rapi import PACKAGES, PLACE
from moorage.testing.cluster import ClusterBuilder, SimCluster
from peers import PYTHON, unpacked
from rapi_door import rapi_door

CLIENT = Path(__file__).parents[2] / "ganeti_rapi.py"


class Refused(Exception):
    """A call that Ganeti's client raised for."""

    def __init__(self, status, sentence):
        super().__init__(status, sentence)
        self.status, self.sentence = status, sentence


class Ganeti:
    """Ganeti's client, in a process of its own."""

    def __init__(self, process, cluster):
        self._process = process
        self.cluster = cluster
        self.called = set()

    async def __call__(self, method, *args, **more):
        self.called.add(method)
        line = json.dumps([method, args, more])
        self._process.stdin.write(f"{line}\n".encode())
        told = json.loads(await self._process.stdout.readline())
        if not told[0]:
            raise Refused(told[1], told[2])
        return told[1]

    async def job(self, method, *args, **more):
        """Call a method that makes a job, which must succeed; return its results."""
        number = await self(method, *args, **more)
        assert type(number) is int
        while (told := await self("GetJobStatus", number))["status"] not in (
            "success",
            "error",
        ):
            await self("WaitForJobChange", number, ["status"], [told["status"]], None)
        assert told["status"] == "success", told
        return told["opresult"]


@asynccontextmanager
async def ganeti(door, user="top:secret"):
    place = unpacked(PACKAGES)
    if place is None:
        pytest.skip("Debian's packages of Ganeti's client cannot be had")
    words = (PYTHON, CLIENT, place, str(door.port), *user.split(":"))
    process = await asyncio.create_subprocess_exec(
        *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    yield Ganeti(process, door.cluster)
    process.stdin.close()
    await process.wait()


@pytest.fixture
async def client(tmp_path):
    builder = ClusterBuilder(4)
    cluster = await SimCluster.start(tmp_path / "sim", builder)
    async with rapi_door(cluster, tmp_path) as door, ganeti(door) as found:
        yield found
    await cluster.stop()


pytestmark = pytest.mark.oracle


async def _cluster(client):
    assert await client("GetVersion") == 2
    assert "instance-create-reqv1" in await client("GetFeatures")
    assert (await client("GetInfo"))["name"] == "test"
    assert "tiny" in " ".join(await client("GetOperatingSystems"))
    await client.job("ModifyCluster", enabled_disk_templates=["ext", "file", "drbd"])
    await client.job("RedistributeConfig")
    await client.job("AddClusterTags", ["one", "two"])
    await client.job("DeleteClusterTags", ["two"])
    assert await client("GetClusterTags") == ["one"]


async def _groups_and_networks(client):
    await client.job("CreateGroup", "east", alloc_policy="preferred")
    assert sorted(await client("GetGroups")) == ["default", "east"]
    assert len(await client("GetGroups", bulk=True)) == 2
    await client.job("ModifyGroup", "east", alloc_policy="last_resort")
    assert (await client("GetGroup", "east"))["alloc_policy"] == "last_resort"
    await client.job("RenameGroup", "east", "west")
    await client.job("AssignGroupNodes", "west", ["node4"], force=True)
    await client.job("AssignGroupNodes", "default", ["node4"], force=True)
    await client.job("AddGroupTags", "west", ["red"])
    assert await client("GetGroupTags", "west") == ["red"]
    await client.job("DeleteGroupTags", "west", ["red"])
    await client.job("DeleteGroup", "west")
    await client.job("CreateNetwork", "lan", "192.0.2.0/24", gateway="192.0.2.1")
    assert await client("GetNetworks") == ["lan"]
    assert (await client("GetNetworks", bulk=True))[0]["name"] == "lan"
    await client.job("ConnectNetwork", "lan", "default", "bridged", "br0")
    await client.job("DisconnectNetwork", "lan", "default")
    await client.job("ModifyNetwork", "lan", gateway="192.0.2.254")
    assert (await client("GetNetwork", "lan"))["gateway"] == "192.0.2.254"
    await client.job("AddNetworkTags", "lan", ["blue"])
    assert await client("GetNetworkTags", "lan") == ["blue"]
    await client.job("DeleteNetworkTags", "lan", ["blue"])
    await client.job("DeleteNetwork", "lan")


async def _nodes(client):
    assert sorted(await client("GetNodes")) == ["node1", "node2", "node3", "node4"]
    assert len(await client("GetNodes", bulk=True)) == 4
    assert (await client("GetNode", "node1"))["role"] == "M"
    assert await client("GetNodeRole", "node1") == "master"
    await client.job("SetNodeRole", "node4", "drained", force=True)
    assert await client("GetNodeRole", "node4") == "drained"
    await client.job("SetNodeRole", "node4", "regular")
    await client.job("ModifyNode", "node4", drained=False)
    await client.job("AddNodeTags", "node4", ["hot"])
    assert await client("GetNodeTags", "node4") == ["hot"]
    await client.job("DeleteNodeTags", "node4", ["hot"])
    await client.job("PowercycleNode", "node4", force=True)


async def _instance(client):
    made = {"os": "tiny", "pnode": "node2", "ip_check": False, "name_check": False}
    disks = [{"size": 128, "provider": "san"}]
    await client.job("CreateInstance", "create", "web1", "ext", disks, [], **made)
    assert await client("GetInstances") == ["web1"]
    assert (await client("GetInstances", bulk=True))[0]["pnode"] == "node2"
    assert (await client("GetInstance", "web1"))["status"] == "running"
    (info,) = await client.job("GetInstanceInfo", "web1")
    assert [one["name"] for one in info.values()] == ["web1"]
    assert (await client("GetInstanceConsole", "web1"))["instance"] == "web1"
    await client.job("ModifyInstance", "web1", beparams={"vcpus": 2})
    await client.job("GrowInstanceDisk", "web1", 0, 64)
    await client.job("AddInstanceTags", "web1", ["prod"])
    assert await client("GetInstanceTags", "web1") == ["prod"]
    await client.job("DeleteInstanceTags", "web1", ["prod"])
    await client.job("MigrateInstance", "web1", target_node="node3")
    await client.job("FailoverInstance", "web1", target_node="node2")
    await client.job("RebootInstance", "web1", reboot_type="hard")
    await client.job("ShutdownInstance", "web1")
    await client.job("ActivateInstanceDisks", "web1")
    await client.job("DeactivateInstanceDisks", "web1")
    await client.job("ReinstallInstance", "web1", os="tiny", no_startup=True)
    await client.job("RenameInstance", "web1", "web2")
    await client.job("StartupInstance", "web2")
    await client.job("EvacuateNode", "node2", mode="primary-only")
    with pytest.raises(Refused, match="404"):
        await client("GetInstance", "web1")


async def _storage_and_exports(client):
    disks = [{"size": 128}]
    both = {"pnode": "node1", "snode": "node2", "os": "tiny"}
    await client.job("CreateInstance", "create", "db1", "drbd", disks, [], **both)
    await client.job("ReplaceInstanceDisks", "db1", mode="replace_on_primary")
    to = {"mode": "replace_new_secondary", "remote_node": "node3"}
    await client.job("ReplaceInstanceDisks", "db1", disks=[0], **to)
    await client.job("MigrateNode", "node1", mode="live")
    await client.job("ShutdownInstance", "db1")
    await client.job("RecreateInstanceDisks", "db1")
    await client.job("PrepareExport", "db1", "local")
    await client.job("ExportInstance", "db1", "local", "node2")
    await client.job("DeleteInstance", "db1")
    assert "db1" not in await client("GetInstances")
    (rows,) = await client.job("GetNodeStorageUnits", "node1", "lvm-pv", "name,size")
    assert rows
    assert rows == [[str(name), size] for name, size in rows]
    name = rows[0][0]
    change = ("node1", "lvm-pv", name)
    await client.job("ModifyNodeStorageUnits", *change, allocatable=True)
    await client("RepairNodeStorageUnits", "node1", "lvm-vg", "xenvg")


async def _several(client):
    fields = ("create", "a1", "ext", [{"size": 64, "provider": "san"}], [])
    first = await client("InstanceAllocation", *fields, os="tiny")
    both = [first, first | {"name": "a2"}]
    (told,) = await client.job("InstancesMultiAlloc", both, iallocator="hail")
    assert told["allocatable"] == ["a1", "a2"]
    for taken, number in told["jobs"]:
        assert taken
        assert await client("WaitForJobCompletion", number)
    assert {"a1", "a2"} < set(await client("GetInstances"))


async def _jobs_and_queries(client):
    numbers = await client("GetJobs")
    assert [one["id"] for one in await client("GetJobs", bulk=True)] == numbers
    assert await client("WaitForJobCompletion", numbers[0])
    told = await client("WaitForJobChange", numbers[0], ["status"], None, None)
    assert told["job_info"] == ["success"]
    done, _ = await client("CancelJob", numbers[0])
    assert done is False
    found = await client("Query", "node", ["name"], qfilter=["=", "name", "node1"])
    assert found["data"] == [[[0, "node1"]]]
    (field,) = (await client("QueryFields", "node", fields=["name"]))["fields"]
    assert field["name"] == "name"


async def _filters(client):
    assert await client("GetFilters") == []
    with pytest.raises(Refused, match="404"):
        await client("GetFilter", "absent")
    for call in ("AddFilter",), ("ReplaceFilter", "absent"):
        method, *names = call
        with pytest.raises(Refused, match="400"):
            await client(method, *names, 0, [], "ACCEPT", [])
    with pytest.raises(Refused, match="400"):
        await client("DeleteFilter", "absent")


def _methods():
    """Return the names of all methods of Ganeti's client."""
    source = unpacked(PACKAGES) / PLACE / "ganeti/rapi/client.py"
    text = source.read_text().partition("class GanetiRapiClient")[2]
    return set(re.findall(r"^  def ([A-Z]\w+)", text, re.MULTILINE))


async def test_a_life_by_ganetis_client(client):
    await _cluster(client)
    await _groups_and_networks(client)
    await _nodes(client)
    await _instance(client)
    await _storage_and_exports(client)
    await _several(client)
    await _jobs_and_queries(client)
    await _filters(client)
    assert _methods() <= client.called
