# SPDX-License-Identifier: BSD-2-Clause
"""What a volume is a copy of, as clients ask for it and are told."""

from typing import Any

import pytest
from openstack_clients import Run
from site_of_people import Answer, Person, Site

from moorage_cloud.models import Image, StorageDomain, Volume, VolumeType
from moorage_cloud.verbs import NewImage, add_image, quota


@pytest.fixture
def image(site: Site) -> Image:
    site.docks.storage["golden"] = bytearray(b"an image") + bytearray(1016)
    return add_image(
        NewImage(
            name="debian",
            volume_type=site.docks.type,
            data="golden",
            size=1,
            properties={"os_distro": "debian"},
        )
    )


def asked(person: Person, at: str = "3.71", **new: object) -> Answer:
    return person.volumes("POST", "/volumes", {"volume": new}, at=at)


def with_data(site: Site, **given: object) -> dict[str, Any]:
    """Return a volume that was on a server."""
    made = site.anna.new_volume(**given)
    path = f"/{site.server('a1')}/os-volume_attachments"
    site.anna.servers("POST", path, {"volumeAttachment": {"volumeId": made["id"]}})
    site.docks.settle()
    assert site.anna.servers("DELETE", f"{path}/{made['id']}").status == 202
    site.docks.settle()
    return made


def snapshot_of(site: Site, volume: dict[str, Any]) -> str:
    new = {"snapshot": {"volume_id": volume["id"]}}
    answer = site.anna.volumes("POST", "/snapshots", new)
    assert answer.status == 202, answer.body
    site.docks.settle()
    return str(answer.body["snapshot"]["id"])


@pytest.mark.parametrize("at", ["3.0", "3.71"])
def test_each_source_is_shown(site: Site, image: Image, at: str):
    volume = with_data(site, size=2)
    sources = {
        "snapshot_id": snapshot_of(site, volume),
        "source_volid": volume["id"],
        "imageRef": str(image.uuid),
    }
    for name, source in sources.items():
        answer = asked(site.anna, at, **{name: source})
        assert answer.status == 202, answer.body
        made = answer.body["volume"]
        size = 1 if name == "imageRef" else 2
        assert (made["status"], made["size"]) == ("creating", size)
        site.docks.settle()
        shown = site.anna.look(made)
        assert shown["status"] == "available"
        for one in ("snapshot_id", "source_volid"):
            assert shown[one] == (source if one == name else None)
        assert shown["bootable"] == ("true" if name == "imageRef" else "false")
        told = shown.get("volume_image_metadata", {})
        assert told.get("image_id") == (source if name == "imageRef" else None)
    for distro, count in (("debian", 1), ("other", 0)):
        query = f"?glance_metadata={{'os_distro':'{distro}'}}"
        found = site.anna.volumes("GET", f"/volumes{query}", at="3.4")
        assert len(found.body["volumes"]) == count
    used = site.anna.volumes("GET", "/limits").body["limits"]["absolute"]
    assert used["totalGigabytesUsed"] == 2 + 2 + 2 + 2 + 1
    assert list(quota.drifts()) == []


def test_what_is_no_source_is_refused_in_a_sentence(site: Site, image: Image):
    volume = with_data(site, size=2)
    snapshot = snapshot_of(site, volume)
    elsewhere = VolumeType.objects.create(
        name="slow",
        disk_template="ext_named",
        domain=StorageDomain.objects.create(name="far"),
    )
    for new, sentence in (
        (
            {"snapshot_id": snapshot, "size": 1},
            "badRequest 400: Invalid input received: Volume size '1'GB cannot be ",
        ),
        (
            {"source_volid": volume["id"], "size": 1},
            "cannot be smaller than the volume size 2GB",
        ),
        (
            {"snapshot_id": snapshot, "imageRef": str(image.uuid)},
            "badRequest 400: May specify only one of",
        ),
        (
            {"snapshot_id": snapshot, "volume_type": elsewhere.name},
            "its data would have to move",
        ),
        (
            {"snapshot_id": snapshot, "server_id": site.server("a1")},
            "is attached when its data is there",
        ),
        ({"snapshot_id": volume["id"]}, "itemNotFound 404: Snapshot"),
        ({"source_volid": snapshot}, "itemNotFound 404: Volume"),
        ({"imageRef": "debian"}, "itemNotFound 404: Image debian"),
        ({"backup_id": snapshot}, "cannot be made from a backup"),
    ):
        answer = asked(site.anna, **new)
        assert sentence in answer.fault
    for new in ({"snapshot_id": snapshot}, {"source_volid": volume["id"]}):
        assert asked(site.bob, **new).status == 404
    assert len(site.anna.volumes("GET", "/volumes").body["volumes"]) == 1
    assert list(quota.drifts()) == []


def test_a_snapshot_in_error_is_no_source(site: Site):
    volume = with_data(site)
    site.docks.piers["a"].fails = lambda _request: True
    snapshot = snapshot_of(site, volume)
    answer = asked(site.anna, snapshot_id=snapshot)
    assert "Originating snapshot status must be" in answer.fault


def test_a_volume_with_snapshots_stays(site: Site):
    volume = with_data(site)
    snapshot = snapshot_of(site, volume)
    answer = site.anna.volumes("DELETE", f"/volumes/{volume['id']}")
    assert answer.fault.startswith("badRequest 400")
    made = asked(site.anna, snapshot_id=snapshot).body["volume"]
    site.docks.settle()
    # What was made from it is on its own.
    assert site.anna.volumes("DELETE", f"/snapshots/{snapshot}").status == 202
    site.docks.settle()
    assert site.anna.volumes("DELETE", f"/volumes/{volume['id']}").status == 202
    site.docks.settle()
    assert site.anna.look(made)["status"] == "available"
    assert site.anna.volumes("DELETE", f"/volumes/{made['id']}").status == 202
    site.docks.settle()
    assert site.docks.storage == {}


def test_revert_is_refused_with_its_reason(site: Site):
    volume = with_data(site)
    path, body = f"/volumes/{volume['id']}/action", {"revert": {"snapshot_id": "x"}}
    assert (
        "make a volume from the snapshot" in site.anna.volumes("POST", path, body).fault
    )
    assert "no such action" in site.anna.volumes("POST", path, body, at="3.39").fault
    assert site.rita.volumes("POST", path, body).status == 403


def test_images_are_listed_page_by_page(site: Site, image: Image):
    new = NewImage(name="other", volume_type=image.volume_type, data="other", size=2)
    other = add_image(new)

    def listed(query: str) -> list[str]:
        found = site.bob.ask("GET", f"/image/v2/images{query}").body["images"]
        return [one["id"] for one in found]

    both = [str(other.uuid), str(image.uuid)]
    assert listed("") == both
    first = site.bob.ask("GET", "/image/v2/images?limit=1").body
    assert [one["id"] for one in first["images"]] == both[:1]
    assert listed(first["next"].partition("images")[2]) == both[1:]
    assert listed("?name=debian&visibility=public") == both[1:]
    assert listed("?visibility=private") == listed("?status=queued") == []
    shown = site.bob.ask("GET", f"/image/v2/images/{image.uuid}").body
    assert (shown["name"], shown["size"], shown["status"]) == (
        *("debian", 1 << 30, "active"),
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # clients warn of what will be otherwise
@pytest.mark.requirement("S1-44")
def test_openstack_makes_volumes_from_each_source(
    site: Site, image: Image, openstack: Run
):
    openstack("volume create --size 1 data")
    openstack("server add volume a1 data")
    site.docks.settle()
    openstack("volume snapshot create --volume data before")
    site.docks.settle()
    openstack("volume create --snapshot before old")
    openstack("volume create --source data twin")
    assert [one["Name"] for one in openstack("image list")] == ["debian"]
    assert openstack("image show debian")["id"] == str(image.uuid)
    made = openstack("volume create --image debian --size 2 root")
    assert made["status"] == "creating"
    site.docks.settle()
    shown = openstack("volume show root")
    assert (shown["bootable"], shown["size"]) == (True, 2)
    assert shown["volume_image_metadata"]["image_name"] == "debian"
    listed = {one["Name"]: one["Status"] for one in openstack("volume list")}
    assert listed == {
        "data": "in-use",
        "old": "available",
        "twin": "available",
        "root": "available",
    }
    assert site.docks.storage[f"snf-vol-{_number(made)}"][:8] == b"an image"


def _number(made: dict[str, Any]) -> int:
    return Volume.objects.get(uuid=made["id"]).pk
