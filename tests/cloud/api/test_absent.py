# SPDX-License-Identifier: BSD-2-Clause
"""What other clouds have and this one has not, and what administrators are told."""

import pytest
from site_of_people import Site

from moorage_cloud.api.volume.absent import ABSENT, NO_ACTIONS, NO_CHANGES


@pytest.mark.parametrize("path", ABSENT)
def test_there_is_none_and_none_is_made(site: Site, path: str):
    one = ABSENT[path]
    for where in (path, f"{path}/detail"):
        assert site.root.volumes("GET", where).body == {one.key: []}
    answer = site.root.volumes("GET", f"{path}/7")
    assert answer.fault == f"itemNotFound 404: {one.what} 7 could not be found."
    if one.refusal is not None:
        refused = site.root.volumes("POST", path, {"word": {"name": "x"}})
        assert refused.status == one.refusal.code
        assert refused.fault.endswith(one.refusal.sentence)


def test_backups_are_refused_as_without_the_service_for_them(site: Site):
    body = {"backup": {"volume_id": site.anna.new_volume()["id"]}}
    answer = site.anna.volumes("POST", "/backups", body)
    assert answer.fault == (
        "serviceUnavailable 503: Service cinder-backup could not be found."
    )


@pytest.mark.parametrize("action", NO_ACTIONS)
def test_an_action_that_nothing_can_do_is_refused(site: Site, action: str):
    made = site.anna.new_volume()
    path = f"/volumes/{made['id']}/action"
    answer = site.root.volumes("POST", path, {action: {"odd": 1}})
    assert answer.status == 400
    assert NO_ACTIONS[action][2] in answer.fault
    assert site.anna.look(made)["status"] == "available"


@pytest.mark.parametrize("path", NO_CHANGES)
def test_a_change_of_services_is_refused(site: Site, path: str):
    answer = site.root.volumes("PUT", path, {"host": "a"})
    assert answer.fault == f"badRequest 400: {NO_CHANGES[path][2]}"


def test_clusters_are_pools_and_hosts(site: Site):
    site.docks.settle()
    pools = site.root.volumes("GET", "/scheduler-stats/get_pools").body["pools"]
    assert pools == [{"name": "a"}, {"name": "b"}]
    attach = {"volumeAttachment": {"volumeId": site.anna.new_volume(size=3)["id"]}}
    site.anna.servers("POST", f"/{site.server('a1')}/os-volume_attachments", attach)
    site.docks.settle()
    detail = "/scheduler-stats/get_pools?detail=true&name=a"
    (one,) = site.root.volumes("GET", detail).body["pools"]
    assert one["capabilities"]["allocated_capacity_gb"] == 3
    assert one["capabilities"]["free_capacity_gb"] == "unknown"
    fast = "/scheduler-stats/get_pools?volume-type=fast"
    assert len(site.root.volumes("GET", fast).body["pools"]) == 2
    can = site.root.volumes("GET", "/capabilities/a").body
    assert (can["volume_backend_name"], can["properties"]) == ("a", {})
    hosts = site.root.volumes("GET", "/os-hosts").body["hosts"]
    assert [one["host_name"] for one in hosts] == ["a", "b"]
    assert hosts[0]["service-state"] == "enabled"
    rows = [
        one["resource"] for one in site.root.volumes("GET", "/os-hosts/a").body["host"]
    ]
    assert [(one["project"], one["total_volume_gb"]) for one in rows] == [
        ("(total)", "3"),
        (site.red.pk, "3"),
    ]
    assert site.root.volumes("GET", "/os-hosts/odd").status == 404


def test_nothing_is_left_to_be_cleaned_up(site: Site):
    answer = site.root.volumes("POST", "/workers/cleanup", {})
    assert (answer.status, answer.body) == (202, {"cleaning": [], "unavailable": []})
    assert site.root.volumes("PUT", "/os-services/get-log", {}).body == {
        "log_levels": []
    }
    assert site.anna.volumes("GET", "/extensions").body == {"extensions": []}
