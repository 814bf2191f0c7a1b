# SPDX-License-Identifier: BSD-2-Clause
"""Volumes on clusters whose masters, doors and provider scripts are real."""

from quay import Quay

from moorage_cloud.models import Backend, Outbox, Volume
from moorage_cloud.verbs import NewVolume, attach, create, delete, detach, quota


def test_a_volume_goes_from_one_cluster_to_another_with_its_bytes(quay: Quay):
    one = create(quay.anna, NewVolume(size=1, volume_type=quay.type))
    name, image = one.backend_volume_uuid, quay.towns.san.images
    attach(quay.anna, one, quay.servers["a1"])
    quay.settle()
    one = quay.again(one)
    assert one.status == "in-use", one.fault
    file = image / name
    with file.open("r+b") as written:
        written.write(b"precious")
    detach(quay.anna, one)
    quay.settle()
    assert quay.again(one).status == "available"
    assert quay.towns.towns["a"].disks() == set()
    attach(quay.anna, one, quay.servers["b1"])
    quay.settle()
    assert quay.again(one).status == "in-use"
    with file.open("rb") as read:
        assert read.read(8) == b"precious"
    detach(quay.anna, one)
    quay.settle()
    delete(quay.anna, one)
    quay.settle()
    assert Volume.objects.get(pk=one.pk).deleted
    assert list(image.iterdir()) == []
    assert quota.usage("red")["gigabytes"] == 0
    assert quay.towns.towns["b"].disks() == set()


def test_a_door_that_does_not_let_in_says_nothing_of_what_was_asked(quay: Quay):
    """An earlier try may have been heard, by a master that knew the user."""
    one = create(quay.anna, NewVolume(size=1, volume_type=quay.type))
    Backend.objects.update(password="of yesterday")  # noqa: S106 - and wrong
    attach(quay.anna, one, quay.servers["a1"])
    quay.send()
    assert quay.again(one).status == "attaching"
    assert Outbox.objects.get().tries == 1
    Backend.objects.update(password="secret")  # noqa: S106 - of the test's own users
    quay.settle()
    assert quay.again(one).status == "in-use"
