# SPDX-License-Identifier: BSD-2-Clause
"""Where a volume's data come from: snapshots, volumes and images, over two clusters."""

from collections.abc import Sequence

import pytest
from quay import Quay

from moorage_cloud.errors import BadRequest
from moorage_cloud.models import Image, Snapshot, Volume
from moorage_cloud.verbs import (
    NewVolume,
    attach,
    create,
    delete,
    delete_snapshot,
    detach,
    quota,
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
