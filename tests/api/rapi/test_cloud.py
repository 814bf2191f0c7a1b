# SPDX-License-Identifier: BSD-2-Clause
"""What a cloud's client of Ganeti takes for granted, and what users asked of it."""

import pytest

from moorage.testing.cluster import ClusterBuilder, SimCluster
from rapi_door import RapiDoor, rapi_door

BARE = {
    "__version__": 1,
    "mode": "create",
    "name": "bare",
    "disk_template": "diskless",
    "disks": [],
    "nics": [],
    "os": "tiny",
    "pnode": "node1",
    "no_install": True,
}


@pytest.fixture
async def door(tmp_path):
    builder = (
        ClusterBuilder()
        .disk("root", mode="rw")
        .disk("extra", "file", logical_id=("file", "/local/extra"), params={})
        .instance("web1", disks=("root",))
        .instance("mixed", disks=("extra",))
    )
    cluster = await SimCluster.start(tmp_path / "sim", builder)
    async with rapi_door(cluster, tmp_path) as found:
        yield found
    await cluster.stop()


async def modify(door: RapiDoor, name: str, **fields):
    return await door.does("PUT", f"/2/instances/{name}/modify", fields)


@pytest.mark.requirement("S1-24")
async def test_a_disk_is_added_at_index_minus_one_and_kept(door: RapiDoor):
    features = (await door.ask("GET", "/2/features")).body
    assert "moorage-disks" in features
    wish = {"size": 64, "provider": "san", "name": "vol1", "dev_type": "ext"}
    await modify(door, "web1", disks=[["add", "-1", wish]], hotplug_if_possible=True)
    told = (await door.ask("GET", "/2/instances/web1")).body
    assert told["disk.names"] == ["root", "vol1"]
    await modify(door, "web1", disks=[["remove", "1", {}]], keep_disks=True)
    told = (await door.ask("GET", "/2/instances/web1")).body
    assert told["disk.names"] == ["root"]


@pytest.mark.requirement("S3-02")
async def test_a_disk_has_tags_that_a_search_finds(door: RapiDoor):
    await door.does("PUT", "/2/disks/root/tags?tag=gold")
    assert (await door.ask("GET", "/2/disks/root/tags")).body == ["gold"]
    found = await door.cluster.run("OP_TAGS_SEARCH", pattern="^gold$")
    assert [list(one) for one in found] == [["/disks/root", "gold"]]


@pytest.mark.requirement("S3-26")
async def test_the_old_interface_works_where_disks_are_of_one_kind(door: RapiDoor):
    disks = [{"size": 64, "provider": "san"}]
    wish = {"__version__": 1, "mode": "create", "name": "old", "disk_template": "ext"}
    wish |= {"disks": disks, "nics": [], "os": "tiny", "pnode": "node1"}
    await door.does("POST", "/2/instances", wish)
    told = (await door.ask("GET", "/2/instances/old")).body
    assert (told["disk_template"], told["disk.sizes"]) == ("ext", [64])
    await door.does("POST", "/2/instances/old/disk/0/grow", {"amount": 64})
    await door.does("PUT", "/2/instances/old/shutdown", {})
    await door.does("DELETE", "/2/instances/old", {})


@pytest.mark.requirement("S3-32")
async def test_several_kinds_of_disks_are_mixed(door: RapiDoor):
    wish = {"size": 64, "provider": "san", "dev_type": "ext"}
    await modify(door, "mixed", disks=[["add", wish]])
    told = (await door.ask("GET", "/2/instances/mixed")).body
    assert told["disk_template"] == "mixed"


@pytest.mark.requirement("S3-30", "S3-31", "S3-32", "S3-34")
async def test_a_query_tells_the_template_that_disks_add_up_to(door: RapiDoor):
    await door.does("POST", "/2/instances", BARE)
    wish = {"size": 64, "provider": "san", "dev_type": "ext"}
    await modify(door, "mixed", disks=[["add", wish]])
    asked = "/2/query/instance?fields=name,disk_template"
    rows = (await door.ask("GET", asked)).body["data"]
    told = {name: template for (_, name), (_, template) in rows}
    assert told == {"web1": "ext", "mixed": "mixed", "bare": "diskless"}
    some = {"fields": ["name"], "qfilter": ["==", "disk_template", "mixed"]}
    found = (await door.ask("PUT", "/2/query/instance", some)).body["data"]
    assert found == [[[0, "mixed"]]]
