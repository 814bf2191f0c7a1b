# SPDX-License-Identifier: BSD-2-Clause
"""A volume that was cut off in its first attach: is its data there?"""

import pytest
from django.core.management import CommandError
from quay import Quay
from snf_manage import types

from moorage_cloud.models import Backend, Volume
from moorage_cloud.verbs import NewVolume, attach, create, delete, force_detach, quota


def cut_off(quay: Quay, *, made: bool) -> Volume:
    """Return a volume whose first attach nobody heard the end of."""
    volume = create(quay.anna, NewVolume(size=1, volume_type=quay.type))
    attach(quay.anna, volume, quay.servers["a1"])
    if made:
        quay.send()
        quay.towns.finish("a")
        with (quay.towns.san.images / volume.backend_volume_uuid).open("r+b") as image:
            image.write(b"precious")
    Backend.objects.filter(clustername="a").update(offline=True)
    force_detach(quay.anna, volume)
    found = quay.again(volume)
    assert (found.status, found.initialized) == ("error", True)
    return found


def test_data_that_is_there_is_found(quay: Quay):
    volume = cut_off(quay, made=True)
    types(f"volume-check {volume.pk}")
    assert quay.again(volume).status == "maintenance"
    quay.settle()
    assert quay.again(volume).status == "available", quay.again(volume).fault
    assert quay.towns.towns["b"].disks() == set()
    attach(quay.anna, volume, quay.servers["b1"])
    quay.settle()
    assert quay.again(volume).status == "in-use"
    with (quay.towns.san.images / volume.backend_volume_uuid).open("rb") as image:
        assert image.read(8) == b"precious"


@pytest.mark.requirement("S1-F3")
def test_data_that_is_not_there_is_made_when_somebody_says_so(quay: Quay):
    volume = cut_off(quay, made=False)
    types(f"volume-check {volume.pk}")
    quay.settle()
    found = quay.again(volume)
    assert (found.status, found.initialized) == ("error", True)
    assert "there is no image" in found.fault
    assert list(quay.towns.san.images.iterdir()) == []
    types(f"volume-check {volume.pk} --no-data -f")
    found = quay.again(volume)
    assert (found.status, found.initialized) == ("available", False)
    attach(quay.anna, volume, quay.servers["b1"])
    quay.settle()
    assert quay.again(volume).status == "in-use", quay.again(volume).fault
    assert quota.usage("red")["gigabytes"] == 1
    assert quay.towns.jobs("b")[-1]["disks"][0][2]["reuse_data"] == "False"


def test_one_without_data_is_deleted_at_once(quay: Quay):
    volume = cut_off(quay, made=False)
    types(f"volume-check {volume.pk} --no-data -f")
    delete(quay.anna, volume)
    assert Volume.objects.get(pk=volume.pk).deleted
    assert quota.usage("red")["gigabytes"] == 0


@pytest.mark.parametrize("option", ["", "--no-data -f"])
def test_only_what_is_in_error_is_looked_for(quay: Quay, option: str):
    volume = create(quay.anna, NewVolume(size=1, volume_type=quay.type))
    attach(quay.anna, volume, quay.servers["a1"])
    quay.settle()
    with pytest.raises(CommandError, match="its status must be 'error'"):
        types(f"volume-check {volume.pk} {option}")
    Volume.objects.update(status="error")
    with pytest.raises(CommandError, match="is attached to a server"):
        types(f"volume-check {volume.pk} {option}")
