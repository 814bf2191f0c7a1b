# SPDX-License-Identifier: BSD-2-Clause
"""What programs send that cannot be had here, request by request.

Terraform's provider and cinder-csi are written in Go, on gophercloud: they send no
microversion unless they need one, poll, and believe what they read.
"""

from typing import Any

import pytest
from site_of_people import Answer, Person, Site

pytestmark = pytest.mark.requirement("S1-44")


class Gophercloud:
    """A client that sends no version unless it is told one, and the token's project."""

    def __init__(self, person: Person) -> None:
        self.person = person

    def volumes(
        self, method: str, path: str, body: object = None, at: str = ""
    ) -> Answer:
        where = f"/volume/v3/{self.person.project.pk}{path}"
        headers = {"OpenStack-API-Version": f"volume {at}"} if at else {}
        return self.person.ask(method, where, body, **headers)

    def compute(
        self, method: str, path: str, body: object = None, at: str = ""
    ) -> Answer:
        headers = {"X-OpenStack-Nova-API-Version": at} if at else {}
        return self.person.ask(method, f"/compute/v2.1{path}", body, **headers)

    def volume(self, key: str) -> dict[str, Any] | None:
        answer = self.volumes("GET", f"/volumes/{key}")
        return dict(answer.body["volume"]) if answer.status == 200 else None


def test_terraform_makes_attaches_and_destroys(site: Site):
    cloud, server = Gophercloud(site.anna), site.server("a1")
    # openstack_blockstorage_volume_v3
    new = {"name": "db", "size": 1, "metadata": {}, "description": "by terraform"}
    made = cloud.volumes("POST", "/volumes", {"volume": new})
    assert made.status == 202
    key = made.body["volume"]["id"]
    found = cloud.volume(key)
    assert found is not None
    assert found["status"] == "available"

    # openstack_compute_volume_attach_v2: 404 until the guest has the disk, then 200
    path = f"/servers/{server}/os-volume_attachments"
    told = cloud.compute("POST", path, {"volumeAttachment": {"volumeId": key}})
    assert told.status == 200
    attachment = told.body["volumeAttachment"]
    assert attachment.keys() == {"id", "volumeId", "serverId", "device"}
    one = f"{path}/{attachment['id']}"
    assert cloud.compute("GET", one).status == 404
    site.docks.settle()
    assert cloud.compute("GET", one).body["volumeAttachment"] == attachment

    # A larger one, while it is in use
    larger = {"os-extend": {"new_size": 2}}
    assert cloud.volumes("POST", f"/volumes/{key}/action", larger, "3.42").status == 202
    site.docks.settle()
    found = cloud.volume(key)
    assert found is not None
    assert (found["size"], found["status"]) == (2, "in-use")

    _destroy(site, cloud, key)


def _destroy(site: Site, cloud: Gophercloud, key: str) -> None:
    found = cloud.volume(key)
    assert found is not None
    # It takes off what `attachments` has, by its id, and waits for 404
    (place,) = found["attachments"]
    gone = f"/servers/{place['server_id']}/os-volume_attachments/{place['id']}"
    assert cloud.compute("DELETE", gone).status == 202
    assert cloud.compute("GET", gone).status == 200
    site.docks.settle()
    assert cloud.compute("GET", gone).status == 404
    found = cloud.volume(key)
    assert found is not None
    assert (found["status"], found["attachments"]) == ("available", [])
    assert cloud.volumes("DELETE", f"/volumes/{key}").status == 202
    found = cloud.volume(key)
    assert found is not None
    assert found["status"] == "deleting"
    site.docks.settle()
    assert cloud.volume(key) is None


def test_cinder_csi_moves_a_claim_from_one_cluster_to_another(site: Site):
    cloud = Gophercloud(site.anna)
    name = "pvc-5c4b8f6e"
    # CreateVolume: once more is the same volume
    assert cloud.volumes("GET", f"/volumes/detail?name={name}").body["volumes"] == []
    new = {
        "name": name,
        "size": 1,
        "volume_type": "fast",
        "availability_zone": "nova",
        "description": "Created by OpenStack Cinder CSI driver",
        "metadata": {"cinder.csi.openstack.org/cluster": "kubernetes"},
    }
    made = cloud.volumes("POST", "/volumes", {"volume": new})
    key = made.body["volume"]["id"]
    (listed,) = cloud.volumes("GET", f"/volumes/detail?name={name}").body["volumes"]
    assert (listed["id"], listed["size"]) == (key, 1)

    for server in (site.server("a1"), site.server("b2")):
        # ControllerPublishVolume, twice: the second finds it under way
        path = f"/servers/{server}/os-volume_attachments"
        assert cloud.compute("GET", f"/servers/{server}").status == 200
        for _ in range(2):
            body = {"volumeAttachment": {"volumeId": key}}
            assert cloud.compute("POST", path, body).status == 200
            waiting = cloud.volume(key)
            assert waiting is not None
            assert waiting["attachments"] == []
        site.docks.settle()
        found = cloud.volume(key)
        assert found is not None
        assert found["status"] == "in-use"
        (place,) = found["attachments"]
        assert (place["server_id"], place["device"]) == (server, "/dev/vdb")
        # ControllerUnpublishVolume
        assert cloud.compute("DELETE", f"{path}/{key}").status == 202
        site.docks.settle()
        found = cloud.volume(key)
        assert found is not None
        assert (found["status"], found["attachments"]) == ("available", [])

    # ControllerExpandVolume, DeleteVolume
    assert (
        cloud.volumes(
            "POST", f"/volumes/{key}/action", {"os-extend": {"new_size": 3}}, "3.42"
        ).status
        == 202
    )
    site.docks.settle()
    assert cloud.volumes("DELETE", f"/volumes/{key}").status == 202
    site.docks.settle()
    assert cloud.volume(key) is None
