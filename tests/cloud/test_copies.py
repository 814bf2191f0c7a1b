# SPDX-License-Identifier: BSD-2-Clause
"""Where a volume's data come from: snapshots, volumes and images, over two clusters."""

from collections.abc import Sequence

import pytest
from quay import Quay

from moorage_cloud.errors import BadRequest, Conflict, NotFound
from moorage_cloud.models import Image, Snapshot, Volume
from moorage_cloud.verbs import (
    NewImage,
    NewVolume,
    add_image,
    attach,
    create,
    delete,
    delete_snapshot,
    detach,
    quota,
    remove_image,
    take_snapshot,
)

GIB = 1 << 30


@pytest.fixture
def volume(quay: Quay) -> Volume:
    """Return a volume with data that no server has."""
    made = create(quay.anna, NewVolume(size=1, volume_type=quay.type))
    put(quay, made, "a1")
    write(quay, made, b"precious")
    take(quay, made)
    return quay.again(made)


def put(quay: Quay, volume: Volume, where: str) -> None:
    attach(quay.anna, volume, quay.servers[where])
    quay.settle()
    found = quay.again(volume)
    assert found.status == "in-use", found.fault


def take(quay: Quay, volume: Volume) -> None:
    detach(quay.anna, volume)
    quay.settle()
    found = quay.again(volume)
    assert found.status == "available", found.fault


def write(quay: Quay, volume: Volume, text: bytes) -> None:
    with (quay.towns.san.images / volume.backend_volume_uuid).open("r+b") as image:
        image.write(text)


def image_of(quay: Quay, thing: Volume | Snapshot, count: int = 8) -> tuple[bytes, int]:
    """Return the first bytes of what the storage has of it, and its size in GiB."""
    name = (
        thing.backend_volume_uuid
        if isinstance(thing, Volume)
        else thing.backend_snapshot_name
    )
    file = quay.towns.san.images / name
    with file.open("rb") as opened:
        return opened.read(count), file.stat().st_size // GIB


def copy_of(quay: Quay, original: Volume | Snapshot | Image, size: int = 1) -> Volume:
    new = NewVolume(size=size, volume_type=quay.type, original=original)
    return create(quay.anna, new)


def names(quay: Quay) -> set[str]:
    """Return what the storage has."""
    return {one.name for one in quay.towns.san.images.iterdir() if "." not in one.name}


def ops(quay: Quay, where: str) -> Sequence[str]:
    return [op["OP_ID"] for op in quay.towns.jobs(where)]


def test_a_snapshot_of_a_volume_that_no_server_has(quay: Quay, volume: Volume):
    snapshot = take_snapshot(quay.anna, volume)
    assert snapshot.status == "creating"
    quay.settle()
    snapshot.refresh_from_db()
    assert (snapshot.status, snapshot.fault) == ("available", "")
    assert image_of(quay, snapshot) == (b"precious", 1)
    assert ops(quay, "a")[2:] == [
        *("OP_DISK_ADD", "OP_DISK_SNAPSHOT", "OP_DISK_FORGET", "OP_DISK_FORGET"),
    ]
    assert quay.towns.towns["a"].disks() == set()
    put(quay, volume, "b1")  # nobody has it any more
    with pytest.raises(BadRequest, match="has snapshots"):
        delete(quay.anna, volume)
    delete_snapshot(quay.anna, snapshot)
    quay.settle()
    assert names(quay) == {volume.backend_volume_uuid}
    assert quota.usage("red")["gigabytes"] == 1
    assert list(quota.drifts()) == []


@pytest.mark.requirement("S1-46")
def test_a_snapshot_is_one_job_on_the_server_and_is_called_by_a_counter(
    quay: Quay, volume: Volume
):
    """Its operation is that of the body of ``PUT …/snapshot``, asked by a person."""
    put(quay, volume, "b1")
    taken = []
    for fails in (False, True, False):
        quay.towns.san.broken = {"snapshot"} if fails else set()
        taken.append(take_snapshot(quay.anna, volume))
        assert taken[-1].status == "creating"
        quay.settle()
        taken[-1].refresh_from_db()
        assert taken[-1].status == ("error" if fails else "available")
        delete_snapshot(quay.anna, taken[-1])
        quay.settle()
    called = [f"snf-snap-{volume.pk}-{number}" for number in (1, 2, 3)]
    assert [one.backend_snapshot_name for one in taken] == called
    ours = [op for op in quay.towns.jobs("b") if op["OP_ID"] == "OP_DISK_SNAPSHOT"]
    assert [op["new_name"] for op in ours] == called
    assert f'{{"snapshot_id": {taken[0].pk}}}' in str(ours[0]["reason"])
    town = quay.towns.towns["b"]
    wish = [volume.backend_volume_uuid, {"snapshot_name": called[0]}]
    path = "/2/instances/snf-b1/snapshot?reason=moorage-cloud"
    quay.towns.do(town.door.does("PUT", path, {"disks": [wish]}, user="top:secret"))
    theirs = quay.towns.jobs("b")[-1]
    for op in (ours[0], theirs):
        op.pop("reason")
    assert ours[0] == theirs | {"volume": called[0]}  # which Ganeti's has no word for


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2])
def test_a_volume_from_a_snapshot_has_its_bytes(quay: Quay, volume: Volume, size: int):
    snapshot = take_snapshot(quay.anna, volume)
    quay.settle()
    write(quay, volume, b"changed!")
    snapshot.refresh_from_db()
    made = copy_of(quay, snapshot, size)
    assert (made.status, made.source) == ("creating", f"snapshot:{snapshot.pk}")
    quay.settle()
    found = quay.again(made)
    assert (found.status, found.fault) == ("available", "")
    assert image_of(quay, made) == (b"precious", size)
    assert [town.disks() for town in quay.towns.towns.values()] == [set(), set()]
    put(quay, made, "b1")
    write(quay, made, b"its own!")
    assert image_of(quay, snapshot) == (b"precious", 1)
    take(quay, made)
    delete_snapshot(quay.anna, snapshot)
    delete(quay.anna, made)
    quay.settle()
    assert names(quay) == {volume.backend_volume_uuid}
    assert quota.usage("red")["gigabytes"] == 1
    assert list(quota.drifts()) == []


def test_a_volume_from_a_volume(quay: Quay, volume: Volume):
    """Of one that no server has; and of one that a guest has, while it has it."""
    made = copy_of(quay, volume)
    quay.settle()
    assert quay.again(made).fault == ""
    assert image_of(quay, made) == (b"precious", 1)
    put(quay, volume, "b1")
    write(quay, volume, b"new data")
    larger = copy_of(quay, volume, 2)
    quay.settle()
    found = quay.again(larger)
    assert (found.status, found.fault) == ("available", "")
    assert (found.source, found.place) == (f"volume:{volume.pk}", None)
    assert image_of(quay, larger) == (b"new data", 2)
    assert ops(quay, "b")[1:] == [
        *("OP_DISK_SNAPSHOT", "OP_DISK_GROW", "OP_DISK_FORGET"),
    ]
    assert quay.again(volume).status == "in-use"
    assert quay.towns.towns["b"].disks() == {volume.backend_volume_uuid}
    put(quay, larger, "a1")
    assert list(quota.drifts()) == []


def test_who_wants_a_volume_that_is_copied_waits(quay: Quay, volume: Volume):
    made = [copy_of(quay, volume), copy_of(quay, volume)]
    attach(quay.anna, volume, quay.servers["b1"])
    quay.send()
    assert len(quay.towns.jobs("a")) == 3  # one that borrows it, and nothing else yet
    assert quay.towns.jobs("b") == []
    quay.settle()
    assert [quay.again(one).status for one in made] == ["available"] * 2
    assert [image_of(quay, one)[0] for one in made] == [b"precious"] * 2
    assert quay.again(volume).status == "in-use"


def test_a_copy_of_nothing_is_nothing(quay: Quay):
    blank = create(quay.anna, NewVolume(size=1, volume_type=quay.type))
    snapshot = take_snapshot(quay.anna, blank)
    assert snapshot.status == "available"
    for original in (blank, snapshot):
        made = copy_of(quay, original, 2)
        assert (made.status, made.initialized) == ("available", False)
        put(quay, made, "a1")
    assert "OP_DISK_SNAPSHOT" not in ops(quay, "a")
    put(quay, blank, "a1")
    delete_snapshot(quay.anna, snapshot)
    snapshot.refresh_from_db()
    assert snapshot.deleted
    assert list(quota.drifts()) == []


@pytest.fixture
def image(quay: Quay) -> Image:
    """Return an image; its data is in the storage."""
    with (quay.towns.san.images / "golden").open("wb") as file:
        file.write(b"an image")
        file.truncate(GIB)
    new = NewImage(
        name="debian",
        volume_type=quay.type,
        data="golden",
        size=1,
        properties={"os_distro": "debian"},
    )
    return add_image(new)


def test_a_volume_from_an_image(quay: Quay, image: Image):
    made = copy_of(quay, image, 2)
    quay.settle()
    found = quay.again(made)
    assert (found.status, found.fault) == ("available", "")
    assert image_of(quay, made) == (b"an image", 2)
    assert (found.bootable, found.source) == (True, f"image:{image.pk}")
    told = found.image_metadata
    assert (told["os_distro"], told["image_name"]) == ("debian", "debian")
    child = copy_of(quay, found, 2)
    assert (child.bootable, child.image_metadata) == (True, told)
    copy_of(quay, image)
    with pytest.raises(Conflict, match="is being made from"):
        remove_image(image)
    quay.settle()
    remove_image(image)
    with pytest.raises(NotFound, match="could not be found"):
        copy_of(quay, image)
    put(quay, made, "b1")
    assert [town.disks() for town in quay.towns.towns.values()] == [
        *(set(), {made.backend_volume_uuid}),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "left"),
    [
        ({"create"}, []),  # the original cannot be taken
        ({"snapshot"}, []),  # nor copied
        ({"grow"}, ["made"]),  # the copy is there, and is too small
    ],
)
def test_a_copy_that_fails_leaves_nothing_behind(
    quay: Quay, volume: Volume, broken: set[str], left: list[str]
):
    before = names(quay)
    quay.towns.san.broken = broken
    made = copy_of(quay, volume, 2)
    quay.settle()
    found = quay.again(made)
    assert (found.status, bool(found.fault)) == ("error", True)
    assert names(quay) - before == {made.backend_volume_uuid for _ in left}
    assert [town.disks() for town in quay.towns.towns.values()] == [set(), set()]
    assert quota.usage("red")["gigabytes"] == 3
    with pytest.raises(BadRequest, match="Invalid volume"):
        attach(quay.anna, made, quay.servers["a1"])
    quay.towns.san.broken = set()
    delete(quay.anna, made)
    quay.settle()
    assert names(quay) == before
    assert quota.usage("red")["gigabytes"] == 1
    put(quay, volume, "b1")
    assert image_of(quay, volume) == (b"precious", 1)
