# SPDX-License-Identifier: BSD-2-Clause
"""A volume's life over two clusters that see the same storage."""

import pytest
from docks import Docks

from moorage_cloud.errors import OverLimit
from moorage_cloud.models import Limit, Operation, Volume
from moorage_cloud.requests import Destroy, Leave, Take
from moorage_cloud.verbs import (
    NewVolume,
    attach,
    create,
    delete,
    detach,
    extend,
    quota,
)

GIB = 1024


def test_a_volume_goes_from_one_cluster_to_another_with_its_bytes(docks: Docks):
    one = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
    assert (one.status, quota.usage("red")["gigabytes"]) == ("available", 1)
    assert not any(pier.asked for pier in docks.piers.values())

    attach(docks.anna, one, docks.servers["a1"])
    assert docks.again(one).status == "attaching"
    docks.settle()
    assert docks.again(one).status == "in-use"
    name = one.backend_volume_uuid
    docks.storage[name][:5] = b"hello"

    detach(docks.anna, one)
    docks.settle()
    assert (docks.again(one).status, docks.again(one).place) == ("available", None)
    assert not docks.piers["a"].known

    attach(docks.anna, one, docks.servers["b1"])
    docks.settle()
    assert docks.storage[name][:5] == b"hello"
    (taken, _key), *_ = docks.piers["b"].asked
    assert isinstance(taken, Take)
    assert taken.adopt

    detach(docks.anna, one)
    docks.settle()
    delete(docks.anna, one)
    assert quota.usage("red")["gigabytes"] == 1
    docks.settle()
    assert (docks.storage, quota.usage("red")["gigabytes"]) == ({}, 0)
    assert Volume.objects.get(pk=one.pk).deleted
    assert [type(one) for one, _ in docks.piers["b"].asked] == [
        *(Take, Leave, Take, Destroy),
    ]
    assert list(quota.drifts()) == []


def test_a_failed_first_attach_leaves_a_volume_without_data(docks: Docks):
    one = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
    docks.piers["a"].fails = lambda _: True
    attach(docks.anna, one, docks.servers["a1"])
    docks.settle()
    one = docks.again(one)
    assert (one.status, one.initialized, one.place) == ("available", False, None)
    assert one.fault == "a script failed"
    docks.piers["a"].fails = lambda _: False
    attach(docks.anna, one, docks.servers["a1"])
    docks.settle()
    assert docks.again(one).status == "in-use"


def test_quota_is_taken_with_the_volume_or_there_is_none(docks: Docks):
    Limit.objects.create(project="red", resource="gigabytes", limit=3)
    one = create(docks.anna, NewVolume(size=2, volume_type=docks.type))
    with pytest.raises(OverLimit, match="Requested 2G, quota is 3G"):
        create(docks.anna, NewVolume(size=2, volume_type=docks.type))
    assert Volume.objects.count() == 1
    extend(docks.anna, one, 3)
    assert quota.usage("red") == {
        "volumes": 1,
        "volumes_fast": 1,
        "snapshots": 0,
        "gigabytes": 3,
        "gigabytes_fast": 3,
    }
    assert not Operation.objects.exists()
