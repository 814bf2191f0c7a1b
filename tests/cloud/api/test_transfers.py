# SPDX-License-Identifier: BSD-2-Clause
"""A volume goes from one project to another, by a key."""

from typing import Any

from site_of_people import Site

from moorage_cloud.verbs import quota


def offered(site: Site, volume: dict[str, Any]) -> dict[str, Any]:
    new = {"transfer": {"volume_id": volume["id"], "name": "gift"}}
    answer = site.anna.volumes("POST", "/volume-transfers", new)
    assert answer.status == 202, answer.body
    return dict(answer.body["transfer"])


def test_a_volume_changes_hands_with_its_quota(site: Site):
    made = site.anna.new_volume(size=2)
    offer = offered(site, made)
    assert site.anna.look(made)["status"] == "awaiting-transfer"
    path = f"/volume-transfers/{offer['id']}"
    shown = site.anna.volumes("GET", path).body["transfer"]
    assert "auth_key" not in shown
    assert shown["source_project_id"] == site.red.pk
    # Others do not see it, and need the key.
    assert site.bob.volumes("GET", path).status == 404
    assert site.bob.volumes("GET", "/volume-transfers").body == {"transfers": []}
    wrong = {"accept": {"auth_key": "wrong"}}
    assert site.bob.volumes("POST", f"{path}/accept", wrong).status == 400
    right = {"accept": {"auth_key": offer["auth_key"]}}
    assert site.bob.volumes("POST", f"{path}/accept", right).status == 202

    assert site.anna.volumes("GET", f"/volumes/{made['id']}").status == 404
    shown = site.bob.look(made)
    assert (shown["status"], shown["user_id"]) == ("available", site.bob.user.pk)
    assert quota.usage(site.red.pk)["gigabytes"] == 0
    assert quota.usage(site.blue.pk)["gigabytes"] == 2
    assert list(quota.drifts()) == []
    assert site.bob.volumes("POST", f"{path}/accept", right).status == 404


def test_an_offer_is_withdrawn(site: Site):
    made = site.anna.new_volume()
    offer = offered(site, made)
    assert site.anna.volumes("DELETE", f"/volumes/{made['id']}").status == 400
    path = f"/os-volume-transfer/{offer['id']}"
    assert site.anna.volumes("DELETE", path).status == 202
    assert site.anna.look(made)["status"] == "available"
    assert site.anna.volumes("GET", path).status == 404


def test_who_has_no_room_does_not_get_it(site: Site):
    quota.set_limits(site.blue.pk, {"gigabytes": 1})
    made = site.anna.new_volume(size=2)
    offer = offered(site, made)
    key = {"accept": {"auth_key": offer["auth_key"]}}
    path = f"/volume-transfers/{offer['id']}/accept"
    assert site.bob.volumes("POST", path, key).status == 413
    assert site.anna.look(made)["status"] == "awaiting-transfer"
    assert list(quota.drifts()) == []


def test_a_volume_that_a_server_has_is_not_offered(site: Site):
    made = site.anna.new_volume()
    body = {"volumeAttachment": {"volumeId": made["id"]}}
    site.anna.servers("POST", f"/{site.server('a1')}/os-volume_attachments", body)
    new = {"transfer": {"volume_id": made["id"]}}
    assert site.anna.volumes("POST", "/volume-transfers", new).status == 400


def test_transfers_have_what_their_version_has(site: Site):
    assert site.anna.volumes("GET", "/volume-transfers", at="3.54").status == 404
    assert site.anna.volumes("GET", "/os-volume-transfer", at="3.0").status == 200
    offer = offered(site, site.anna.new_volume())
    path = f"/os-volume-transfer/{offer['id']}"
    older = site.anna.volumes("GET", path, at="3.54").body["transfer"]
    newer = site.anna.volumes("GET", path, at="3.57").body["transfer"]
    assert newer.keys() - older.keys() == {
        *("no_snapshots", "source_project_id", "destination_project_id", "accepted"),
    }


def with_a_snapshot(site: Site) -> dict[str, Any]:
    """Return a volume that no server has any more, and that has a snapshot."""
    made = site.anna.new_volume()
    path = f"/{site.server('a1')}/os-volume_attachments"
    site.anna.servers("POST", path, {"volumeAttachment": {"volumeId": made["id"]}})
    site.docks.settle()
    new = {"snapshot": {"volume_id": made["id"]}}
    assert site.anna.volumes("POST", "/snapshots", new).status == 202
    site.docks.settle()
    site.anna.servers("DELETE", f"{path}/{made['id']}")
    site.docks.settle()
    return made


def test_snapshots_go_with_their_volume(site: Site):
    offer = offered(site, with_a_snapshot(site))
    key = {"accept": {"auth_key": offer["auth_key"]}}
    path = f"/volume-transfers/{offer['id']}/accept"
    assert site.bob.volumes("POST", path, key).status == 202
    assert len(site.bob.volumes("GET", "/snapshots").body["snapshots"]) == 1
    assert site.anna.volumes("GET", "/snapshots").body["snapshots"] == []
    assert quota.usage(site.blue.pk)["snapshots"] == 1
    assert list(quota.drifts()) == []


def test_an_administrators_snapshot_is_its_volumes_projects(site: Site):
    volume = site.anna.new_volume()
    path = f"/{site.server('a1')}/os-volume_attachments"
    site.anna.servers("POST", path, {"volumeAttachment": {"volumeId": volume["id"]}})
    site.docks.settle()
    new = {"snapshot": {"volume_id": volume["id"]}}
    assert site.root.volumes("POST", "/snapshots", new).status == 202
    site.docks.settle()
    site.anna.servers("DELETE", f"{path}/{volume['id']}")
    site.docks.settle()
    (seen,) = site.anna.volumes("GET", "/snapshots").body["snapshots"]
    assert seen["volume_id"] == volume["id"]
    body = {"transfer": {"volume_id": volume["id"]}}
    offer = site.anna.volumes("POST", "/volume-transfers", body).body["transfer"]
    accept = {"accept": {"auth_key": offer["auth_key"]}}
    site.bob.volumes("POST", f"/volume-transfers/{offer['id']}/accept", accept)
    assert quota.usage(site.blue.pk)["snapshots"] == 1
    assert list(quota.drifts()) == []


def test_a_type_changes_with_what_is_counted_of_it(site: Site):
    made = with_a_snapshot(site)
    site.root.volumes("POST", "/types", {"volume_type": {"name": "same"}})
    path = f"/volumes/{made['id']}/action"
    retype = {"os-retype": {"new_type": "same", "migration_policy": "never"}}
    assert site.anna.volumes("POST", path, retype).status == 202
    assert site.anna.look(made)["volume_type"] == "same"
    assert quota.usage(site.red.pk)["snapshots_same"] == 1
    assert list(quota.drifts()) == []
    retype = {"os-retype": {"new_type": "nothing"}}
    assert site.anna.volumes("POST", path, retype).status == 400
