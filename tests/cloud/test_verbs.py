# SPDX-License-Identifier: BSD-2-Clause
"""Verbs that are refused, repeated, or only on record; clusters are in memory."""

from threading import Barrier, Thread

import pytest
from django.db import connection
from docks import Docks

from moorage_cloud.errors import (
    BadRequest,
    BuildInProgress,
    Forbidden,
    OverLimit,
    Refusal,
    Unavailable,
)
from moorage_cloud.models import Backend, Limit, Operation, StorageDomain, VolumeType
from moorage_cloud.models.volume import EPOCHS
from moorage_cloud.requests import Destroy
from moorage_cloud.verbs import (
    Caller,
    NewVolume,
    accept,
    attach,
    create,
    delete,
    detach,
    extend,
    force_detach,
    offer,
    quota,
    reset_status,
    retype,
    update,
    withdraw,
)
from moorage_cloud.work import compare

BOB = Caller("bob", "blue")
ERRORS = Refusal.__module__


@pytest.fixture
def volume(docks: Docks):
    return create(docks.anna, NewVolume(size=1, volume_type=docks.type))


def put(docks: Docks, volume, where: str = "a1") -> None:
    attach(docks.anna, volume, docks.servers[where])
    docks.settle()
    assert docks.again(volume).status == "in-use"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"size": 0}, "whole number of GiB, not '0'"),
        ({"size": 16385}, "at most 16384 GiB"),
        ({"name": "x" * 256}, "name has 256 characters"),
        ({"description": "x" * 256}, "description has 256 characters"),
        ({"metadata": {str(n): "" for n in range(11)}}, "at most 10 items"),
        ({"metadata": {"k" * 65: ""}}, "1 to 64 characters"),
        ({"metadata": {"k": "v" * 256}}, "more than 255 characters"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(docks, wrong, sentence):
    with pytest.raises(BadRequest, match=sentence):
        create(docks.anna, NewVolume(**{"size": 1, "volume_type": docks.type} | wrong))
    assert not any(quota.usage("red").values())


def test_a_type_that_is_not_detachable_needs_a_server(docks: Docks):
    fixed = VolumeType.objects.create(
        name="fixed", disk_template="plain", detachable=False
    )
    with pytest.raises(BadRequest, match="Volume type 'fixed' is not detachable"):
        create(docks.anna, NewVolume(size=1, volume_type=fixed))
    assert not any(quota.usage("red").values())


@pytest.mark.requirement("S1-F7")
def test_metadata_given_at_creation_is_stored(docks: Docks):
    new = NewVolume(size=1, volume_type=docks.type, metadata={"kind": "db"})
    assert docks.again(create(docks.anna, new)).metadata == {"kind": "db"}


def test_a_volume_goes_only_where_its_storage_is_seen(docks, volume):
    docks.domain.backends.remove(Backend.objects.get(clustername="b"))
    with pytest.raises(BadRequest, match="must have the same volume template"):
        attach(docks.anna, volume, docks.servers["b1"])
    own = VolumeType.objects.create(name="own", disk_template="ext_named")
    one = create(docks.anna, NewVolume(size=1, volume_type=own))
    put(docks, one, "b1")
    detach(docks.anna, one)
    docks.settle()
    with pytest.raises(BadRequest, match="whose storage no other one sees"):
        attach(docks.anna, one, docks.servers["a1"])
    put(docks, one, "b2")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"operstate": "BUILD"}, BuildInProgress),
        ({"action": "STOP"}, BadRequest),
        ({"helper": True}, Forbidden),
        ({"operstate": "ERROR"}, BadRequest),
    ],
)
def test_a_server_that_is_not_ready_gets_no_volume(docks, volume, fields, error):
    server = docks.servers["a1"]
    for name, value in fields.items():
        setattr(server, name, value)
    server.save()
    with pytest.raises(error):
        attach(docks.anna, volume, server)
    assert docks.again(volume).status == "available"


def test_an_instance_has_so_many_disks_and_no_more(docks: Docks):
    Limit.objects.create(project="red", resource="volumes", limit=-1)
    for _ in range(15):
        one = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
        attach(docks.anna, one, docks.servers["a1"])
    one = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
    with pytest.raises(BadRequest, match="has 16 disks"):
        attach(docks.anna, one, docks.servers["a1"])


def test_the_same_request_again_succeeds_and_does_nothing(docks, volume):
    first = attach(docks.anna, volume, docks.servers["a1"])
    assert attach(docks.anna, volume, docks.servers["a1"]) == first
    with pytest.raises(BadRequest, match="attached to a server already"):
        attach(docks.anna, volume, docks.servers["a2"])
    docks.settle()
    assert attach(docks.anna, volume, docks.servers["a1"]) == first
    for verb in (detach, detach):
        verb(docks.anna, volume)
    docks.settle()
    detach(docks.anna, volume)
    for verb in (delete, delete):
        verb(docks.anna, volume)
    docks.settle()
    assert Operation.objects.count() == 3


@pytest.mark.requirement("S1-15")
def test_of_many_that_want_one_volume_one_gets_it(docks, volume):
    """Sixteen clients at once, each with a server of its own half of the time."""
    won, lost = [], []
    ready = Barrier(16)

    def race(number: int) -> None:
        server = list(docks.servers.values())[number % 4]
        ready.wait()
        try:
            attach(docks.anna, volume, server)
            won.append(server)
        except BadRequest as refusal:
            lost.append(refusal.sentence)
        finally:
            connection.close()

    racers = [Thread(target=race, args=(number,)) for number in range(16)]
    for one in racers:
        one.start()
    for one in racers:
        one.join()
    assert (len(won), len(lost)) == (4, 12)  # whoever names the winner's server wins
    assert len(set(won)) == 1
    assert all("attached to a server already" in one for one in lost)
    assert Operation.objects.count() == 1


def test_a_silent_cluster_holds_its_volumes_until_it_is_off(docks, volume):
    put(docks, volume)
    name = volume.backend_volume_uuid
    docks.storage[name][:4] = b"data"
    docks.piers["a"].deaf = docks.piers["a"].silent = True
    detach(docks.anna, volume)
    docks.send()
    with pytest.raises(Unavailable, match="cluster a does not answer"):
        force_detach(docks.anna, volume)
    assert docks.again(volume).status == "detaching"
    with pytest.raises(BadRequest, match="attached to a server already"):
        attach(docks.anna, volume, docks.servers["b1"])
    Backend.objects.filter(clustername="a").update(offline=True)
    force_detach(docks.anna, volume)
    assert docks.again(volume).status == "available"
    put(docks, volume, "b1")
    taken, _key = docks.piers["b"].asked[0]
    assert taken.epoch > docks.piers["a"].asked[0][0].epoch
    assert docks.storage[name][:4] == b"data"


def test_a_cluster_that_was_cut_off_lets_go_when_it_comes_back(docks, volume):
    put(docks, volume)
    pier, name = docks.piers["a"], volume.backend_volume_uuid
    pier.deaf = pier.silent = True
    old = Backend.objects.filter(clustername="a")
    old.update(offline=True)
    force_detach(docks.anna, volume)
    put(docks, volume, "b1")
    docks.storage[name][:3] = b"new"
    detach(docks.anna, volume)
    docks.settle()
    pier.deaf = pier.silent = False
    old.update(offline=False)
    (found,) = compare(list(Backend.objects.all()), docks.connect)
    assert "it is to let go of it" in found.sentence
    found.repair()
    docks.settle()
    assert (pier.known, docks.again(volume).status) == ({}, "available")
    assert docks.storage[name][:3] == b"new"
    assert list(compare(list(Backend.objects.all()), docks.connect)) == []


def test_a_disk_of_before_is_not_taken_for_what_was_asked(docks, volume):
    """Its guest never let go of it, and knows old data."""
    put(docks, volume)
    pier, old = docks.piers["a"], Backend.objects.filter(clustername="a")
    old.update(offline=True)
    force_detach(docks.anna, volume)
    put(docks, volume, "b1")
    detach(docks.anna, volume)
    docks.settle()
    old.update(offline=False)
    attach(docks.anna, volume, docks.servers["a1"])
    docks.settle()
    found = docks.again(volume)
    assert (found.status, found.place) == ("available", None)
    assert "there is a disk" in found.fault
    (finding,) = compare(list(old), docks.connect)
    finding.repair()
    docks.settle()
    put(docks, volume)
    assert pier.known[volume.backend_volume_uuid].epoch == found.epoch + EPOCHS
    assert docks.again(volume).fault == ""  # what failed once is over


def test_data_that_was_not_destroyed_is_not_told_to_be_gone(docks, volume):
    put(docks, volume)
    detach(docks.anna, volume)
    docks.settle()
    pier, name = docks.piers["a"], volume.backend_volume_uuid

    def fails(request):
        if isinstance(request, Destroy):
            del pier.known[name]  # somebody has the cluster forget the disk, by hand
        return isinstance(request, Destroy)

    pier.fails = fails
    delete(docks.anna, volume)
    docks.settle()
    assert docks.again(volume).status == "error_deleting"
    assert name in docks.storage
    assert quota.usage("red")["gigabytes"] == 1
    pier.fails = lambda _request: False
    delete(docks.anna, volume)
    docks.settle()
    assert name not in docks.storage
    assert quota.usage("red")["gigabytes"] == 0


def test_a_cluster_that_is_drained_gets_nothing_new(docks, volume):
    put(docks, volume)
    drained = Backend.objects.filter(clustername="a")
    drained.update(drained=True)
    detach(docks.anna, volume)
    docks.settle()
    with pytest.raises(Unavailable, match="takes nothing new"):
        attach(docks.anna, volume, docks.servers["a1"])
    extend(docks.anna, volume, 2)
    docks.settle()
    assert docks.again(volume).backend.clustername == "b"
    drained.update(drained=False)
    put(docks, volume)


@pytest.mark.parametrize("verb", ["extend", "delete"])
def test_what_is_done_without_a_server_is_cut_off_as_well(docks, volume, verb):
    put(docks, volume)
    detach(docks.anna, volume)
    docks.settle()
    pier, size = docks.piers["a"], 2 if verb == "extend" else 1
    pier.deaf = pier.silent = True
    if verb == "extend":
        extend(docks.anna, volume, size)
    else:
        delete(docks.anna, volume)
    docks.send()
    with pytest.raises(Unavailable, match="cluster a does not answer"):
        force_detach(docks.anna, volume)
    Backend.objects.filter(clustername="a").update(offline=True)
    force_detach(docks.anna, volume)
    found = docks.again(volume)
    assert found.status == ("available" if verb == "extend" else "error")
    assert "its cluster is off" in found.fault
    assert list(quota.drifts()) == []
    with pytest.raises(BadRequest, match="is not attached"):
        force_detach(docks.anna, volume)
    delete(docks.anna, volume)
    docks.settle()
    assert docks.again(volume).deleted
    assert docks.storage == {}
    assert list(quota.drifts()) == []


def test_without_a_cluster_that_can_data_is_not_deleted(docks, volume):
    put(docks, volume)
    detach(docks.anna, volume)
    docks.settle()
    Backend.objects.update(offline=True)
    with pytest.raises(Unavailable, match="no cluster that sees the storage"):
        delete(docks.anna, volume)
    assert docks.again(volume).status == "available"


def test_a_status_that_is_set_does_not_lie(docks, volume):
    with pytest.raises(BadRequest, match="is not attached to any server"):
        reset_status(docks.anna, volume, "in-use")
    put(docks, volume)
    with pytest.raises(BadRequest, match="detach it, by force if need be"):
        reset_status(docks.anna, volume, "available")
    with pytest.raises(BadRequest, match="there is no status 'fine'"):
        reset_status(docks.anna, volume, "fine")
    reset_status(docks.anna, volume, "error")
    detach(docks.anna, volume)
    docks.settle()
    assert docks.again(volume).status == "available"


def test_names_are_only_on_record(docks, volume):
    update(volume, name="new", description="words")
    found = docks.again(volume)
    assert (found.name, found.description) == ("new", "words")
    assert found.backend_volume_uuid == f"snf-vol-{volume.pk}"


def test_a_volume_goes_to_another_project(docks, volume):
    made, key = offer(docks.anna, volume)
    with pytest.raises(BadRequest, match="must be available"):
        offer(docks.anna, volume)
    with pytest.raises(BadRequest, match="its status must be"):
        attach(docks.anna, volume, docks.servers["a1"])
    with pytest.raises(BadRequest, match="invalid auth key"):
        accept(BOB, made, "guessed")
    Limit.objects.create(project="blue", resource="volumes", limit=0)
    with pytest.raises(OverLimit):
        accept(BOB, made, key)
    assert docks.again(volume).project == "red"
    Limit.objects.all().delete()
    assert accept(BOB, made, key).project == "blue"
    assert not any(quota.usage("red").values())
    assert list(quota.drifts()) == []
    again, _ = offer(docks.anna, volume)
    withdraw(docks.anna, again)
    assert docks.again(volume).status == "available"


def test_a_type_changes_where_the_data_can_stay(docks, volume):
    more = {"disk_template": "ext_named", "domain": docks.domain}
    same = VolumeType.objects.create(name="same", **more)
    far = VolumeType.objects.create(
        name="far",
        disk_template="ext_named",
        domain=StorageDomain.objects.create(name="far"),
    )
    retype(docks.anna, volume, far)  # no data yet
    retype(docks.anna, volume, docks.type)
    put(docks, volume)
    with pytest.raises(BadRequest, match="would have to move"):
        retype(docks.anna, volume, far)
    assert retype(docks.anna, volume, same).volume_type == same
    assert list(quota.drifts()) == []
    assert quota.usage("red")["volumes_same"] == 1


def test_a_refusal_says_what_http_says():
    known = [one for one in Refusal.__subclasses__() if one.__module__ == ERRORS]
    assert {one.code for one in known} == {
        400,
        403,
        404,
        409,
        413,
        503,
    }
