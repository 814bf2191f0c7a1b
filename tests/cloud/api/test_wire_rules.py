# SPDX-License-Identifier: BSD-2-Clause
"""What clients of OpenStack take for granted of every answer, line by line."""

from typing import Any
from uuid import UUID

import pytest
from cloud_things import Things
from site_of_people import COMPUTE, VOLUME, Answer, Site, ask

from moorage_cloud.models import Volume


@pytest.fixture
def things(site: Site) -> Things:
    """Return one of everything."""
    return Things(site)


def attach(site: Site, volume: str, at: str, server: str = "a1") -> Answer:
    body = {"volumeAttachment": {"volumeId": volume}}
    path = f"/{site.server(server)}/os-volume_attachments"
    return site.anna.servers("POST", path, body, at=at)


def test_every_answer_says_its_version_and_its_request(site: Site):
    anna, asked = site.anna, {"OpenStack-API-Version": "volume 3.60"}
    large = {"volume": {"name": "x" * 200_000}}
    over = {"volume": {"size": 2000}}
    for status, answer in (
        (200, anna.volumes("GET", "/volumes", at="3.60")),
        (202, anna.volumes("POST", "/volumes", {"volume": {"size": 1}}, at="3.60")),
        (400, anna.volumes("GET", "/volumes?limit=x", at="3.60")),
        (400, anna.ask("GET", f"{VOLUME}/{site.blue.pk}/volumes", **asked)),
        (401, ask("GET", f"{VOLUME}/volumes", **asked)),
        (403, anna.volumes("GET", "/os-services", at="3.60")),
        (404, anna.volumes("GET", "/volumes/7", at="3.60")),
        (405, anna.volumes("PATCH", "/volumes", at="3.60")),
        (413, anna.volumes("POST", "/volumes", large, at="3.60")),
        (413, anna.volumes("POST", "/volumes", over, at="3.60")),
    ):
        assert answer.status == status
        assert answer.headers["OpenStack-API-Version"] == "volume 3.60"
        assert answer.headers["Vary"] == "OpenStack-API-Version"
        request_id = answer.headers["x-openstack-request-id"]
        assert request_id == answer.headers["x-compute-request-id"]
        assert request_id.startswith("req-")
        assert answer.headers["Content-Type"] == "application/json"


def test_compute_says_it_twice(site: Site):
    server = site.server("a1")
    for path, status in ((f"/{server}", 200), ("/7", 404)):
        answer = site.anna.servers("GET", path, at="2.89")
        assert answer.status == status
        assert answer.headers["OpenStack-API-Version"] == "compute 2.89"
        assert answer.headers["X-OpenStack-Nova-API-Version"] == "2.89"
    plain = site.anna.ask("GET", f"{COMPUTE}/servers")
    assert plain.headers["OpenStack-API-Version"] == "compute 2.1"
    latest = {"OpenStack-API-Version": "compute latest"}
    answer = site.anna.ask("GET", f"{COMPUTE}/servers", **latest)
    assert answer.headers["X-OpenStack-Nova-API-Version"] == "2.101"


def test_each_service_names_the_versions_that_it_speaks(site: Site):
    answer = site.anna.servers("GET", "", at="2.102")
    assert answer.status == 406
    assert answer.fault == (
        "computeFault 406: Version 2.102 is not supported by the API. Minimum is 2.1 "
        "and maximum is 2.101."
    )
    assert site.anna.servers("GET", "", at="two").status == 400


FAULTS = {
    ("GET", "/volumes/7"): "itemNotFound 404: Volume 7 could not be found.",
    ("GET", "/volumes?limit=-1"): "badRequest 400: Invalid input",
    ("GET", "/volumes?sort=odd"): (
        "badRequest 400: Invalid input received: Invalid sort key"
    ),
    ("GET", "/volumes?marker=7"): "itemNotFound 404: Marker 7 could not be found.",
    ("GET", "/os-services"): "forbidden 403: Policy doesn't allow",
}


@pytest.mark.parametrize(("asked", "fault"), FAULTS.items())
def test_a_fault_has_its_name_its_code_and_a_sentence(
    site: Site, asked: tuple[str, str], fault: str
):
    answer = site.anna.volumes(*asked)
    assert answer.fault.startswith(fault)
    (inner,) = answer.body.values()
    assert inner.keys() == {"code", "message"}


def test_over_the_limit_says_when_to_come_back(site: Site):
    answer = site.anna.volumes("POST", "/volumes", {"volume": {"size": 2000}})
    assert (answer.status, answer.headers["Retry-After"]) == (413, "0")
    assert answer.body["overLimit"].keys() == {"code", "message", "retryAfter"}


def test_a_page_has_a_thousand_at_most(site: Site):
    kind = site.docks.type
    Volume.objects.bulk_create(
        Volume(
            name=f"v{number}",
            userid=site.anna.user.pk,
            project=site.red.pk,
            size=1,
            volume_type=kind,
            status="available",
        )
        for number in range(1001)
    )
    for query in ("", "?limit=2000"):
        body = site.anna.volumes("GET", f"/volumes/detail{query}").body
        assert len(body["volumes"]) == 1000
        (link,) = body["volumes_links"]
        assert link["rel"] == "next"
        headers = {"OpenStack-API-Version": "volume 3.71"}
        rest = site.anna.ask("GET", link["href"], **headers).body
        assert len(rest["volumes"]) == 1
        assert "volumes_links" not in rest


def test_the_newest_comes_first_and_old_ways_to_sort_are_good(site: Site):
    for name in "bca":
        site.anna.new_volume(name=name)

    def names(query: str) -> str:
        found = site.anna.volumes("GET", f"/volumes{query}").body["volumes"]
        return "".join(one["name"] for one in found)

    assert names("") == "acb"
    assert names("?sort_key=name") == "cba"
    assert names("?sort_key=name&sort_dir=asc") == "abc"
    assert names("?sort=name:asc&limit=1&offset=1") == "b"
    both = site.anna.volumes("GET", "/volumes?sort=name&sort_key=name")
    assert both.status == 400


VOLUME_KEYS = {
    *("attachments", "availability_zone", "bootable", "consistencygroup_id"),
    *("created_at", "description", "encrypted", "id", "links", "metadata"),
    *("migration_status", "multiattach", "name", "replication_status", "size"),
    *("snapshot_id", "source_volid", "status", "updated_at", "user_id"),
    "volume_type",
}
TENANT = "os-vol-tenant-attr:tenant_id"
OF_ADMINS = {
    "os-vol-host-attr:host",
    "os-vol-mig-status-attr:migstat",
    "os-vol-mig-status-attr:name_id",
}
LATER = {
    "group_id",
    *("shared_targets", "service_uuid", "volume_type_id", "consumes_quota"),
}
OF_ADMINS_LATER = {"provider_id", "cluster_name"}


def test_a_volume_has_no_key_more_than_its_version(site: Site):
    for at, later in (("3.0", set()), ("3.71", LATER)):
        new = {"volume": {"size": 1}}
        made = site.anna.volumes("POST", "/volumes", new, at=at).body["volume"]
        assert made.keys() == VOLUME_KEYS | later
        path = f"/volumes/{made['id']}"
        shown = site.anna.volumes("GET", path, at=at).body["volume"]
        assert shown.keys() == VOLUME_KEYS | later | {TENANT}
        listed = site.anna.volumes("GET", "/volumes/detail", at=at).body["volumes"][0]
        assert listed.keys() == shown.keys()
        put = site.anna.volumes("PUT", path, {"volume": {"name": "n"}}, at=at)
        assert (put.status, put.body["volume"].keys()) == (200, made.keys())
        everything = shown.keys() | OF_ADMINS | (OF_ADMINS_LATER if later else set())
        of_root = site.root.volumes("GET", path, at=at).body["volume"]
        assert of_root.keys() == everything
        more = site.anna.volumes("GET", f"{path}?SNF=1", at=at).body["volume"]
        assert {key for key in more if key.startswith("SNF:")}
        assert "server_id" in more


def test_statuses_and_bodies_are_those_that_clients_wait_for(site: Site):
    made = site.anna.new_volume()["id"]
    server = f"/{site.server('a1')}/os-volume_attachments"
    answer = attach(site, made, at="2.100")
    assert (answer.status, answer.body["volumeAttachment"]["volumeId"]) == (200, made)
    site.docks.settle()
    refused = site.anna.volumes("DELETE", f"/volumes/{made}")
    assert refused.fault.startswith(
        "badRequest 400: Invalid volume: Volume status must be available or error or "
        "error_restoring or error_extending or error_managing and must not be "
        "migrating, attached, belong to a group, have snapshots"
    )
    assert attach(site, made, at="2.100", server="a2").status == 400
    left = site.anna.servers("DELETE", f"{server}/{made}", at="2.100")
    assert (left.status, left.body) == (202, None)
    site.docks.settle()
    later = attach(site, made, at="2.101")
    assert (later.status, later.body["volumeAttachment"]["volumeId"]) == (202, made)
    gone = site.anna.volumes("DELETE", f"/volumes/{site.anna.new_volume()['id']}")
    assert (gone.status, gone.body) == (202, None)


@pytest.mark.parametrize("at", ["2.1", "2.85", "2.101"])
def test_no_volume_takes_anothers_place(site: Site, at: str):
    first, second = site.anna.new_volume()["id"], site.anna.new_volume()["id"]
    attach(site, first, at="2.100")
    site.docks.settle()
    body = {"volumeAttachment": {"volumeId": second}}
    path = f"/{site.server('a1')}/os-volume_attachments/{first}"
    answer = site.anna.servers("PUT", path, body, at=at)
    assert answer.fault == (
        "badRequest 400: another volume cannot take a volume's place here"
    )
    assert site.anna.look({"id": second})["status"] == "available"


def test_ids_are_uuids_and_numbers_are_none(things: Things):
    anna = things.site.anna
    volume = anna.look(things.volume)
    (place,) = volume["attachments"]
    snapshot = anna.volumes("GET", f"/snapshots/{things.ids['snapshot_id']}").body
    ids: list[Any] = [
        *(volume["id"], volume["volume_type_id"]),
        *(place["id"], place["attachment_id"], place["server_id"], place["volume_id"]),
        *(snapshot["snapshot"]["id"], snapshot["snapshot"]["volume_id"]),
        *(things.ids["transfer_id"], things.ids["message_id"]),
    ]
    assert [str(UUID(one)) for one in ids] == ids
    assert place["id"] == volume["id"]
    number = Volume.objects.get(uuid=volume["id"]).pk
    assert anna.volumes("GET", f"/volumes/{number}").status == 404
    assert anna.volumes("GET", "/volumes/of%20red").status == 404


@pytest.mark.parametrize("at", ["3.0", "3.66", "3.67", "3.71"])
def test_a_path_is_good_without_a_project_at_any_version(site: Site, at: str):
    made = site.anna.new_volume()["id"]
    version = {"OpenStack-API-Version": f"volume {at}"}
    for project in ("", f"/{site.red.pk}", f"/{UUID(site.red.pk)}"):
        answer = site.anna.ask("GET", f"{VOLUME}{project}/volumes/{made}", **version)
        assert answer.status == 200
