# SPDX-License-Identifier: BSD-2-Clause
"""Messages: why something could not be done, for whoever wanted it."""

from datetime import timedelta
from typing import Any

from django.utils import timezone
from docks import BROKEN
from site_of_people import Person, Site

from moorage_cloud.models import Message


def told(who: Person, query: str = "", at: str = "3.71") -> list[dict[str, Any]]:
    answer = who.volumes("GET", f"/messages{query}", at=at)
    assert answer.status == 200, answer.body
    return list(answer.body["messages"])


def fail_to_attach(site: Site, server: str = "a1") -> str:
    """Let an attachment fail; return the id of the volume."""
    volume = site.anna.new_volume()["id"]
    pier = site.docks.piers["a"]
    pier.fails = lambda _request: True
    body = {"volumeAttachment": {"volumeId": volume}}
    path = f"/{site.server(server)}/os-volume_attachments"
    assert site.anna.servers("POST", path, body).status == 200
    site.docks.settle()
    pier.fails = lambda _request: False
    return str(volume)


def test_a_verb_that_failed_leaves_a_message(site: Site):
    assert told(site.anna) == []
    volume = fail_to_attach(site)
    (one,) = told(site.anna)
    assert one["resource_type"] == "VOLUME"
    assert one["resource_uuid"] == volume
    assert one["event_id"] == "VOLUME_VOLUME_002_001"
    assert one["message_level"] == "ERROR"
    assert one["user_message"] == f"attach volume: {BROKEN}"
    assert one["request_id"].startswith("req-")
    assert one["guaranteed_until"] > one["created_at"]
    shown = site.anna.volumes("GET", f"/messages/{one['id']}").body["message"]
    assert shown == one


def test_a_snapshot_that_failed_leaves_one(site: Site):
    volume = site.anna.new_volume()
    body = {"volumeAttachment": {"volumeId": volume["id"]}}
    site.anna.servers("POST", f"/{site.server('a1')}/os-volume_attachments", body)
    site.docks.settle()
    site.docks.piers["a"].fails = lambda _request: True
    new = {"snapshot": {"volume_id": volume["id"]}}
    taken = site.anna.volumes("POST", "/snapshots", new).body["snapshot"]["id"]
    site.docks.settle()
    (one,) = told(site.anna)
    assert (one["resource_type"], one["resource_uuid"]) == ("VOLUME_SNAPSHOT", taken)
    assert one["user_message"] == f"create snapshot: {BROKEN}"


def test_messages_are_chosen_by_what_they_say(site: Site):
    first, second = fail_to_attach(site), fail_to_attach(site, "a2")
    newest = [one["resource_uuid"] for one in told(site.anna)]
    assert newest == [second, first]
    (one,) = told(site.anna, f"?resource_uuid={first}")
    for query, number in {
        "?event_id=VOLUME_VOLUME_002_001": 2,
        "?event_id=VOLUME_VOLUME_007_001": 0,
        "?event_id=odd": 0,
        "?resource_type=VOLUME": 2,
        "?resource_type=VOLUME_SNAPSHOT": 0,
        "?message_level=ERROR": 2,
        "?message_level=INFO": 0,
        f"?request_id={one['request_id']}": 1,
        "?limit=1": 1,
        f"?marker={one['id']}": 0,
        "?sort=created_at:asc&limit=1": 1,
    }.items():
        assert len(told(site.anna, query)) == number, query
    # Before 3.5 a list is not chosen from, and not in pages.
    assert len(told(site.anna, "?limit=1&resource_type=odd", at="3.4")) == 2
    assert site.anna.volumes("GET", "/messages", at="3.2").status == 404


def test_a_message_is_deleted_or_goes_after_a_month(site: Site):
    fail_to_attach(site)
    (one,) = told(site.anna)
    path = f"/messages/{one['id']}"
    assert site.rita.volumes("DELETE", path).status == 403
    assert site.bob.volumes("DELETE", path).status == 404
    assert site.anna.volumes("DELETE", path).status == 204
    assert site.anna.volumes("GET", path).fault == (
        f"itemNotFound 404: Message {one['id']} could not be found."
    )
    fail_to_attach(site, "a2")
    Message.objects.update(expires=timezone.now() - timedelta(seconds=1))
    assert told(site.anna) == []
    fail_to_attach(site, "a2")
    assert Message.objects.count() == 1


def test_a_message_stays_with_whom_it_was_for(site: Site):
    """A project that is given the volume learns nothing of the other's servers."""
    volume = fail_to_attach(site)
    offered = site.anna.volumes(
        "POST", "/volume-transfers", {"transfer": {"volume_id": volume}}
    ).body["transfer"]
    accept = {"accept": {"auth_key": offered["auth_key"]}}
    path = f"/volume-transfers/{offered['id']}/accept"
    assert site.bob.volumes("POST", path, accept).status == 202
    assert told(site.bob) == []
    assert len(told(site.anna)) == 1
    assert len(told(site.root)) == 1
