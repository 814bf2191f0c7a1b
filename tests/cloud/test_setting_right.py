# SPDX-License-Identifier: BSD-2-Clause
"""What a comparison of record and clusters finds; clusters are in memory."""

import pytest
from docks import Docks

from moorage_cloud.models import Backend, Snapshot, Volume
from moorage_cloud.requests import Leave
from moorage_cloud.verbs import (
    NewVolume,
    attach,
    create,
    delete_snapshot,
    quota,
    take_snapshot,
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
    assert Snapshot.objects.get().status == "available"  # it is whole
    assert name in pier.known
    pier.fails = lambda _request: False
    assert f"has it as disk {name}, and is to let go of it" in sets_right(docks)
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
