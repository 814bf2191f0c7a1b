# SPDX-License-Identifier: BSD-2-Clause
"""Volumes, over HTTP, as a user has them."""

from typing import Any
from urllib.parse import urlencode

import pytest
from site_of_people import Person, Site

from moorage_cloud.api.volume.volumes import SORTABLE
from moorage_cloud.models import Volume, VolumeType
from moorage_cloud.verbs import quota

requirement = pytest.mark.requirement


def asked(site: Site) -> int:
    return sum(len(pier.asked) for pier in site.docks.piers.values())


def attached(site: Site, **given: object) -> dict[str, Any]:
    """Make a volume that server a1 has."""
    made = site.anna.new_volume(**given)
    attach(site.anna, site.server("a1"), made)
    site.docks.settle()
    return site.anna.look(made)


def attach(person: Person, server: str, volume: dict[str, Any]) -> None:
    body = {"volumeAttachment": {"volumeId": volume["id"]}}
    answer = person.servers("POST", f"/{server}/os-volume_attachments", body)
    assert answer.status == 200, answer.body


def act(person: Person, volume: dict[str, Any], **body: object) -> Any:
    named = {name.replace("__", "-"): one for name, one in body.items()}
    return person.volumes("POST", f"/volumes/{volume['id']}/action", named)


@requirement("S1-01", "S1-02", "S1-06")
def test_a_volume_is_made_without_a_server(site: Site):
    made = site.anna.new_volume(name="data", description="mine")
    assert (made["status"], made["attachments"]) == ("available", [])
    assert (made["name"], made["description"]) == ("data", "mine")
    assert site.anna.look(made)["status"] == "available"
    assert asked(site) == 0
    assert quota.usage(site.red.pk)["gigabytes"] == 1


@requirement("S1-06")
def test_more_than_the_quota_is_refused(site: Site):
    path = f"/os-quota-sets/{site.red.pk}"
    body = {"quota_set": {"gigabytes": 3}}
    assert site.root.volumes("PUT", path, body).status == 200
    answer = site.anna.volumes("POST", "/volumes", {"volume": {"size": 4}})
    assert answer.status == 413
    assert answer.body["overLimit"]["retryAfter"] == "0"
    assert answer.headers["Retry-After"] == "0"
    assert "Requested 4G, quota is 3G" in answer.fault
    assert not Volume.objects.exists()


@requirement("S1-45")
def test_a_volume_is_made_with_a_server(site: Site):
    new = {"volume": {"size": 1, "server_id": site.server("a1")}}
    answer = site.anna.volumes("POST", "/volumes?SNF=1", new)
    assert answer.status == 202
    made = answer.body["volume"]
    assert (made["server_id"], made["attachments"]) == (None, [])
    site.docks.settle()
    shown = site.anna.look(made)
    assert shown["status"] == "in-use"
    assert "server_id" not in shown
    (place,) = shown["attachments"]
    assert place["server_id"] == site.server("a1")
    assert place["id"] == place["volume_id"] == made["id"]
    assert place["device"] == "/dev/vdb"
    more = site.anna.volumes("GET", f"/volumes/{made['id']}?SNF=1").body["volume"]
    assert more["server_id"] == site.server("a1")
    assert more["SNF:detachable"] is True


@requirement("S1-04")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"size": 0}, "volume.size"),
        ({"size": 99_999}, "at most 16384 GiB"),
        ({"name": "n" * 256}, "volume.name"),
        ({"description": "n" * 256}, "volume.description"),
        ({"metadata": {str(n): "x" for n in range(11)}}, "at most 10 items"),
        ({"metadata": {"k" * 65: "x"}}, "1 to 64 characters"),
        ({"metadata": {"k": "x" * 256}}, "volume.metadata"),
        ({"volume_type": "nothing"}, "Volume type nothing could not be found."),
        ({"availability_zone": "moon"}, "Availability zone 'moon' is invalid."),
        ({"multiattach": True}, "multiattach"),
        ({"server_id": "nowhere"}, "Instance nowhere could not be found."),
    ],
)
def test_what_no_volume_can_be_is_refused(
    site: Site, given: dict[str, object], words: str
):
    """Each is a 400, but for a type that is not there: that is Cinder's 404.

    A type says where a volume's data is, so that a server's type is no question here.
    """
    answer = site.anna.volumes("POST", "/volumes", {"volume": {"size": 1} | given})
    assert answer.status == (404 if "volume_type" in given else 400)
    assert words in answer.fault
    assert not Volume.objects.exists()
    assert quota.usage(site.red.pk)["volumes"] == 0


@requirement("S1-05")
def test_a_type_that_cannot_be_without_a_server_needs_one(site: Site):
    VolumeType.objects.update(detachable=False)
    answer = site.anna.volumes("POST", "/volumes", {"volume": {"size": 1}})
    assert answer.fault == "badRequest 400: Volume type 'fast' is not detachable"
    assert not Volume.objects.exists()
    assert quota.usage(site.red.pk)["volumes"] == 0


@requirement("S1-F7")
def test_metadata_is_kept_and_changed(site: Site):
    made = site.anna.new_volume(metadata={"a": "1"})
    path = f"/volumes/{made['id']}/metadata"

    def do(method: str, more: str = "", body: object = None) -> Any:
        return site.anna.volumes(method, path + more, body)

    assert do("GET").body == {"metadata": {"a": "1"}}
    assert do("POST", "", {"metadata": {"b": "2"}}).body == {
        "metadata": {"a": "1", "b": "2"}
    }
    assert do("PUT", "/a", {"meta": {"a": "3"}}).body == {"meta": {"a": "3"}}
    assert do("PUT", "/a", {"meta": {"b": "3"}}).status == 400
    assert do("GET", "/a").body == {"meta": {"a": "3"}}
    assert do("DELETE", "/a").status == 200
    assert do("DELETE", "/a").status == do("GET", "/a").status == 404
    assert do("PUT", "", {"metadata": {"c": "4"}}).body == {"metadata": {"c": "4"}}
    put = site.anna.volumes(
        "PUT", f"/volumes/{made['id']}", {"volume": {"metadata": {"d": "5"}}}
    )
    assert put.body["volume"]["metadata"] == {"c": "4", "d": "5"}


def test_metadata_that_somebody_else_has_changed_is_not_overwritten(site: Site):
    made = site.anna.new_volume(metadata={"a": "1"})
    path = f"/volume/v3/volumes/{made['id']}/metadata"
    headers = {"OpenStack-API-Version": "volume 3.15"}
    tag = site.anna.ask("GET", path, **headers).headers["ETag"]
    body = {"metadata": {"a": "2"}}
    done = site.anna.ask("PUT", path, body, **headers, **{"If-Match": tag})
    assert (done.status, done.headers["ETag"] != tag) == (200, True)
    late = site.anna.ask("PUT", path, body, **headers, **{"If-Match": tag})
    assert late.status == 412


def test_a_volume_is_renamed(site: Site):
    made = site.anna.new_volume(name="old")
    path = f"/volumes/{made['id']}"
    answer = site.anna.volumes("PUT", path, {"volume": {"name": "new"}})
    assert answer.body["volume"]["name"] == "new"
    assert site.anna.volumes("PUT", path, {"volume": {}}).status == 400
    assert site.anna.volumes("PUT", path, {"volume": {}}, at="3.52").status == 200


@requirement("S1-27")
def test_a_volume_without_data_is_deleted_at_once(site: Site):
    made = site.anna.new_volume()
    path = f"/volumes/{made['id']}"
    assert (
        site.anna.volumes("DELETE", path + "?cascade=False&force=False").status == 202
    )
    assert site.anna.volumes("GET", path).status == 404
    assert asked(site) == 0
    assert quota.usage(site.red.pk)["volumes"] == 0


def test_a_volume_that_a_server_has_is_not_deleted(site: Site):
    made = attached(site)
    answer = site.anna.volumes("DELETE", f"/volumes/{made['id']}")
    assert answer.status == 400
    assert "must be available or error" in answer.fault
    assert f"server a1 ({site.server('a1')}) has it" in answer.fault
    assert site.anna.look(made)["status"] == "in-use"


@requirement("S1-28", "S1-F5")
def test_while_it_is_deleted_a_volume_is_nowhere(site: Site):
    made = attached(site)
    path = f"/{site.server('a1')}/os-volume_attachments/{made['id']}"
    assert site.anna.servers("DELETE", path).status == 202
    site.docks.settle()
    for _ in range(2):  # once more is as good
        assert site.anna.volumes("DELETE", f"/volumes/{made['id']}").status == 202
        shown = site.anna.look(made)
        assert (shown["status"], shown["attachments"]) == ("deleting", [])
    assert quota.usage(site.red.pk)["volumes"] == 1
    site.docks.settle()
    assert site.anna.volumes("GET", f"/volumes/{made['id']}").status == 404
    assert quota.usage(site.red.pk)["volumes"] == 0


def test_a_volume_is_extended_also_in_use(site: Site):
    idle, busy = site.anna.new_volume(), attached(site)
    assert act(site.anna, idle, **{"os-extend": {"new_size": 2}}).status == 202
    assert site.anna.look(idle)["size"] == 2
    assert act(site.anna, idle, **{"os-extend": {"new_size": 2}}).status == 400
    body = {"os-extend": {"new_size": 2}}
    path = f"/volumes/{busy['id']}/action"
    assert site.anna.volumes("POST", path, body, at="3.41").status == 400
    assert site.anna.volumes("POST", path, body, at="3.42").status == 202
    site.docks.settle()
    assert (site.anna.look(busy)["size"], site.anna.look(busy)["status"]) == (
        2,
        "in-use",
    )


@requirement("S1-F11")
def test_administrators_set_right_and_take_off(site: Site):
    made = attached(site)
    force = {"os-force_detach": {}}
    for one in (force, {"os-reset_status": {"status": "error"}}):
        assert act(site.anna, made, **one).status == 403
    lie = act(site.root, made, **{"os-reset_status": {"status": "available"}})
    assert (lie.status, "is attached to server" in lie.fault) == (400, True)
    assert act(site.root, made, **force).status == 202
    site.docks.settle()
    shown = site.anna.look(made)
    assert (shown["status"], shown["attachments"]) == ("available", [])
    done = act(site.root, made, **{"os-reset_status": {"status": "error"}})
    assert done.status == 202
    assert site.anna.look(made)["status"] == "error"


def test_an_action_is_one_that_is_there(site: Site):
    made = site.anna.new_volume()
    for body in ({}, {"os-nonsense": {}}, {"os-extend": {}, "os-retype": {}}):
        assert act(site.anna, made, **body).status == 400
    assert (
        act(site.anna, made, **{"os-extend": {"new_size": 2, "odd": 1}}).status == 400
    )


def test_flags_are_set(site: Site):
    made = site.anna.new_volume()
    assert act(site.anna, made, **{"os-set_bootable": {"bootable": True}}).status == 200
    read_only = {"os-update_readonly_flag": {"readonly": True}}
    assert act(site.anna, made, **read_only).status == 202
    assert site.anna.look(made)["bootable"] == "true"
    assert Volume.objects.get().read_only
    path = f"/{site.server('a1')}/os-volume_attachments"
    site.anna.servers("POST", path, {"volumeAttachment": {"volumeId": made["id"]}})
    site.docks.settle()
    writes = {"os-update_readonly_flag": {"readonly": False}}
    assert act(site.anna, made, **writes).status == 400
    assert Volume.objects.get().read_only


def names(person: Person, query: str, at: str = "3.71") -> Any:
    answer = person.volumes("GET", f"/volumes/detail{query}", at=at)
    if answer.status != 200:
        return answer.status
    return [one["name"] for one in answer.body["volumes"]]


def test_volumes_are_listed_in_order_and_in_pages(site: Site):
    for name in "bdac":
        site.anna.new_volume(name=name)
    assert names(site.anna, "") == ["c", "a", "d", "b"]
    assert names(site.anna, "?sort=name:asc") == ["a", "b", "c", "d"]
    assert names(site.anna, "?sort_key=name&sort_dir=desc") == ["d", "c", "b", "a"]
    assert names(site.anna, "?sort=size:asc,name:desc") == ["d", "c", "b", "a"]
    assert names(site.anna, "?limit=0") == []
    for wrong in ("?limit=-1", "?limit=x", "?sort=odd", "?sort=name:up", "?offset=-1"):
        assert names(site.anna, wrong) == 400, wrong
    for wrong in ("?marker=nowhere", f"?marker={'0' * 32}"):
        assert names(site.anna, wrong) == 404


ORDERS = [
    order
    for key in SORTABLE
    for order in (f"{key}:asc", f"{key}:desc", f"{key}:asc,name:desc")
]


def test_pages_by_marker_have_each_volume_once(site: Site):
    made = {site.anna.new_volume(name=name)["id"] for name in "bdac"}
    site.anna.new_volume(size=2)
    taken = site.anna.new_volume(server_id=site.server("a1"))  # has a host
    site.docks.settle()
    made |= {one["id"] for one in site.anna.volumes("GET", "/volumes").body["volumes"]}
    assert taken["id"] in made
    for order in ORDERS:
        whole = site.anna.volumes("GET", f"/volumes?sort={order}").body["volumes"]
        seen = paged(site, f"limit=2&with_count=True&sort={order}", len(made))
        assert seen == [one["id"] for one in whole], order
        assert set(seen) == made, order


def paged(site: Site, query: str, count: int) -> list[str]:
    """Return the volumes of all pages, each of which must tell their number."""
    seen, path = [], f"/volumes/detail?{query}"
    while path:
        body = site.anna.volumes("GET", path).body
        assert body["count"] == count
        seen += [one["id"] for one in body["volumes"]]
        (link,) = body.get("volumes_links", [{}]) or [{}]
        path = link.get("href", "").partition(site.red.pk)[2]
    return seen


def test_volumes_are_chosen(site: Site):
    site.anna.new_volume(name="one", metadata={"a": "1"})
    site.anna.new_volume(name="two", size=2)
    site.bob.new_volume(name="three")
    for query, found in {
        "?name=one": ["one"],
        "?name~=w": ["two"],
        "?status=available": ["two", "one"],
        "?status=error": [],
        "?metadata={'a':'1'}": ["one"],
        "?metadata={'a':'2'}": [],
        "?metadata=a": 400,
        "?size=2": ["two"],
        "?bootable=true": [],
        "?all_tenants=1": ["two", "one"],
        "?created_at=lt:2001-01-01T00:00:00": [],
        "?created_at=gt:2001-01-01T00:00:00": ["two", "one"],
        "?created_at=gt:x": 400,
        "?odd=1": 400,
    }.items():
        assert names(site.anna, query) == found, query
    assert names(site.anna, "?odd=1", at="3.30") == ["two", "one"]
    assert names(site.root, "?all_tenants=1") == ["three", "two", "one"]
    assert names(site.root, f"?all_tenants=1&project_id={site.blue.pk}") == ["three"]
    assert names(site.root, "") == []
    total = site.anna.volumes("GET", "/volumes/summary").body["volume-summary"]
    assert total == {"total_count": 2, "total_size": 3, "metadata": {"a": ["1"]}}
    assert (
        "metadata"
        not in site.anna.volumes("GET", "/volumes/summary", at="3.35").body[
            "volume-summary"
        ]
    )


@pytest.mark.parametrize(
    "query",
    [
        "sort=host&marker={id}",
        "sort=" + ",".join(["name"] * 3000),
        "metadata={{[]:1}}",
        "metadata={{" + ",".join(f"{number}:1" for number in range(1200)) + "}}",
        "created_at=" + ",".join(["gt:2026-01-01T00:00:00"] * 1500),
    ],
)
def test_a_list_is_not_asked_for_in_ways_that_no_database_can_answer(
    site: Site, query: str
):
    one = site.anna.new_volume()
    answer = site.anna.volumes("GET", f"/volumes?{query.format(id=one['id'])}")
    assert answer.status == 400


def test_a_name_is_no_id(site: Site):
    site.anna.new_volume(name="one")
    answer = site.anna.volumes("GET", "/volumes/one")
    assert answer.fault == "itemNotFound 404: Volume one could not be found."


def test_what_lists_can_be_chosen_by_is_told(site: Site):
    path = "/resource_filters?resource=volume"
    (told,) = site.anna.volumes("GET", path).body["resource_filters"]
    assert told["resource"] == "volume"
    assert {"name", "status", "metadata", "created_at"} <= set(told["filters"])
    assert not {"limit", "marker", "all_tenants"} & set(told["filters"])
    assert site.anna.volumes("GET", path, at="3.32").status == 404


def test_administrators_drain_clusters(site: Site):
    def states() -> dict[str, str]:
        found = site.root.volumes("GET", "/os-services").body["services"]
        return {one["host"]: one["status"] for one in found}

    assert states() == {"a": "enabled", "b": "enabled"}
    body = {"host": "a", "binary": "cinder-volume"}
    assert site.anna.volumes("PUT", "/os-services/disable", body).status == 403
    assert site.root.volumes("PUT", "/os-services/disable", body).status == 200
    assert states() == {"a": "disabled", "b": "enabled"}
    assert site.root.volumes("PUT", "/os-services/enable", body).status == 200
    assert states() == {"a": "enabled", "b": "enabled"}
    body["host"] = "nowhere"
    assert site.root.volumes("PUT", "/os-services/enable", body).status == 404


def test_private_types_are_for_administrators(site: Site):
    new = {"volume_type": {"name": "secret", "os-volume-type-access:is_public": False}}
    made = site.root.volumes("POST", "/types", new).body["volume_type"]
    seen = site.anna.volumes("GET", "/types?is_public=none").body["volume_types"]
    assert [one["name"] for one in seen] == ["fast"]
    assert site.anna.volumes("GET", f"/types/{made['id']}").status == 404
    wanted = {"volume": {"size": 1, "volume_type": "secret"}}
    assert site.anna.volumes("POST", "/volumes", wanted).status == 404
    assert (
        site.anna.volumes("GET", "/types/default").body["volume_type"]["name"] == "fast"
    )
    assert "extra_specs" not in seen[0]


def test_types_are_made_and_changed_by_administrators(site: Site):
    def types(method: str, path: str, body: object = None) -> Any:
        return site.root.volumes(method, f"/types{path}", body)

    new = {"volume_type": {"name": "slow", "extra_specs": {"k": "v"}}}
    made = types("POST", "", new).body["volume_type"]
    kind = VolumeType.objects.get(name="slow")
    assert (kind.disk_template, kind.domain) == ("ext_named", site.docks.domain)
    assert types("POST", "", new).status == 409
    path = f"/{made['id']}"
    assert types("PUT", path, {"volume_type": {"name": "slower"}}).status == 200
    assert types("PUT", path, {"volume_type": {}}).status == 400
    specs = f"{path}/extra_specs"
    assert types("POST", specs, {"extra_specs": {"a": "b"}}).status == 200
    assert types("PUT", f"{specs}/a", {"a": "c"}).body == {"a": "c"}
    assert types("PUT", f"{specs}/a", {"b": "c"}).status == 400
    assert types("GET", f"{specs}/a").body == {"a": "c"}
    assert types("DELETE", f"{specs}/a").status == 202
    assert types("GET", f"{specs}/a").status == 404
    assert types("POST", specs, {"extra_specs": {"SNF:pool": "x"}}).status == 400
    odd = {"name": "odd", "extra_specs": {"SNF:domain": "x"}}
    assert types("POST", "", {"volume_type": odd}).status == 400
    site.anna.new_volume(volume_type="slower")
    assert types("DELETE", path).status == 400
    assert types("DELETE", f"/{site.docks.type.uuid}").status == 400


ODD_KEYS = ["1", "é", 'a"b', "a.b", "a\\b", "$", "[0]", "a b", "%", "😀", "it's"]


@pytest.mark.parametrize("key", ODD_KEYS)
def test_metadata_is_found_by_any_key(site: Site, key: str):
    site.anna.new_volume(name="other", metadata={"x": "7"})
    site.anna.new_volume(name="one", metadata={"x": "8", key: "7"})
    for wanted, names in (
        ({key: "7"}, ["one"]),
        ({key: "7", "x": "8"}, ["one"]),
        ({key: "8"}, []),
        ({key: "7", "x": "7"}, []),
    ):
        query = urlencode({"metadata": repr(wanted)})
        found = site.anna.volumes("GET", f"/volumes?{query}").body["volumes"]
        assert [one["name"] for one in found] == names
