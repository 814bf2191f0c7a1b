# SPDX-License-Identifier: BSD-2-Clause
"""What else OpenStack's clients ask for: each call of theirs has an answer."""

import warnings

import pytest
from docks import BROKEN
from openstack_clients import Run, become
from site_of_people import SECRET, Person, Site

with warnings.catch_warnings(action="ignore"):
    from cinderclient import client as cinderclient
    from cinderclient.exceptions import ClientException
    from keystoneauth1.identity.v3 import Password
    from keystoneauth1.session import Session
    from openstack.connection import Connection

# Clients warn of what will be otherwise one day; their packages are as they are.
pytestmark = pytest.mark.filterwarnings("ignore")


def cinder_of(person: Person, door: str) -> cinderclient.Client:
    auth = Password(
        auth_url=f"{door}/identity/v3",
        username=person.user.name,
        password=SECRET,
        project_name=person.project.name,
        user_domain_id="default",
        project_domain_id="default",
    )
    return cinderclient.Client("3.71", session=Session(auth=auth))


def test_cinderclient_for_administrators(site: Site, door: str):
    cinder = cinder_of(site.root, door)
    kind = cinder.volume_types.create("slow", is_public=False)
    cinder.volume_type_access.add_project_access(kind, site.red.pk)
    (access,) = cinder.volume_type_access.list(kind)
    assert access.project_id == site.red.pk
    made = cinder.default_types.create("slow", site.red.pk)
    assert made.volume_type_id == kind.id
    assert [one.project_id for one in cinder.default_types.list()] == [site.red.pk]
    assert cinder_of(site.anna, door).volumes.create(1).volume_type == "slow"
    cinder.default_types.delete(site.red.pk)
    cinder.volume_type_access.remove_project_access(kind, site.red.pk)
    assert cinder.volume_type_access.list(kind) == []

    assert [one.name for one in cinder.pools.list(detailed=True)] == ["a", "b"]
    assert cinder.capabilities.get("a").pool_name is None
    assert cinder.clusters.list(detailed=True) == []
    assert cinder.workers.clean() == ([], [])
    assert cinder.services.get_log_levels("", "", "") == []
    assert cinder.volumes.list_manageable("a") == []
    assert cinder.volume_snapshots.list_manageable("a") == []
    assert cinder.qos_specs.list() == []
    assert cinder.group_types.list() == []
    for refused in (
        lambda: cinder.qos_specs.create("gold", {"k": "v"}),
        lambda: cinder.group_types.create("g"),
        lambda: cinder.services.freeze_host("a"),
        lambda: cinder.services.set_log_levels("DEBUG", "", "", ""),
        lambda: cinder.volumes.manage("a", {"source-name": "x"}),
        lambda: cinder.volume_encryption_types.create(kind, {"provider": "luks"}),
        lambda: cinder.quota_classes.update("default", volumes=3),
    ):
        with pytest.raises(ClientException) as told:
            refused()
        assert told.value.code == 400


def test_cinderclient_for_users(site: Site, door: str):
    cinder = cinder_of(site.anna, door)
    volume = cinder.volumes.create(1, name="data")
    site.docks.piers["a"].fails = lambda _request: True
    body = {"volumeAttachment": {"volumeId": volume.id}}
    site.anna.servers("POST", f"/{site.server('a1')}/os-volume_attachments", body)
    site.docks.settle()
    (message,) = cinder.messages.list()
    assert message.user_message == f"attach volume: {BROKEN}"
    assert cinder.messages.get(message.id).resource_uuid == volume.id
    message.delete()
    assert cinder.messages.list() == []

    assert cinder.backups.list() == cinder.groups.list() == []
    assert cinder.group_snapshots.list() == []
    assert cinder.consistencygroups.list() == cinder.cgsnapshots.list() == []
    for refused, code in (
        (lambda: cinder.backups.create(volume.id), 503),
        (lambda: cinder.groups.create("g", "fast", name="g"), 400),
        (lambda: cinder.volumes.reimage(volume, volume.id), 400),
        (
            lambda: cinder.volumes.upload_to_image(
                volume, False, "i", "raw", "raw", "private", False
            ),
            400,
        ),
        (lambda: cinder.volumes.migrate_volume(volume, "b", False, False), 403),
    ):
        with pytest.raises(ClientException) as told:
            refused()
        assert told.value.code == code


@pytest.mark.usefixtures("site")
def test_openstacksdk(door: str):
    cloud = Connection(
        auth={
            "auth_url": f"{door}/identity/v3",
            "username": "root",
            "password": SECRET,
            "project_name": "service",
            "user_domain_id": "default",
            "project_domain_id": "default",
        },
    )
    storage = cloud.block_storage
    assert [one.name for one in storage.backend_pools()] == ["a", "b"]
    assert storage.get_capabilities("a").volume_backend_name == "a"
    for none in (storage.backups, storage.groups, storage.group_types):
        assert list(none()) == []
    assert {one.resource for one in storage.resource_filters()} >= {"message"}
    assert list(storage.extensions()) == []


@pytest.mark.slow
def test_openstack(
    site: Site, openstack: Run, door: str, monkeypatch: pytest.MonkeyPatch
):
    for what in ("volume backup list", "volume message list"):
        assert openstack(f"{what} --os-volume-api-version 3.71") == []
    become(site.root, door, monkeypatch)
    openstack("volume type create --private slow")
    openstack(f"volume type set --project {site.red.pk} slow", tells=False)
    shown = openstack("volume type show slow")
    assert shown["access_project_ids"] == [site.red.pk]
    pools = openstack("volume backend pool list")
    assert [one["Name"] for one in pools] == ["a", "b"]
    assert openstack("volume qos list") == []
    assert openstack("volume group list --os-volume-api-version 3.71") == []
