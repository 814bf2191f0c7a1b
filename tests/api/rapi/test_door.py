# SPDX-License-Identifier: BSD-2-Clause
"""RAPI over HTTPS: who comes in, and what is answered."""

import pytest

from moorage.testing.cluster import ClusterBuilder, SimCluster
from rapi_door import RapiDoor, rapi_door


@pytest.fixture
async def door(tmp_path):
    builder = ClusterBuilder().disk("data1").instance("web1", tags=("b", "a"))
    cluster = await SimCluster.start(tmp_path / "sim", builder)
    async with rapi_door(cluster, tmp_path) as found:
        yield found
    await cluster.stop()


async def test_a_list_has_names_and_uris_or_whole_objects(door: RapiDoor):
    short = await door.ask("GET", "/2/instances")
    assert short.body == [{"id": "web1", "uri": "/2/instances/web1"}]
    whole = await door.ask("GET", "/2/instances?bulk=1")
    assert whole.body == [(await door.ask("GET", "/2/instances/web1")).body]
    assert whole.body[0]["name"] == "web1"
    assert sorted(whole.body[0]["tags"]) == ["a", "b"]


async def test_a_job_is_a_number(door: RapiDoor):
    answer = await door.ask("PUT", "/2/instances/web1/startup", None)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    told = (await door.ask("GET", f"/2/jobs/{answer.body}")).body
    assert told["id"] == answer.body
    assert told["summary"] == ["INSTANCE_STARTUP(web1)"]


@pytest.mark.parametrize("user", ["", "root:wrong", "nobody:secret", "short:", "root"])
async def test_who_is_nobody_gets_nothing(door: RapiDoor, user):
    for path in ("/2/info", "/version", "/no/such/path"):
        answer = await door.ask("GET", path, user=user)
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == 'Basic realm="Ganeti Remote API"'
        assert answer.body.keys() == {"code", "message", "explain"}


@pytest.mark.requirement("S3-46")
async def test_a_name_that_several_disks_have_is_one_with_its_instances(
    door: RapiDoor,
):
    """What the refusal of a name alone says is what the next request can say."""
    free = {"name": "root", "size": 64, "provider": "usersan", "disk_template": "ext"}
    for owner in ("web1", "web2"):
        if owner == "web2":
            new = {
                "instance_name": "web2",
                "mode": "create",
                "disk_template": "diskless",
            }
            new |= {"disks": [], "nics": [], "__version__": 1, "no_install": True}
            await door.does("POST", "/2/instances", new)
        await door.does("POST", "/2/disks", free)
        await door.does("PUT", "/2/disks/root/attach", {"instance_name": owner})
    told = await door.ask("GET", "/2/disks/root")
    assert told.status == 400
    assert told.body["error"]["hint"] == "say which: web1/root or web2/root"
    for owner in ("web1", "web2"):
        one = await door.ask("GET", f"/2/disks/{owner}%2Froot")
        assert (one.status, one.body["instance"]) == (200, owner)


@pytest.mark.requirement("S3-51")
async def test_disks_are_objects_of_their_own(door: RapiDoor):
    wish = {"name": "data2", "size": 64, "provider": "san", "disk_template": "ext"}
    await door.does("POST", "/2/disks", wish)
    told = (await door.ask("GET", "/2/disks/data2")).body
    assert (told["size"], told["status"]) == (64, "detached")
    await door.does("PUT", "/2/disks/data2/attach", {"instance_name": "web1"})
    await door.does("POST", "/2/disks/data2/grow", {"amount": 32})
    await door.does("PUT", "/2/disks/data2/tags?tag=gold&tag=fast")
    assert (await door.ask("GET", "/2/disks/data2/tags")).body == ["fast", "gold"]
    await door.does("DELETE", "/2/disks/data2/tags?tag=gold")
    wish = {"disks": [[0, {"snapshot_name": "monday"}]]}
    await door.does("PUT", "/2/instances/web1/snapshot", wish)
    await door.does("PUT", "/2/disks/data2/detach", None)
    await door.does("PUT", "/2/disks/data2/rename", {"new_name": "data3"})
    await door.does("DELETE", "/2/disks/data3")
    story = (await door.ask("GET", f"/2/disks/{told['uuid']}/story")).body
    assert not story["exists"]
    assert story["events"]
    names = [one["name"] for one in (await door.ask("GET", "/2/disks?bulk=1")).body]
    assert sorted(names) == ["data1", "monday"]
    assert {"id": "data1", "uri": "/2/disks/data1"} in (
        await door.ask("GET", "/2/disks")
    ).body


@pytest.mark.requirement("S4-05")
async def test_a_nodes_storage_has_the_form_of_the_design(door: RapiDoor):
    """Units of type, key and more, with their room in MiB; over LUXI the same."""
    told = (await door.ask("GET", "/2/nodes/node1")).body["storage"]
    asked = {"fields": ["storage"], "qfilter": ["==", "name", "node1"]}
    answer = await door.ask("PUT", "/2/query/node", asked)
    assert answer.body["data"] == [[[0, told]]]
    by_kind = {one["sunit"][0]: one for one in told}
    group = by_kind["lvm-vg"]
    assert group["sunit"] == ["lvm-vg", "xenvg", []]
    assert 0 < group["free"] <= group["total"]
    assert all(one.keys() == group.keys() for one in told)


@pytest.mark.requirement("S4-12")
async def test_storage_is_told(door: RapiDoor):
    found = (await door.ask("GET", "/2/storage/providers")).body
    assert "san" in [one["name"] for one in found]
    units = (await door.ask("GET", "/2/storage/units")).body
    node = (await door.ask("GET", "/2/nodes/node1")).body
    assert node["storage"]
    assert all(
        one in units for one in ({"node": "node1", **u} for u in node["storage"])
    )
    assert {"node", "sunit", "free", "total"} == units[0].keys()
    wish = {"pool_name": "fast", "provider": "san", "disk_template": "ext"}
    await door.does("POST", "/2/storage/pools", wish)
    assert (await door.ask("GET", "/2/storage/pools/fast")).body["provider"] == "san"
    asked = {"fields": ["name"], "qfilter": ["==", "name", "fast"]}
    answer = await door.ask("PUT", "/2/query/pool", asked)
    assert answer.body["data"] == [[[0, "fast"]]]
    await door.does("DELETE", "/2/storage/pools/fast")


async def test_filters_are_none_and_changes_say_why(door: RapiDoor):
    assert (await door.ask("GET", "/2/filters")).body == []
    refused = await door.ask("POST", "/2/filters", {"priority": 1})
    assert refused.status == 400
    assert "jobs are not filtered" in refused.body["explain"]
    asked = (await door.ask("GET", "/2/query/filter?fields=uuid,action")).body
    assert asked["data"] == []


async def test_capacity_is_counted_as_the_planner_does(door: RapiDoor):
    path = "/2/capacity?memory=16G&disk=1G&vcpus=1"
    told = (await door.ask("GET", f"{path}&disk_template=ext")).body
    assert told["size"] == {"memory": 16384, "disk": 1024, "vcpus": 1}
    assert told["fits"] == sum(told["nodes"].values()) > 0
    assert told["nodes"].keys() <= {"node1", "node2", "node3"}
    assert told["lost"] == []
    assert told["why"]
    wish = {"instance_name": "big", "beparams": {"memory": 16384}, "pnode": "node2"}
    await door.cluster.run("OP_INSTANCE_CREATE", disk_template="diskless", **wish)
    less = (await door.ask("GET", f"{path}&disk_template=ext")).body
    assert less["fits"] == told["fits"] - 1
    for odd in ("memory=much", "vcpus=-1", "disk_template=cheese"):
        assert (await door.ask("GET", f"/2/capacity?{odd}")).status == 400


async def test_what_fits_without_a_node_and_what_its_loss_would_do(door: RapiDoor):
    for number in (2, 3):
        wish = {"instance_name": f"big{number}", "beparams": {"memory": 16384}}
        wish |= {"disk_template": "diskless", "pnode": f"node{number}"}
        await door.cluster.run("OP_INSTANCE_CREATE", **wish)
    path = "/2/capacity?memory=16G&disk=1G&vcpus=1&disk_template=ext"
    whole = (await door.ask("GET", path)).body
    less = (await door.ask("GET", f"{path}&without=node2")).body
    assert "stranded" not in whole
    assert less["stranded"] == []
    assert "node2" not in less["nodes"]
    assert 0 < less["fits"] < whole["fits"]
    loss = (await door.ask("GET", "/2/capacity/loss?node=node2")).body
    assert loss["survives"]
    assert loss["restarts"].keys() == {"big2"}
    for node, memory in (("node1", 50_000), ("node2", 40_000)):
        wish = {"instance_name": f"huge-{node}", "beparams": {"memory": memory}}
        wish |= {"disk_template": "diskless", "ignore_ipolicy": True, "pnode": node}
        await door.cluster.run("OP_INSTANCE_CREATE", **wish)
    both = (await door.ask("GET", f"{path}&without=node1,node3")).body
    assert both["stranded"] == ["big3", "huge-node1"]
    lost = (await door.ask("GET", "/2/capacity/loss?node=node3")).body
    assert (lost["survives"], lost["restarts"]) == (False, {})
    assert "node2: memory" in " ".join(lost["stranded"]["big3"])
    for odd in ("/2/capacity?without=mars", "/2/capacity/loss?node=mars"):
        assert (await door.ask("GET", odd)).status == 404
    assert (await door.ask("GET", "/2/capacity/loss")).status == 400
