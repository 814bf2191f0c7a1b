# SPDX-License-Identifier: BSD-2-Clause
"""Guests that have a process and do not run: shown as what they are, and woken."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api.query import Sources, query
from moorage.cli.gnt_instance.info import instance as shown
from moorage.errors import WrongState
from moorage.model import Accelerator, Change, successor
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour

CAUSES = ("internal-error", "guest-panicked", "io-error", "shutdown", "paused")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await harbour(tmp_path / "nodes")
    yield cluster
    await cluster.stop()


def stands_still(cluster: SimCluster, cause: str) -> None:
    """Let QEMU stop the guest of web1, and say so."""
    uuid = cluster.config.instance("web1").uuid
    (key,) = (key for key in cluster.nodes.san.guests if key.endswith(uuid))
    found: dict[str, Any] = cluster.nodes.san.guests[key]
    state = found["state"] | {"state": "paused", "cause": cause}
    cluster.nodes.san.guests[key] = found | {"state": state}


async def cells(cluster: SimCluster, what: str, *fields: str) -> list[Any]:
    sources = Sources(cluster.config_store, cluster.nodes, cluster.engine)
    name = "web1" if what == "instance" else "node1"
    answer = await query(what, fields, ["==", "name", name], sources)
    return [value for _, value in answer["data"][0]]


@pytest.mark.parametrize("cause", CAUSES)
async def test_it_is_shown_as_what_it_is(cluster: SimCluster, cause: str) -> None:
    """In the list, in info, and in verify, with what to do about it."""
    stands_still(cluster, cause)
    status, reason = await cells(cluster, "instance", "status", "status.reason")
    assert status == cause
    assert "web1" in reason

    (told,) = (await cluster.run("OP_INSTANCE_QUERY_DATA", instances=["web1"])).values()
    assert cause in shown(told)["Standing still"]
    assert "gnt-instance" in shown(told)["What to do"]

    found = await cluster.run("OP_CLUSTER_VERIFY")
    (error,) = [one for one in found["errors"] if "stands still" in one["message"]]
    assert error["object"] == "instance web1"
    assert cause in error["message"]
    assert error["hint"] == shown(told)["What to do"]


async def test_startup_wakes_it(cluster: SimCluster) -> None:
    stands_still(cluster, "io-error")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")
    assert await cells(cluster, "instance", "status") == ["running"]
    assert (await cluster.run("OP_CLUSTER_VERIFY"))["errors"] == []


@pytest.mark.parametrize("more", [{}, {"allow_failover": True}], ids=["", "failover"])
async def test_it_does_not_migrate_and_is_not_woken_by_it(
    cluster: SimCluster, more: dict[str, bool]
) -> None:
    """Sent, and given up again, it would run: a refusal changes nothing."""
    stands_still(cluster, "prelaunch")
    asked = {"instance_name": "web1", "target_node": "node2", **more}
    with pytest.raises(WrongState, match=r"stands still \(prelaunch") as refused:
        await cluster.run("OP_INSTANCE_MIGRATE", **asked)
    assert refused.value.hint == "gnt-instance startup web1"
    assert await cells(cluster, "instance", "status") == ["paused"]


async def test_nobody_can_tell_what_runs_on_a_node_that_is_off(
    cluster: SimCluster,
) -> None:
    node = successor(cluster.config.node("node1"), 1.0, offline=True)
    await cluster.config_store.commit(Change((node,)))
    (told,) = (await cluster.run("OP_INSTANCE_QUERY_DATA", instances=["web1"])).values()
    assert shown(told)["State"] == "configured to be up"


async def test_a_node_says_what_executes_guests_and_how_that_is_known(
    cluster: SimCluster,
) -> None:
    known = Accelerator(name="tcg", reason="QEMU stopped with internal-error")
    cluster.nodes.nodes["node1"].hypervisor.executes = known
    fields = ("accelerator", "accelerator.reason")
    assert await cells(cluster, "node", *fields) == [known.name, known.reason]
    told = await cluster.run("OP_NODE_TRY_ACCELERATOR", node_names=["node1"])
    assert told == [["node1", known.name, known.reason]]
    told = await cluster.run("OP_NODE_TRY_ACCELERATOR")
    assert [row[1] for row in told] == ["tcg", "-", "-"]


async def test_a_parameter_without_effect_is_warned_of_at_each_start(
    cluster: SimCluster,
) -> None:
    """One that an earlier version kept."""
    await cluster.run("OP_INSTANCE_SHUTDOWN", instance_name="web1")
    kept = {"kvm": {"soundhw": "ac97"}}
    changed = successor(cluster.config.cluster, 1.0, hvparams=kept)
    await cluster.config_store.commit(Change((changed,)))
    job = await cluster.finished(
        await cluster.submit("OP_INSTANCE_STARTUP", instance_name="web1")
    )
    assert "soundhw=ac97 has no effect" in str(job)
