# SPDX-License-Identifier: BSD-2-Clause
"""A server is deleted over HTTP: what goes with it, and what stays."""

from typing import Any

import pytest
from site_of_people import Site

from moorage_cloud.models import Attachment, Backend, Server, Volume, VolumeType
from moorage_cloud.verbs import quota

requirement = pytest.mark.requirement


def put(site: Site, server: str = "a1", **given: object) -> dict[str, Any]:
    """Make a volume and attach it."""
    made = site.anna.new_volume()
    attach(site, made, server, **given)
    site.docks.settle()
    assert site.anna.look(made)["status"] == "in-use"
    return made


def attach(site: Site, made: dict[str, Any], server: str, **given: object) -> None:
    body = {"volumeAttachment": {"volumeId": made["id"], **given}}
    path = f"/{site.server(server)}/os-volume_attachments"
    assert site.anna.servers("POST", path, body).status == 200


def starts_from(made: dict[str, Any]) -> None:
    """Let a volume be what its server starts from."""
    Attachment.objects.filter(volume__uuid=made["id"]).update(index=0)


def record(made: dict[str, Any]) -> Volume:
    return Volume.objects.get(uuid=made["id"])


@requirement("S1-31")
def test_a_server_goes_with_what_it_starts_from(site: Site):
    root, mine, its = put(site), put(site), put(site, delete_on_termination=True)
    starts_from(root)
    answer = site.anna.volumes("DELETE", f"/volumes/{root['id']}")
    assert answer.status == 400
    storage = site.docks.storage
    storage[record(mine).backend_volume_uuid][:5] = b"mine!"
    path = f"/{site.server('a1')}"
    for _ in range(2):  # once more is as good
        assert site.anna.servers("DELETE", path).status == 204
        shown = site.anna.servers("GET", path).body["server"]
        assert shown["OS-EXT-STS:task_state"] == "deleting"
    assert site.anna.look(mine)["status"] == "detaching"
    assert quota.usage(site.red.pk)["gigabytes"] == 3
    site.docks.settle()
    assert site.anna.servers("GET", path).status == 404
    assert site.docks.piers["a"].statuses.keys() == {"snf-a2"}
    assert record(root).deleted
    assert record(its).deleted
    assert site.anna.look(mine)["status"] == "available"
    assert {*storage} == {record(mine).backend_volume_uuid}
    usage = quota.usage(site.red.pk)
    assert (usage["gigabytes"], usage["volumes"]) == (1, 1)
    assert list(quota.drifts()) == []
    attach(site, mine, "b1")
    site.docks.settle()
    assert storage[record(mine).backend_volume_uuid][:5] == b"mine!"


@requirement("S1-31")
@pytest.mark.parametrize("step", ["leave", "destroy", "remove"])
def test_a_removal_that_failed_can_be_asked_for_again(site: Site, step: str):
    root, mine, its = put(site), put(site), put(site, delete_on_termination=True)
    starts_from(root)
    pier = site.docks.piers["a"]
    pier.fails = lambda request: type(request).__name__.lower() == step
    path = f"/{site.server('a1')}"
    site.anna.servers("DELETE", path)
    site.docks.settle()
    shown = site.anna.servers("GET", path).body["server"]
    assert (shown["status"], shown["OS-EXT-STS:task_state"]) == ("ERROR", None)
    assert "a script failed" in shown["fault"]["message"]
    assert "snf-a1" in pier.statuses
    assert not record(root).deleted
    assert list(quota.drifts()) == []
    pier.fails = lambda _request: False
    assert site.anna.servers("DELETE", path).status == 204
    site.docks.settle()
    assert site.anna.servers("GET", path).status == 404
    assert record(root).deleted
    assert record(its).deleted
    assert site.anna.look(mine)["status"] == "available"
    assert quota.usage(site.red.pk)["gigabytes"] == 1
    assert list(quota.drifts()) == []


@requirement("S1-31")
def test_what_is_under_way_on_its_volumes_is_waited_for(site: Site):
    made = site.anna.new_volume()
    attach(site, made, "a1")
    assert site.anna.servers("DELETE", f"/{site.server('a1')}").status == 204
    assert site.anna.look(made)["status"] == "attaching"
    other = site.anna.new_volume()
    body = {"volumeAttachment": {"volumeId": other["id"]}}
    path = f"/{site.server('a1')}/os-volume_attachments"
    assert site.anna.servers("POST", path, body).status == 400
    site.docks.settle()
    assert site.anna.look(made)["status"] == "available"
    assert "snf-a1" not in site.docks.piers["a"].statuses
    assert record(made).backend_volume_uuid in site.docks.storage


def test_a_volume_with_snapshots_stays(site: Site):
    its = put(site, delete_on_termination=True)
    new = {"snapshot": {"volume_id": its["id"], "force": True}}
    assert site.anna.volumes("POST", "/snapshots", new, at="3.65").status == 202
    site.docks.settle()
    starts_from(its)
    answer = site.anna.servers("DELETE", f"/{site.server('a1')}")
    assert answer.status == 409
    assert "of which there are snapshots" in answer.fault
    Attachment.objects.update(index=1)
    site.anna.servers("DELETE", f"/{site.server('a1')}")
    site.docks.settle()
    assert site.anna.look(its)["status"] == "available"


def test_a_volume_of_another_server_does_not_go_with_the_instance(site: Site):
    """It was cut off with its cluster, which came back and has it still."""
    made = put(site)
    pier = site.docks.piers["a"]
    Backend.objects.filter(clustername="a").update(offline=True)
    answer = site.anna.servers("DELETE", f"/{site.server('a1')}")
    assert answer.status == 503
    action = {"os-force_detach": {}}
    path = f"/volumes/{made['id']}/action"
    assert site.root.volumes("POST", path, action).status == 202
    attach(site, made, "b1")
    Backend.objects.filter(clustername="a").update(offline=False)
    site.anna.servers("DELETE", f"/{site.server('a1')}")
    site.docks.settle()
    shown = site.anna.servers("GET", f"/{site.server('a1')}").body["server"]
    assert "which is not on record there" in shown["fault"]["message"]
    assert "snf-a1" in pier.statuses
    assert record(made).backend_volume_uuid in site.docks.storage


@requirement("S1-22")
def test_what_cannot_leave_a_server_is_refused(site: Site):
    """What it starts from, a type that is never without one, and a wrong state."""
    made = put(site)
    path = f"/{site.server('a1')}/os-volume_attachments/{made['id']}"
    starts_from(made)
    answer = site.anna.servers("DELETE", path)
    assert answer.status == 400
    assert "is what server" in answer.fault
    Attachment.objects.update(index=1)
    VolumeType.objects.update(detachable=False)
    answer = site.anna.servers("DELETE", path)
    assert answer.status == 400
    assert "is not detachable" in answer.fault
    VolumeType.objects.update(detachable=True)
    extend = {"os-extend": {"new_size": 2}}
    where = f"/volumes/{made['id']}/action"
    assert site.anna.volumes("POST", where, extend).status == 202
    answer = site.anna.servers("DELETE", path)
    assert answer.status == 400
    assert "its status must be" in answer.fault
    site.docks.settle()
    assert site.anna.look(made)["status"] == "in-use"


def test_an_instance_that_is_gone_already_is_let_go(site: Site):
    root = put(site)
    starts_from(root)
    pier = site.docks.piers["a"]
    del pier.statuses["snf-a1"]
    site.anna.servers("DELETE", f"/{site.server('a1')}")
    site.docks.settle()
    assert site.anna.servers("GET", f"/{site.server('a1')}").status == 404
    assert site.anna.look(root)["status"] == "available"


def test_a_server_goes_once_and_is_its_projects(site: Site):
    path = f"/{site.server('a1')}"
    assert site.bob.servers("DELETE", path).status == 404
    assert site.rita.servers("DELETE", path).status == 403
    Server.objects.update(operstate="BUILD")
    assert site.anna.servers("DELETE", path).status == 409
    Server.objects.update(operstate="STARTED", action="STOP")
    assert site.anna.servers("DELETE", path).status == 409


@requirement("S1-31")
def test_real_clusters_remove_the_instance(harbour: Site):
    """Provider scripts on real files say what became of the data."""
    root, mine, its = (
        put(harbour),
        put(harbour),
        put(harbour, delete_on_termination=True),
    )
    starts_from(root)
    images = harbour.docks.towns.san.images
    with (images / record(mine).backend_volume_uuid).open("r+b") as image:
        image.write(b"precious")
    assert harbour.anna.servers("DELETE", f"/{harbour.server('a1')}").status == 204
    harbour.docks.settle()
    assert harbour.anna.servers("GET", f"/{harbour.server('a1')}").status == 404
    kept = record(mine).backend_volume_uuid
    assert {one.name.split(".")[0] for one in images.iterdir()} == {kept}
    with (images / record(mine).backend_volume_uuid).open("rb") as image:
        assert image.read(8) == b"precious"
    assert record(its).deleted
    ids = [one["OP_ID"] for one in harbour.docks.towns.jobs("a")]
    assert ids[-1] == "OP_INSTANCE_REMOVE"
