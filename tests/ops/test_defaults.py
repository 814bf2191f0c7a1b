# SPDX-License-Identifier: BSD-2-Clause
"""A bad default of a cluster is refused where it is set; verify finds old ones."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.errors import BadInput, MoorageError
from moorage.model import Change, successor
from moorage.ops.cluster import defaults
from moorage.testing.cluster import ClusterBuilder, SimCluster

CLUSTER = ClusterBuilder().objects["cluster"]
BAD = [
    ({"diskparams": {"sharedfile": {"foo": "1"}}}, "foo"),
    ({"diskparams": {"ext": {"foo": "1"}}}, "foo"),
    ({"diskparams": {"ext": {"provider": "san"}}}, "provider"),
    ({"diskparams": {"ext": {"access": "bogus"}}}, "bogus"),
    ({"diskparams": {"file": {"preallocate": "maybe"}}}, "maybe"),
    ({"diskparams": {"floppy": {"sides": "2"}}}, "floppy"),
    ({"diskparams": {"plain": {"stripes": "0"}}}, "stripes"),
    ({"diskparams": {"rbd": {"access": "bogus"}}}, "bogus"),
    ({"diskparams": {"gluster": {"port": "none"}}}, "port"),
    ({"hvparams": {"nosuch": {"a": "1"}}}, "nosuch"),
    ({"hvparams": {"kvm": {"nosuch": "1"}}}, "nosuch"),
    ({"hvparams": {"fake": {"nosuch": "1"}}}, "nosuch"),
    ({"beparams": {"default": {"vcpus": 0}}}, "vcpus"),
    ({"beparams": {"maxmem": 2**40}}, "maxmem"),
    ({"beparams": {"auto_balance": "maybe"}}, "auto_balance"),
    ({"default_iallocator": "nosuch"}, "nosuch"),
    ({"enabled_hypervisors": ["xen-pvm"]}, "xen-pvm"),
]


@pytest.fixture
async def cluster(tmp_path: Path):
    found = await SimCluster.start(tmp_path)
    yield found
    await found.stop()


@pytest.mark.parametrize(("fields", "word"), BAD)
async def test_a_bad_default_is_refused(cluster, fields, word) -> None:
    before = cluster.config
    error = await cluster.refused("OP_CLUSTER_SET_PARAMS", **fields)
    assert word in error.message
    assert cluster.config is before


async def test_good_ones_are_taken_and_taken_back(cluster) -> None:
    good = {"ext": {"access": "userspace"}, "sharedfile": {"preallocate": "yes"}}
    await cluster.run("OP_CLUSTER_SET_PARAMS", diskparams=good)
    await cluster.run("OP_CLUSTER_SET_PARAMS", default_iallocator="hail")
    back = {"ext": {"access": "default"}, "sharedfile": {"preallocate": "default"}}
    await cluster.run("OP_CLUSTER_SET_PARAMS", diskparams=back)
    await cluster.run("OP_CLUSTER_SET_PARAMS", default_iallocator="")
    assert not any(cluster.config.cluster.diskparams.values())


async def test_a_disk_can_be_made_after_every_refusal(cluster) -> None:
    for fields, _ in BAD:
        await cluster.refused("OP_CLUSTER_SET_PARAMS", **fields)
    disk = {"size": 64, "provider": "san", "disk_template": "ext"}
    assert await cluster.run("OP_DISK_ADD", **disk)


async def test_verify_tells_of_those_that_are_there_already(cluster) -> None:
    async def errors() -> list[str]:
        found = await cluster.run("OP_CLUSTER_VERIFY")
        return [one["message"] for one in found["errors"]]

    before = await errors()
    old = cluster.config.cluster
    bad = successor(
        old,
        1.0,
        diskparams={"sharedfile": {"foo": "1"}},
        hvparams={"nosuch": {"a": "1"}},
        beparams={"default": {"vcpus": 0}},
        default_iallocator="nosuch",
    )
    await cluster.config_store.commit(Change((bad,)), [])
    told = [one for one in await errors() if one not in before]
    assert len(told) == 4
    assert all("stops new disks or guests" in one for one in told)
    fix = {"sharedfile": {"foo": "default"}}
    await cluster.run("OP_CLUSTER_SET_PARAMS", diskparams=fix)
    assert len(await errors()) == len(before) + 3


@pytest.mark.parametrize(
    "fields",
    [one for one, _ in BAD if one.keys() <= {"hvparams", "diskparams"}],
)
def test_a_first_cluster_is_checked_likewise(fields) -> None:
    with pytest.raises(MoorageError):
        defaults.check(replace(CLUSTER, **fields))


def test_a_profile_that_there_is_not() -> None:
    with pytest.raises(BadInput, match="profile"):
        defaults.check(replace(CLUSTER, beparams={"gold": {}}))
