# SPDX-License-Identifier: BSD-2-Clause
"""The watcher, typed at a real master: what comes back, and what stays down."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from desk import Desk, desk, desk_at
from moorage.cli.watcher import jobs
from moorage.cli.watcher.rules import MOST_TRIES, Guest, Memory, Tries, plan
from moorage.daemons import systemd
from moorage.daemons.paths import MasterPlaces
from moorage.daemons.watched import last_look
from moorage.directories import MASTER_DIR
from moorage.model import Change, successor
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour, pier

NOBODY = 65534
ROOT = Path(__file__).parents[2]


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    async with desk_at(harbour) as found:
        yield found


def uuid(cluster: SimCluster, name: str) -> str:
    return cluster.config.instance(name).uuid


def runs(at: Desk, node: str, name: str) -> bool:
    return f"{node} {uuid(at.cluster, name)}" in at.cluster.nodes.san.guests


async def statuses(at: Desk) -> dict[str, str]:
    told = await at.types("gnt-instance list --no-headers --separator=: -o name,status")
    return dict(line.split(":") for line in told.splitlines())


def kill(at: Desk, node: str, name: str) -> None:
    del at.cluster.nodes.san.guests[f"{node} {uuid(at.cluster, name)}"]


async def test_it_writes_objects_of_json_when_asked(
    at: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOORAGE_LOG_FORMAT", "text")  # and back, at the end
    at.cluster.nodes.san.lose_power("node1")
    out = await at.types("moorage watcher --log-format json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert {one["logger"] for one in lines} == {"moorage.watcher"}
    assert any("OP_INSTANCE_STARTUP for web1" in one["message"] for one in lines)


async def test_what_was_lost_with_a_node_comes_back(at: Desk) -> None:
    """What should run runs again; what was down on purpose stays down."""
    await at.types("moorage watcher")
    at.cluster.nodes.san.lose_power("node1")
    assert await statuses(at) == {
        "web1": "ERROR_down",
        "web2": "running",
        "web3": "ADMIN_down",
    }
    out = await at.types("moorage watcher --dry-run")
    assert "Would do OP_INSTANCE_STARTUP for web1" in out
    assert not runs(at, "node1", "web1")
    await at.types("moorage watcher")
    assert runs(at, "node1", "web1")
    assert not runs(at, "node3", "web3")
    jobs = set(at.cluster.engine.jobs)
    assert await at.types("moorage watcher") == ""
    assert set(at.cluster.engine.jobs) == jobs  # nothing is left to be done


async def test_a_guest_that_powers_itself_off_is_started_again_by_default(
    at: Desk,
) -> None:
    at.cluster.nodes.san.power_off("node2", uuid(at.cluster, "web2"))
    assert (await statuses(at))["web2"] == "ERROR_down"
    await at.types("moorage watcher")
    assert runs(at, "node2", "web2")


async def test_a_guest_that_may_power_itself_off_stays_off(at: Desk) -> None:
    """Ganeti's rules: the cluster allows it, and the guest's own parameter."""
    cluster = at.cluster
    await cluster.run("OP_CLUSTER_SET_PARAMS", enabled_user_shutdown=True)
    await at.types("gnt-instance modify -H user_shutdown=true web2")
    cluster.nodes.san.power_off("node2", uuid(cluster, "web2"))
    kill(at, "node1", "web1")
    assert (await statuses(at))["web2"] == "USER_down"
    told = (await at.screen("gnt-cluster verify")).out
    assert "instance web1: it should run" in told
    assert "instance web2: it should run" not in told
    await at.types("moorage watcher")
    one = cluster.config.instance("web2")
    assert (one.admin_state, one.admin_state_source) == ("down", "user")
    assert (await statuses(at))["web2"] == "USER_down"
    assert runs(at, "node1", "web1")  # it did not power itself off
    await at.types("gnt-instance startup web2")
    await at.types("gnt-instance shutdown web2")
    assert (await statuses(at))["web2"] == "ADMIN_down"


async def test_it_overrules_nobody_who_was_faster(at: Desk) -> None:
    cluster = at.cluster
    await at.types("gnt-instance shutdown web2")
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web2", if_wanted=True)
    assert not runs(at, "node2", "web2")
    await cluster.run(
        "OP_INSTANCE_SHUTDOWN",
        instance_name="web1",
        if_ended=True,
        admin_state_source="user",
    )
    assert runs(at, "node1", "web1")
    assert cluster.config.instance("web1").admin_state == "up"


async def test_a_guest_that_does_not_stay_up_is_left_alone(at: Desk) -> None:
    for _ in range(MOST_TRIES):
        kill(at, "node1", "web1")
        await at.types("moorage watcher")
        assert runs(at, "node1", "web1")
    kill(at, "node1", "web1")
    out = await at.types("moorage watcher")
    assert f"web1 was started {MOST_TRIES} times and does not stay up" in out
    assert not runs(at, "node1", "web1")


async def test_nobody_is_started_where_two_could_write(at: Desk) -> None:
    """A silent node, one that is marked offline, and a disk that another node has."""
    cluster = at.cluster
    kill(at, "node1", "web1")
    cluster.nodes.nodes["node1"].powered = False
    assert "web1: its node gives no answer" in await at.types("moorage watcher")
    cluster.nodes.nodes["node1"].powered = True
    node1 = cluster.config.node("node1")
    await cluster.config_store.commit(Change((successor(node1, 1.0, offline=True),)))
    assert "web1: its node is marked offline" in await at.types("moorage watcher")
    node1 = cluster.config.node("node1")
    await cluster.config_store.commit(Change((successor(node1, 1.0, offline=False),)))
    assert not runs(at, "node1", "web1")


async def test_a_pause(at: Desk) -> None:
    kill(at, "node1", "web1")
    await at.types("gnt-cluster watcher pause 1h")
    screen = await at.screen("moorage watcher")
    assert (screen.status, screen.out) == (0, "")
    assert "The watcher is paused until" in screen.err
    assert not runs(at, "node1", "web1")
    await at.types("moorage watcher --ignore-pause")
    assert runs(at, "node1", "web1")
    kill(at, "node1", "web1")
    await at.types("gnt-cluster watcher continue")
    await at.types("moorage watcher")
    assert runs(at, "node1", "web1")


async def test_without_a_master_it_says_so(tmp_path: Path) -> None:
    nowhere = Desk(SimCluster(tmp_path), tmp_path)
    assert (await nowhere.screen("moorage watcher")).status == 11


async def test_second_copies_follow_again_when_their_node_booted() -> None:
    with tempfile.TemporaryDirectory() as directory:
        cluster = await pier(Path(directory) / "nodes")
        async with desk(cluster, Path(directory)) as at:
            await at.types("moorage watcher")
            file = Path(directory) / "watcher.json"
            memory = json.loads(file.read_text())
            memory["boots"]["node2"] = "the boot before"
            file.write_text(json.dumps(memory))
            jobs = set(cluster.engine.jobs)
            await at.types("moorage watcher")
            (new,) = set(cluster.engine.jobs) - jobs
            told = await at.types(f"gnt-job list --no-headers -o summary,status {new}")
            assert told == "INSTANCE_ACTIVATE_DISKS(web1) success\n"
        await cluster.stop()


async def test_second_copies_follow_again_with_a_watcher_that_is_new_here() -> None:
    """As where the lead was on the node that booted: its last boot is unknown here."""
    with tempfile.TemporaryDirectory() as directory:
        cluster = await pier(Path(directory) / "nodes")
        async with desk(cluster, Path(directory)) as at:
            assert await at.types("moorage watcher --dry-run") == ""
            cluster.nodes.cut_power("node2")
            cluster.nodes.nodes["node2"].boot()
            assert not Path(directory, "watcher.json").exists()
            out = await at.types("moorage watcher")
            assert "OP_INSTANCE_ACTIVATE_DISKS for web1" in out
            assert await at.types("moorage watcher") == ""
            Path(directory, "watcher.json").unlink()
            assert await at.types("moorage watcher") == ""  # nothing is missing
        await cluster.stop()


def test_an_instance_that_a_job_works_on_is_not_given_another() -> None:
    down = Guest("web1", "ERROR_down", "up", "node1")
    assert plan([down], {}, Memory(jobs={"web1": 7}), 0.0).starts == ()
    assert plan([down], {}, Memory(jobs={"web2": 7}), 0.0).starts == ("web1",)


async def test_a_job_that_waits_is_not_waited_for_for_ever(
    at: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told, and the next look leaves the instance to it."""
    monkeypatch.setattr(jobs, "PATIENCE", 0.5)
    cluster, over = at.cluster, asyncio.Event()

    async def hang(_point: str) -> None:
        await over.wait()

    cluster.extra_point = hang
    kill(at, "node1", "web1")
    await cluster.submit("OP_INSTANCE_REBOOT", instance_name="web1")
    assert "for web1 goes on" in await at.types("moorage watcher")
    known = set(cluster.engine.jobs)
    assert await at.types("moorage watcher") == ""
    assert set(cluster.engine.jobs) == known
    over.set()
    for job in sorted(known)[-2:]:
        assert (await cluster.finished(job)).status == "success"
    assert runs(at, "node1", "web1")


def test_tries_are_forgotten() -> None:
    down = Guest("web1", "ERROR_down", "up", "node1")
    tired = Memory({"web1": Tries(MOST_TRIES, 1000.0)})
    assert plan([down], {}, tired, 2000.0).starts == ()
    assert plan([down], {}, tired, 1000.0 + 8 * 3600).starts == ("web1",)
    up = down._replace(status="running")
    assert plan([up], {}, tired, 1600.0).memory.tries == tired.tries
    assert plan([up], {}, tired, 3000.0).memory.tries == {}
    assert plan([], {}, tired, 2000.0).memory.tries == {}  # it is gone


def test_a_disk_that_another_node_has_keeps_its_guest_down() -> None:
    one = Guest(
        "web1", "ERROR_down", "up", "node1", ("node2",), True, ("node2", "node3")
    )
    found = plan([one], {}, Memory(), 0.0)
    assert found.starts == ()
    assert "node3 has a disk of it attached" in found.warnings[0]
    assert plan([one._replace(holders=("node2",))], {}, Memory(), 0.0).starts


async def test_verify_says_when_the_watcher_does_not_look(at: Desk) -> None:
    """Where none is expected, nobody is blamed; a paused one is told as paused."""
    cluster = at.cluster
    assert "watcher" not in await at.types("gnt-cluster verify")
    cluster.nodes.watched = cluster.clock() - 900.0
    assert "watcher" not in await at.types("gnt-cluster verify")
    cluster.nodes.watched -= 300.0
    screen = await at.screen("gnt-cluster verify --error-codes")
    assert screen.status == 1
    assert (
        "  - ERROR:ECLUSTERWATCHER:cluster::the watcher has not looked for 20 minutes: "
        "what ends is not started again\n"
    ) in screen.out
    ignored = await at.types("gnt-cluster verify -I ECLUSTERWATCHER")
    assert "WARNING: cluster: the watcher has not looked for 20 minutes" in ignored
    await at.types("gnt-cluster watcher pause 1h")
    cluster.clock = time.time  # a pause is told by the world's clock
    told = await at.types("gnt-cluster verify")
    assert "NOTICE: cluster: the watcher is paused until 2" in told
    assert "hint: gnt-cluster watcher continue" in told
    assert "not looked" not in told


async def test_each_look_leaves_its_mark(at: Desk) -> None:
    """One that is paused, too; one that only says what it would do leaves none."""
    file = at.directory / "watcher.json"
    begun = time.time() - 10.0
    assert last_look(file, begun) == begun  # the master began to lead then
    await at.types("moorage watcher --dry-run")
    assert last_look(file, begun) == begun
    for line in ("moorage watcher", "moorage watcher"):
        await at.types(line)
        assert last_look(file, begun) > begun
        os.utime(file, (0, 0))
        await at.types("gnt-cluster watcher pause 1h")


def test_a_watcher_is_expected_where_its_timer_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, packaged = tmp_path / "etc", tmp_path / "lib"
    monkeypatch.setattr(systemd, "_RUNS", tmp_path)
    places, timer = MasterPlaces(Path(MASTER_DIR)), "moorage-watcher.timer"
    for one in (own, packaged):
        one.mkdir()

    def expected(at: MasterPlaces = places) -> bool:
        return systemd.has_watcher(at, (own, packaged))

    assert not expected()
    (packaged / timer).touch()
    assert expected()
    assert not expected(MasterPlaces(tmp_path))  # a scratch cluster has none
    (own / timer).symlink_to("/dev/null")  # systemctl mask
    assert not expected()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
async def test_typed_by_root_it_leaves_the_timers_user_what_is_its_own(
    at: Desk,
) -> None:
    """That user writes there every five minutes; what root left before gives way."""
    for one in (at.directory, Path(at.environ["MOORAGE_SOCKET"])):
        os.chown(one, NOBODY, NOBODY)
    for name in ("watcher.json", "watcher.lock"):
        (at.directory / name).write_text("{}")
        (at.directory / name).chmod(0o600)
    for user in (NOBODY, 0, NOBODY):
        kill(at, "node1", "web1")
        typed = await asyncio.to_thread(process_of, at, user)
        assert typed.returncode == 0, typed.stderr
        assert runs(at, "node1", "web1")
    whose = {one.name: one.stat().st_uid for one in at.directory.glob("*watcher*")}
    assert whose == {"watcher.json": NOBODY, "watcher.lock": NOBODY}


def process_of(at: Desk, user: int) -> subprocess.CompletedProcess[str]:
    """Type it as a user, who may not reach the checkout where it lies."""
    python = Path("/mnt") / Path(sys.executable).relative_to(ROOT)
    become = f"setpriv --reuid={user} --regid={user} --clear-groups"
    run = f"exec {become} {python} -m moorage.cli.moorage watcher"
    seen = f"mount --bind '{ROOT}' /mnt && cd / && {run}"
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", seen],
        env=os.environ | at.environ | {"PYTHONPATH": "/mnt/src"},
        capture_output=True,
        text=True,
        check=False,
    )
