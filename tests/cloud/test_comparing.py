# SPDX-License-Identifier: BSD-2-Clause
"""What is done about a difference gives no volume to two, and to nobody else."""

import pytest
from docks import Docks

from moorage_cloud.clusters import Disk
from moorage_cloud.errors import NotFound
from moorage_cloud.models import Backend, Volume
from moorage_cloud.verbs import (
    Caller,
    NewVolume,
    accept,
    attach,
    create,
    detach,
    extend,
    force_detach,
    offer,
    quota,
)
from moorage_cloud.work import compare


@pytest.fixture
def volume(docks: Docks) -> Volume:
    return create(docks.anna, NewVolume(size=1, volume_type=docks.type))


def attached(docks: Docks, volume: Volume, server: str) -> Volume:
    attach(docks.anna, docks.again(volume), docks.servers[server])
    docks.settle()
    return docks.again(volume)


def set_right(docks: Docks) -> list[str]:
    """Compare, and repair what can be; return what was found."""
    found = list(compare(Backend.objects.filter(offline=False), docks.connect))
    for one in found:
        if one.repair:
            one.repair()
    for pier in docks.piers.values():
        pier.run()
    return [one.sentence for one in found]


def moved(docks: Docks, volume: Volume, instance: str) -> None:
    """Let somebody give a volume to another instance of cluster a, by hand."""
    name = volume.backend_volume_uuid
    docks.piers["a"].known[name] = Disk(name, instance, 1024)


def test_what_an_unknown_instance_has_is_not_to_be_had(docks: Docks, volume: Volume):
    attached(docks, volume, "a1")
    moved(docks, volume, "renamed")
    (found,) = set_right(docks)
    assert found.endswith("and cluster a has volume snf-vol-1 (instance renamed)")
    assert docks.again(volume).status == "in-use"


def test_what_another_guest_has_says_nothing_of_the_size(docks: Docks, volume: Volume):
    attached(docks, volume, "a1")
    name = volume.backend_volume_uuid
    docks.piers["a"].known[name] = Disk(name, "renamed", 4096)
    assert len(set_right(docks)) == 1
    assert docks.again(volume).size == 1
    assert quota.usage("red")["gigabytes"] == 1


def test_what_another_server_has_is_there(docks: Docks, volume: Volume):
    attached(docks, volume, "a1")
    moved(docks, volume, "snf-a2")
    set_right(docks)
    assert docks.again(volume).server == docks.servers["a2"]
    assert set_right(docks) == []


def test_what_nobody_has_is_to_be_had(docks: Docks, volume: Volume):
    attached(docks, volume, "a1")
    del docks.piers["a"].known[volume.backend_volume_uuid]
    set_right(docks)
    assert docks.again(volume).status == "available"


def test_a_number_that_was_given_twice_gives_nobody_anothers_data(
    docks: Docks, volume: Volume
):
    """A backup of the database was restored; then Bob made a volume."""
    Volume.objects.filter(pk=volume.pk).update(project="blue", userid="bob")
    moved(docks, volume, "snf-a1")  # since the backup, Anna's
    (found,) = set_right(docks)
    assert found.endswith("as detached, of project blue")
    assert (docks.again(volume).place, docks.again(volume).initialized) == (None, False)
    assert volume.backend_volume_uuid in docks.piers["a"].known


def test_an_offer_ends_when_a_server_has_the_volume(docks: Docks, volume: Volume):
    attached(docks, volume, "a1")
    detach(docks.anna, docks.again(volume))
    docks.settle()
    made, key = offer(docks.anna, docks.again(volume))
    moved(docks, volume, "snf-a1")
    set_right(docks)
    with pytest.raises(NotFound):
        accept(Caller("bob", "blue"), made, key)
    found = docks.again(volume)
    assert (found.project, found.status) == ("red", "in-use")
    detach(docks.anna, found)
    docks.settle()
    offer(docks.anna, docks.again(volume))


def test_a_job_that_failed_is_not_the_last_one(docks: Docks, volume: Volume):
    attached(docks, volume, "a1")
    Backend.objects.filter(clustername="a").update(offline=True)
    force_detach(docks.anna, docks.again(volume))
    attached(docks, volume, "b1")
    Backend.objects.filter(clustername="a").update(offline=False)
    a = docks.piers["a"]
    a.fails = lambda _request: True
    set_right(docks)
    assert volume.backend_volume_uuid in a.known
    a.fails = lambda _request: False
    set_right(docks)
    assert volume.backend_volume_uuid not in a.known
    assert docks.again(volume).server == docks.servers["b1"]


def test_a_growth_that_was_cut_off_is_counted_as_it_is(docks: Docks, volume: Volume):
    """Who took it away could not know; counted for the larger until somebody looks."""
    attached(docks, volume, "a1")
    extend(docks.anna, docks.again(volume), 3)
    Backend.objects.filter(clustername="a").update(offline=True)
    force_detach(docks.anna, docks.again(volume))
    assert docks.again(volume).size == 3
    attached(docks, volume, "b1")
    (found,) = set_right(docks)
    assert found.endswith("(instance snf-b1) with 1 GiB, of which 3 GiB are on record")
    assert docks.again(volume).size == 1
    assert quota.usage("red")["gigabytes"] == 1
    assert set_right(docks) == []
