# SPDX-License-Identifier: BSD-2-Clause
"""OpenStack's own clients, as they come from their packages, over the network."""

import warnings

import pytest
from openstack_clients import Run, become
from site_of_people import SECRET, Site

with warnings.catch_warnings(action="ignore"):
    from cinderclient import client as cinderclient
    from cinderclient.shell import OpenStackCinderShell
    from keystoneauth1.identity.v3 import Password
    from keystoneauth1.session import Session
    from openstack.connection import Connection

# Clients warn of what will be otherwise one day; their packages are as they are.
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.requirement("S1-44"),
]


@pytest.mark.slow
def test_openstack_volume(site: Site, openstack: Run):
    token = openstack("token issue")
    assert token["project_id"] == site.red.pk

    made = openstack("volume create --size 1 --property a=1 --description d data")
    assert made["status"] == "available"
    assert openstack("volume list") == [
        {
            "ID": made["id"],
            "Name": "data",
            "Status": "available",
            "Size": 1,
            "Attached to": [],
        }
    ]
    shown = openstack("volume show data")
    assert shown["id"] == made["id"]
    assert shown["properties"] == {"a": "1"}

    openstack("volume set --size 2 --property b=2 --name more data", tells=False)
    openstack("volume unset --property a more", tells=False)
    shown = openstack("volume show more")
    assert (shown["size"], shown["properties"]) == (2, {"b": "2"})
    openstack(
        "volume set --state error more",
        fails="Policy doesn't allow",
        tells=False,
    )

    assert openstack("server list --no-name-lookup")[0]["Status"] == "ACTIVE"
    added = openstack("server add volume a1 more")
    assert added["Volume ID"] == made["id"]
    site.docks.settle()
    (listed,) = openstack("volume list")
    assert listed["Status"] == "in-use"
    assert listed["Attached to"][0]["server_id"] == site.server("a1")
    (of_server,) = openstack("server volume list a1")
    assert of_server["Volume ID"] == made["id"]
    (place,) = openstack("volume attachment list --os-volume-api-version 3.27")
    assert place["Server ID"] == site.server("a1")
    openstack("volume delete more", fails="server a1", tells=False)

    openstack("server remove volume a1 more", tells=False)
    site.docks.settle()
    openstack("volume delete more", tells=False)
    site.docks.settle()
    assert openstack("volume list") == []


@pytest.mark.slow
def test_openstack_volume_snapshot(site: Site, openstack: Run):
    openstack("volume create --size 1 data")
    openstack("server add volume a1 data")
    site.docks.settle()
    snapped = openstack("volume snapshot create --volume data before")
    site.docks.settle()
    (snapshot,) = openstack("volume snapshot list")
    assert (snapshot["ID"], snapshot["Status"]) == (snapped["id"], "available")
    openstack("volume snapshot set --property k=v before", tells=False)
    assert openstack("volume snapshot show before")["properties"] == {"k": "v"}
    openstack("volume snapshot delete before", tells=False)
    site.docks.settle()
    assert openstack("volume snapshot list") == []


@pytest.mark.slow
def test_openstack_for_projects_and_administrators(
    site: Site, openstack: Run, door: str, monkeypatch: pytest.MonkeyPatch
):
    assert [one["Name"] for one in openstack("volume type list")] == ["fast"]
    assert openstack("quota show --volume")
    limits = {
        one["Name"]: one["Value"]
        for one in openstack("limits show --absolute --os-volume-api-version 3.39")
        if "Name" in one
    }
    assert limits["max_total_volumes"] == 10
    (zone,) = openstack("availability zone list --volume")
    assert (zone["Zone Name"], zone["Zone Status"]) == ("nova", "available")
    openstack("volume service list", fails="Policy doesn't allow", tells=False)

    become(site.root, door, monkeypatch)
    assert {one["Host"] for one in openstack("volume service list")} == {"a", "b"}
    made = openstack("volume type create --property k=v slow")
    assert openstack("volume type show slow")["properties"] == {"k": "v"}
    openstack("volume type set --property k=w slow", tells=False)
    assert openstack("volume type show slow")["properties"] == {"k": "w"}
    openstack("volume type unset --property k slow", tells=False)
    openstack("volume type delete slow", tells=False)
    assert made["id"] not in str(openstack("volume type list"))
    openstack(f"quota set --volumes 1 {site.red.pk}", tells=False)
    (volumes,) = [
        one["Limit"]
        for one in openstack(f"quota show --volume {site.red.pk}")
        if one["Resource"] == "volumes"
    ]
    assert volumes == 1
    assert {one["Name"] for one in openstack("project list")} == {
        *("red", "blue", "service"),
    }
    assert {one["Name"] for one in openstack("user list")} >= {"anna", "bob"}
    assert openstack("catalog list")


def test_openstack_with_an_application_credential(
    openstack: Run, monkeypatch: pytest.MonkeyPatch
):
    made = openstack("application credential create ci")
    for name in ("USERNAME", "PASSWORD", "PROJECT_NAME"):
        monkeypatch.delenv(f"OS_{name}")
    for name in ("USER_DOMAIN_ID", "PROJECT_DOMAIN_ID"):
        monkeypatch.delenv(f"OS_{name}")
    monkeypatch.setenv("OS_AUTH_TYPE", "v3applicationcredential")
    monkeypatch.setenv("OS_APPLICATION_CREDENTIAL_ID", made["ID"])
    monkeypatch.setenv("OS_APPLICATION_CREDENTIAL_SECRET", made["Secret"])
    assert openstack("volume create --size 1 data")["status"] == "available"


def test_openstacksdk(site: Site, door: str):
    cloud = Connection(
        auth={
            "auth_url": f"{door}/identity/v3",
            "username": "anna",
            "password": SECRET,
            "project_name": "red",
            "user_domain_id": "default",
            "project_domain_id": "default",
        },
        region_name="RegionOne",
    )
    volume = cloud.create_volume(size=1, name="data", wait=True)
    assert volume.status == "available"
    server = cloud.get_server("a1")
    cloud.attach_volume(server, volume, wait=False)
    site.docks.settle()
    volume = cloud.get_volume("data")
    assert volume.attachments[0]["server_id"] == server.id
    assert [one.id for one in cloud.list_volumes()] == [volume.id]
    assert [one.volume_id for one in cloud.compute.volume_attachments(server)] == [
        volume.id
    ]
    with pytest.raises(Exception, match="server a1"):
        cloud.delete_volume(volume.id, wait=False)
    cloud.detach_volume(server, volume, wait=False)
    site.docks.settle()
    assert cloud.delete_volume(volume.id, wait=False)
    site.docks.settle()
    assert cloud.get_volume("data") is None
    assert cloud.get_volume_quotas(site.red.pk).volumes == 10


def test_cinderclient(site: Site, door: str, capsys: pytest.CaptureFixture[str]):
    auth = Password(
        auth_url=f"{door}/identity/v3",
        username="anna",
        password=SECRET,
        project_name="red",
        user_domain_id="default",
        project_domain_id="default",
    )
    cinder = cinderclient.Client("3.71", session=Session(auth=auth))
    for name in "abc":
        cinder.volumes.create(1, name=name, metadata={"of": name})
    assert [one.name for one in cinder.volumes.list(sort="name:asc")] == list("abc")
    assert [one.name for one in cinder.volumes.list(limit=2, sort="name:asc")] == [
        *("a", "b"),
    ]
    (one,) = cinder.volumes.list(search_opts={"name": "b"})
    cinder.volumes.extend(one, 3)
    cinder.volumes.set_metadata(one, {"more": "1"})
    one.update(name="d")
    one.get()
    assert (one.name, cinder.volumes.get(one.id).size) == ("d", 3)
    assert cinder.limits.get().to_dict()["absolute"]["totalVolumesUsed"] == 3
    assert cinder.quotas.get(site.red.pk, usage=True).gigabytes["in_use"] == 5
    one.delete()
    assert len(cinder.volumes.list()) == 2

    OpenStackCinderShell().main(["list", "--sort", "name:asc", "--limit", "1"])
    printed = capsys.readouterr().out
    assert "available" in printed
    OpenStackCinderShell().main(["create", "--name", "by-shell", "1"])
    assert "by-shell" in capsys.readouterr().out
