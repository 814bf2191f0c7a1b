# SPDX-License-Identifier: BSD-2-Clause
"""What a comparison of record and clusters finds; clusters are in memory."""

import pytest
from docks import Docks

from moorage_cloud.errors import NotFound
from moorage_cloud.models import Backend, Snapshot, Volume
from moorage_cloud.requests import Leave
from moorage_cloud.verbs import (
    Caller,
    NewVolume,
    accept,
    attach,
    check_data,
    create,
    delete,
    delete_snapshot,
    detach,
    extend,
    force_detach,
    offer,
    quota,
    reset_status,
    take_snapshot,
    without_data,
)
from moorage_cloud.work import Finding, compare


@pytest.fixture
def volume(docks: Docks) -> Volume:
    """Return a volume that a server on cluster a has."""
    made = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
    attach(docks.anna, made, docks.servers["a1"])
    docks.settle()
    return docks.again(made)


def found(docks: Docks) -> list[Finding]:
    return list(compare(list(Backend.objects.filter(offline=False)), docks.connect))


def sets_right(docks: Docks) -> str:
    """Have the only thing set right that is found; return its sentence."""
    (one,) = found(docks)
    assert one.repair
    one.repair()
    docks.settle()
    return one.sentence


def goes_off(docks: Docks, where: str) -> None:
    docks.piers[where].silent = docks.piers[where].deaf = True
    Backend.objects.filter(clustername=where).update(offline=True)


def comes_back(docks: Docks, where: str) -> None:
    docks.piers[where].silent = docks.piers[where].deaf = False
    Backend.objects.filter(clustername=where).update(offline=False)


def test_a_cluster_lets_go_of_a_copy_that_it_kept(docks: Docks, volume: Volume):
    pier = docks.piers["a"]
    pier.fails = lambda request: isinstance(request, Leave)
    copy = take_snapshot(docks.anna, volume)
    docks.settle()
    name = copy.backend_snapshot_name
    assert Snapshot.objects.get().status == "error"
    assert name in pier.known
    pier.fails = lambda _request: False
    assert f"has snapshot {name} (no instance)" in sets_right(docks)
    assert (name in pier.known, name in docks.storage) == (False, True)
    assert found(docks) == []
    delete_snapshot(docks.anna, Snapshot.objects.get())
    docks.settle()
    assert name not in docks.storage
    assert quota.usage("red")["snapshots"] == 0


def test_a_copy_that_is_being_made_is_no_finding(docks: Docks, volume: Volume):
    take_snapshot(docks.anna, volume)
    docks.send()
    docks.piers["a"].run()
    assert [one.kind for one in found(docks)] == ["job"]


def test_an_offer_is_over_when_a_server_has_the_volume(docks: Docks, volume: Volume):
    goes_off(docks, "a")
    force_detach(docks.anna, volume)
    made, key = offer(docks.again(volume))
    comes_back(docks, "a")
    assert "it has volume" in sets_right(docks)
    assert docks.again(volume).status == "in-use"
    with pytest.raises(NotFound, match="could not be found"):
        accept(Caller("bob", "blue"), made, key)
    assert docks.again(volume).project == "red"


def test_data_that_is_made_late_is_known(docks: Docks):
    """A cluster that was off goes on with a first attach that was given up."""
    volume = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
    attach(docks.anna, volume, docks.servers["a1"])
    docks.send()
    goes_off(docks, "a")
    force_detach(docks.anna, volume)
    without_data(docks.anna, volume)
    comes_back(docks, "a")
    docks.piers["a"].run()
    attach(docks.anna, volume, docks.servers["b1"])
    docks.settle()
    assert (docks.again(volume).status, docks.again(volume).initialized) == (
        *("available", False),
    )
    assert "it has volume" in sets_right(docks)
    now = docks.again(volume)
    assert (now.status, now.initialized) == ("in-use", True)
    assert now.server == docks.servers["a1"]
    assert found(docks) == []


def detached(docks: Docks, volume: Volume) -> Volume:
    detach(docks.anna, volume)
    docks.settle()
    return docks.again(volume)


@pytest.mark.parametrize(
    ("verb", "status", "size"), [("delete", "error", 1), ("extend", "available", 2)]
)
def test_what_only_a_cluster_that_is_off_does_is_given_up(
    docks: Docks, volume: Volume, verb: str, status: str, size: int
):
    """It was asked because it had the volume last; another one can do it, too."""
    volume = detached(docks, volume)
    if verb == "delete":
        delete(docks.anna, volume)
    else:
        extend(docks.anna, volume, 2)
    docks.send()
    goes_off(docks, "a")
    assert f"{verb} waits for cluster a, which is off" in sets_right(docks)
    now = docks.again(volume)
    assert (now.status, now.size, now.place) == (status, size, None)
    assert list(quota.drifts()) == []
    delete(docks.anna, now)
    docks.settle()
    assert docks.storage == {}
    assert not any(quota.usage("red").values())
    assert found(docks) == []


def test_a_look_that_is_given_up_leaves_it_in_error(docks: Docks, volume: Volume):
    volume = detached(docks, volume)
    reset_status(docks.anna, volume, "error")
    check_data(docks.anna, volume)
    goes_off(docks, "a")
    sets_right(docks)
    assert docks.again(volume).status == "error"
    check_data(docks.anna, volume)
    docks.settle()
    assert docks.again(volume).status == "available"


def test_a_server_keeps_its_volume_until_somebody_takes_it(
    docks: Docks, volume: Volume
):
    detach(docks.anna, volume)
    goes_off(docks, "a")
    assert found(docks) == []
    assert docks.again(volume).status == "detaching"
    force_detach(docks.anna, volume)
    assert docks.again(volume).status == "available"
