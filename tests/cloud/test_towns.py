# SPDX-License-Identifier: BSD-2-Clause
"""Volumes on clusters whose masters, doors and provider scripts are real."""

from quay import Quay

from moorage_cloud.models import Volume
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
