# SPDX-License-Identifier: BSD-2-Clause
"""Servers and their volumes, over HTTP, as compute tells them."""

import time
from typing import Any

import pytest
from site_of_people import Answer, Site

from moorage_cloud.models import Server, Volume

requirement = pytest.mark.requirement


def post(site: Site, server: str, volume: dict[str, Any], at: str = "2.100") -> Answer:
    body = {"volumeAttachment": {"volumeId": volume["id"], "device": None}}
    path = f"/{site.server(server)}/os-volume_attachments"
    return site.anna.servers("POST", path, body, at=at)


def get(site: Site, server: str, volume: dict[str, Any], at: str = "2.100") -> Answer:
    path = f"/{site.server(server)}/os-volume_attachments/{volume['id']}"
    return site.anna.servers("GET", path, at=at)


@requirement("S1-08", "S1-18", "S1-23")
def test_an_attachment_is_shown_when_the_guest_has_the_disk(site: Site):
    made = site.anna.new_volume()
    server = f"/{site.server('a1')}"
    answer = post(site, "a1", made)
    assert answer.status == 200
    assert answer.body["volumeAttachment"]["volumeId"] == made["id"]

    shown = site.anna.look(made)
    assert (shown["status"], shown["attachments"]) == ("attaching", [])
    assert get(site, "a1", made).status == 404
    attachments = f"{server}/os-volume_attachments"
    assert site.anna.servers("GET", attachments).body == {"volumeAttachments": []}

    site.docks.settle()
    shown = site.anna.look(made)
    assert shown["status"] == "in-use"
    assert shown["attachments"][0]["server_id"] == site.server("a1")
    assert get(site, "a1", made).status == 200
    (listed,) = site.anna.servers("GET", attachments).body["volumeAttachments"]
    assert listed["volumeId"] == made["id"]
    (of_server,) = site.anna.servers("GET", server).body["server"][
        "os-extended-volumes:volumes_attached"
    ]
    assert of_server == {"id": made["id"], "delete_on_termination": False}

    path = f"{attachments}/{made['id']}"
    for _ in range(2):  # once more is as good
        assert site.anna.servers("DELETE", path).status == 202
        shown = site.anna.look(made)
        assert (shown["status"], len(shown["attachments"])) == ("detaching", 1)
    site.docks.settle()
    shown = site.anna.look(made)
    assert (shown["status"], shown["attachments"]) == ("available", [])
    assert site.anna.servers("DELETE", path).status == 404


def test_the_same_request_again_succeeds(site: Site):
    made = site.anna.new_volume()
    first, second = post(site, "a1", made), post(site, "a1", made)
    assert first.status == second.status == 200
    assert first.body == second.body
    site.docks.settle()
    assert post(site, "a1", made).body == first.body
    (asked,) = [request for request, _ in site.docks.piers["a"].asked]
    assert asked.name == Volume.objects.get().backend_volume_uuid


@requirement("S1-15")
def test_a_volume_is_on_one_server(site: Site):
    made = site.anna.new_volume()
    post(site, "a1", made)
    for server in ("a2", "b1"):
        answer = post(site, server, made)
        assert answer.status == 400
        assert "status must be available or downloading" in answer.fault


@requirement("S1-16")
def test_a_server_is_ready_for_it(site: Site):
    made = site.anna.new_volume()
    Server.objects.update(operstate="BUILD")
    answer = post(site, "a1", made)
    assert answer.status == 409
    assert answer.fault.startswith("buildInProgress 409")
    Server.objects.update(operstate="STARTED", action="STOP")
    answer = post(site, "a1", made)
    assert answer.fault.startswith("badRequest 400")
    assert site.anna.look(made)["status"] == "available"


EXACT = {
    "2.1": {"id", "serverId", "volumeId", "device"},
    "2.69": {"id", "serverId", "volumeId", "device"},
    "2.70": {"id", "serverId", "volumeId", "device", "tag"},
    "2.79": {"id", "serverId", "volumeId", "device", "tag", "delete_on_termination"},
    "2.89": {
        *("serverId", "volumeId", "device", "tag", "delete_on_termination"),
        *("attachment_id", "bdm_uuid"),
    },
}


@pytest.mark.parametrize(("at", "names"), EXACT.items())
def test_an_attachment_has_what_its_version_has(site: Site, at: str, names: set[str]):
    made = site.anna.new_volume()
    answer = post(site, "a1", made, at=at)
    assert answer.status == 200
    assert answer.body["volumeAttachment"].keys() == names
    site.docks.settle()
    shown = get(site, "a1", made, at=at).body["volumeAttachment"]
    assert shown.keys() == names
    assert shown.get("id", made["id"]) == made["id"]


def test_from_some_version_on_it_is_told_that_it_is_under_way(site: Site):
    assert post(site, "a1", site.anna.new_volume(), at="2.101").status == 202


def test_a_field_is_there_from_its_version_on(site: Site):
    made = site.anna.new_volume()
    path = f"/{site.server('a1')}/os-volume_attachments"
    given = {"volumeId": made["id"], "delete_on_termination": True}
    body = {"volumeAttachment": given}
    assert site.anna.servers("POST", path, body, at="2.78").status == 400
    answer = site.anna.servers("POST", path, body, at="2.79")
    assert answer.body["volumeAttachment"]["delete_on_termination"] is True
    site.docks.settle()
    one = f"{path}/{made['id']}"
    given["delete_on_termination"] = False
    assert site.anna.servers("PUT", one, body, at="2.85").status == 202
    shown = get(site, "a1", made).body["volumeAttachment"]
    assert shown["delete_on_termination"] is False


def test_servers_are_found_by_name(site: Site):
    def names(query: str) -> list[str]:
        found = site.anna.servers("GET", f"/detail{query}").body["servers"]
        return sorted(one["name"] for one in found)

    assert names("") == ["a1", "a2", "b1", "b2"]
    assert names("?name=a1") == ["a1"]
    assert names("?name=^a") == ["a1", "a2"]
    assert names("?name=1$") == ["a1", "b1"]
    assert names("?name=^a1$") == ["a1"]
    assert names("?name=^1$") == names("?name=(") == []
    assert names("?status=ACTIVE") == ["a1", "a2", "b1", "b2"]
    assert names("?status=SHUTOFF") == []
    brief = site.anna.servers("GET", "?limit=1").body
    assert len(brief["servers"]) == len(brief["servers_links"]) == 1
    assert site.bob.servers("GET", "").body == {"servers": []}
    assert site.bob.servers("GET", "?all_tenants=1").status == 403
    assert len(site.root.servers("GET", "?all_tenants=1").body["servers"]) == 4


def test_no_pattern_of_names_takes_for_ever(site: Site):
    """It would take eight times as long with each character of the name."""
    Server.objects.update(name="web1.example.org")
    begun = time.process_time()
    found = site.rita.servers("GET", "?name=(.|.|.|.|.|.|.|.)*!")
    assert found.body == {"servers": []}
    assert time.process_time() - begun < 2


@requirement("S1-28", "S1-36")
def test_helpers_are_nobodys(site: Site):
    """To whoever asks there is none: a 404 tells less than the 403 of before."""
    Server.objects.filter(name="a1").update(helper=True)
    for who in (site.anna, site.root):
        for path in ("", "/detail"):
            told = who.servers("GET", f"{path}").body["servers"]
            assert site.server("a1") not in {one["id"] for one in told}
        assert who.servers("GET", f"/{site.server('a1')}").status == 404
    made = site.anna.new_volume()
    assert post(site, "a1", made).status == 404


def test_an_attachment_does_not_end_behind_a_servers_back(site: Site):
    made = site.anna.new_volume()
    post(site, "a1", made)
    assert site.anna.volumes("GET", "/attachments").body == {"attachments": []}
    site.docks.settle()
    (listed,) = site.anna.volumes("GET", "/attachments/detail").body["attachments"]
    assert listed["instance"] == site.server("a1")
    assert (listed["volume_id"], listed["status"]) == (made["id"], "attached")
    path = f"/attachments/{listed['id']}"
    assert site.anna.volumes("GET", path).body["attachment"] == listed
    answer = site.anna.volumes("DELETE", path)
    assert answer.status == 409
    assert "using the Compute API" in answer.fault
    assert site.anna.look(made)["status"] == "in-use"
    complete = {"os-complete": {}}
    assert site.anna.volumes("POST", f"{path}/action", complete).status == 204
    assert (
        site.anna.volumes("POST", f"{path}/action", complete, at="3.43").status == 404
    )
    assert site.bob.volumes("GET", path).status == 404


def test_an_attachment_is_made_for_a_server_alone(site: Site):
    made = site.anna.new_volume()
    new: dict[str, Any] = {"volume_uuid": made["id"]}
    for more in (
        {},
        {"connector": {"host": "x"}},
        {"instance_uuid": "x", "mode": "ro"},
    ):
        answer = site.anna.volumes("POST", "/attachments", {"attachment": new | more})
        assert answer.status == 400
    new["instance_uuid"] = site.server("b1")
    answer = site.anna.volumes("POST", "/attachments", {"attachment": new})
    assert answer.body["attachment"]["status"] == "attaching"
    site.docks.settle()
    assert site.anna.look(made)["attachments"][0]["server_id"] == site.server("b1")


def test_a_tag_that_no_guest_would_learn_is_refused(site: Site):
    made = site.anna.new_volume()
    body = {"volumeAttachment": {"volumeId": made["id"], "tag": "data"}}
    answer = site.anna.servers(
        "POST", f"/{site.server('a1')}/os-volume_attachments", body, at="2.49"
    )
    assert answer.fault == (
        "badRequest 400: Attaching tagged block device is not supported for this "
        "server instance."
    )
    assert site.anna.look(made)["status"] == "available"
