# SPDX-License-Identifier: BSD-2-Clause
"""A guest migrates as it runs, whatever was changed on record since it started."""

from pathlib import Path
from typing import Any

import pytest

from moorage.errors import NoCapacity
from moorage.jobs import Run
from moorage.model import GuestState, hvparams
from moorage.ops.instance.migrate import _machine
from moorage.protocol import PrepareMigration, RunMigration
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.units import Mib


async def test_memory_that_was_changed_since_counts_from_the_next_start(
    tmp_path: Path,
) -> None:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(2))
    web: dict[str, str] = {"instance_name": "web"}
    new = {"pnode": "node1", "disk_template": "diskless", "disks": []}
    await cluster.run("OP_INSTANCE_CREATE", beparams={"memory": 256}, **web, **new)
    changed = {"memory": 512, "vcpus": 2}
    await cluster.run("OP_INSTANCE_SET_PARAMS", beparams=changed, **web)
    await cluster.run("OP_INSTANCE_MIGRATE", target_node="node2", **web)
    (guest,) = await cluster.nodes.nodes["node2"].hypervisor.guests()
    assert (guest.memory, guest.vcpus) == (256, 1)
    await cluster.run("OP_INSTANCE_REBOOT", reboot_type="full", **web)
    (guest,) = await cluster.nodes.nodes["node2"].hypervisor.guests()
    assert (guest.memory, guest.vcpus) == (512, 2)
    await cluster.stop()


async def test_its_processor_and_its_machine_go_along(tmp_path: Path) -> None:
    """A running guest would find another processor under it; the record's is for its
    next start. Where it keeps its files, and whose it is, the record alone says."""
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(2))
    web: dict[str, str] = {"instance_name": "web"}
    new = {"pnode": "node1", "disk_template": "diskless", "disks": []}
    own = {"cpu_type": "Nehalem", "kernel_args": "quiet"}
    await cluster.run("OP_INSTANCE_CREATE", hvparams=own, **web, **new)
    changed = {"cpu_type": "qemu64", "nic_type": "e1000", "migration_port": 9000}
    await cluster.run("OP_INSTANCE_SET_PARAMS", hvparams=changed, **web)
    told: list[dict[str, Any]] = []

    async def read(_name: str) -> None:
        ops = (op for job in cluster.engine.queue.working.values() for op in job.ops)
        runs = (one.do for op in ops for one in op.tasks if isinstance(one, Run))
        told.extend(one.hvparams for one in runs if isinstance(one, PrepareMigration))

    cluster.extra_point = read
    await cluster.run("OP_INSTANCE_MIGRATE", target_node="node2", **web)
    names = ("cpu_type", "nic_type", "migration_port", "kernel_args")
    given = {name: told[0][name] for name in names}
    assert [*given.values()] == ["Nehalem", "paravirtual", 9000, "quiet"]
    await cluster.run("OP_INSTANCE_MIGRATE", target_node="node1", **web)
    assert told[-1]["cpu_type"] == "Nehalem"
    await cluster.run("OP_INSTANCE_REBOOT", **web)
    await cluster.run("OP_INSTANCE_MIGRATE", target_node="node2", **web)
    assert told[-1]["cpu_type"] == "qemu64"
    await cluster.stop()


def test_a_node_says_of_a_guest_nothing_that_names_files_or_users() -> None:
    """Another one starts QEMU with it, as root. Who is silent made no agent's port."""
    lies: dict[str, Any] = {
        "cpu_type": "host",
        "kvm_extra": "-device x",
        "kernel_path": "/etc/shadow",
        "security_model": "none",
        "vnc_bind_address": "0.0.0.0",  # noqa: S104
    }
    guest = GuestState(
        uuid="g1", name="web", state="running", memory=Mib(1), vcpus=1, machine=lies
    )
    assert _machine(guest) == {"cpu_type": "host", **hvparams.ABSENT}


async def lowered(cluster: SimCluster, *names: str) -> None:
    """Make instances that run with 30 GiB, of which the record has 1 GiB now."""
    for name in names:
        new = {"pnode": "node1", "disk_template": "diskless", "disks": []}
        big = {"memory": 30_000}
        await cluster.run("OP_INSTANCE_CREATE", instance_name=name, beparams=big, **new)
        less = {"beparams": {"memory": 1000}, "ignore_ipolicy": True}
        await cluster.run("OP_INSTANCE_SET_PARAMS", instance_name=name, **less)


def migrating(name: str, **more: Any) -> dict[str, Any]:
    return {"OP_ID": "OP_INSTANCE_MIGRATE", "instance_name": name, **more}


@pytest.mark.parametrize("named", [True, False], ids=["named", "planned"])
async def test_the_target_must_have_what_the_guest_runs_with(
    tmp_path: Path, *, named: bool
) -> None:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(2))
    await lowered(cluster, "web")
    there = {"pnode": "node2", "disk_template": "diskless", "disks": []}
    full = {"beparams": {"memory": 40_000}, "ignore_ipolicy": True, **there}
    await cluster.run("OP_INSTANCE_CREATE", instance_name="other", **full)
    to = {"target_node": "node2"} if named else {}
    (error,) = await cluster.at_once(migrating("web", **to))
    assert isinstance(error, NoCapacity)
    assert "memory (asked 30000" in error.message
    assert not await cluster.at_once(migrating("web", ignore_capacity=True, **to))
    await cluster.stop()


async def test_two_at_once_do_not_overfill_the_target(tmp_path: Path) -> None:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(2))
    await lowered(cluster, "web1", "web2")
    there = {"pnode": "node2", "disk_template": "diskless", "disks": []}
    some = {"beparams": {"memory": 20_000}, **there}
    await cluster.run("OP_INSTANCE_CREATE", instance_name="other", **some)
    both = (migrating(name, target_node="node2") for name in ("web1", "web2"))
    (error,) = await cluster.at_once(*both)
    assert isinstance(error, NoCapacity)
    await cluster.stop()


@pytest.mark.parametrize(
    ("asked", "live"),
    [
        ({}, True),
        ({"mode": "live"}, True),
        ({"mode": "non-live"}, False),
        ({"live": True}, True),
        ({"live": False}, False),
    ],
)
async def test_it_runs_meanwhile_unless_somebody_wants_it_to_stand_still(
    tmp_path: Path, asked: dict[str, Any], live: bool
) -> None:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(2))
    web: dict[str, str] = {"instance_name": "web"}
    new = {"pnode": "node1", "disk_template": "diskless", "disks": []}
    await cluster.run("OP_INSTANCE_CREATE", **web, **new)
    told: list[bool] = []

    async def read(_name: str) -> None:
        ops = (op for job in cluster.engine.queue.working.values() for op in job.ops)
        runs = (one for op in ops for one in op.tasks if isinstance(one, Run))
        told.extend(one.do.live for one in runs if isinstance(one.do, RunMigration))

    cluster.extra_point = read
    await cluster.run("OP_INSTANCE_MIGRATE", target_node="node2", **asked, **web)
    assert {*told} == {live}
    await cluster.stop()
