# SPDX-License-Identifier: BSD-2-Clause
"""The master is killed, a candidate takes over, and nothing acknowledged is lost.

Master and agents are processes on addresses of their own; guests are only pretended.
"""

import io
import json
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from moorage.api.luxi import NOCHANGE, LuxiClient
from moorage.cli.tour.claims import BrokenClaim
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from moorage.daemons.paths import MasterPlaces
from moorage.errors import MoorageError

pytestmark = pytest.mark.slow


@pytest.fixture
def town(scratch_of: Callable[[str], Scratch]) -> Scratch:
    return scratch_of("--nodes 3 --hypervisor fake")


def on(town: Scratch, name: str) -> Typist:
    """Return hands on a node; the cluster was made on the first one."""
    root = places(town, name).root
    told = {
        "MOORAGE_DIR": str(root),
        "MOORAGE_SOCKET": str(root / "luxi.sock"),
        "MOORAGE_NODE_DIR": str(town.node(name).root),
    }
    return Typist(town.environment() | told, io.StringIO())


def places(town: Scratch, name: str) -> MasterPlaces:
    return (
        town.master if name == "node1" else MasterPlaces(town.path / f"master-{name}")
    )


def kill(at: MasterPlaces) -> None:
    """Kill a master with its supervisor, as a machine that loses its power does."""
    for lock in (at.supervisor, at.lock):
        pid = process.holder(lock)
        if pid:
            os.kill(pid, signal.SIGKILL)
            assert process.wait_until(lambda pid=pid: not process.alive(pid), 30)


def copied(hands: Typist, *names: str) -> bool:
    rows = hands.ask("gnt-node list -o name,copy")
    return {one["name"] for one in rows if one["copy"] == "current"} >= set(names)


class Account:
    """Adds disks one after the other, and keeps the names that were acknowledged."""

    def __init__(self, at: MasterPlaces) -> None:
        self.acknowledged: list[str] = []
        self._luxi = LuxiClient(str(at.socket))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(MoorageError):  # until the master is gone
            for number in count():
                self._add(f"d{number}")

    def _add(self, name: str) -> None:
        fields = {"disk_template": "sharedfile", "size": 1, "name": name}
        job = self._luxi.submit_job([{"OP_ID": "OP_DISK_ADD", **fields}])
        seen: list[Any] = [None]
        while seen[0] not in ("success", "error"):
            found = self._luxi.wait_for_job_change(job, ("status",), (seen, None))
            seen = seen if found == NOCHANGE else found[0]
        assert seen[0] == "success"
        self.acknowledged.append(name)

    def ended(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()


def test_a_killed_master_is_followed_and_nothing_acknowledged_is_lost(
    town: Scratch,
) -> None:
    first = on(town, "node1")
    first.type(
        "gnt-instance add -t sharedfile --disk 0:size=1m --no-install -n node3 web1"
    )
    guest = _guest(town)
    assert process.wait_until(lambda: copied(first, "node2", "node3"), 60)
    account = Account(town.master)
    assert process.wait_until(lambda: len(account.acknowledged) >= 3, 120)
    first.type("gnt-debug delay --submit 600")
    delays = "gnt-job list --running -o summary --no-headers"
    assert process.wait_until(lambda: "TEST_DELAY" in first.type(delays), 60)
    kill(town.master)
    account.ended()

    # Two of three nodes answer, and that is enough; the third one's agent lives, too.
    name, told = followed(town)
    second = on(town, name)
    assert f"node {name} is the master" in told
    _await_end(second, "TEST_DELAY")  # what was under way was taken up
    disks = {one["name"] for one in second.ask("gnt-disk list -o name")}
    assert len(account.acknowledged) >= 3
    assert set(account.acknowledged) <= disks
    assert second.type("gnt-cluster getmaster").strip() == name
    assert second.ask("gnt-instance list -o name,status")[0]["status"] == "running"
    assert _guest(town) == guest  # it is the same process, and nobody touched it
    second.type("gnt-disk add --size 1m -t sharedfile --name after")

    # The old master comes back with its store, and becomes a node.
    process.spawn(
        ["master", "run", "--restart", "--dir", str(town.master.root)],
        town.master.log,
    )
    said = f"the cluster's master is on node {name} now"
    assert process.wait_until(lambda: said in town.master.log.read_text(), 60)
    assert process.wait_until(lambda: not process.holder(town.master.supervisor), 60)
    assert not town.master.store.exists()
    assert process.wait_until(lambda: copied(second, "node1"), 60)
    assert json.loads(second.type("gnt-cluster verify --json"))["errors"] == []

    # And the way back, while the master lives: it ends by itself.
    back = first.type("gnt-cluster master-failover --yes-do-it")
    assert "node node1 is the master" in back
    there = places(town, name)
    assert process.wait_until(lambda: not process.holder(there.lock), 60)
    assert process.wait_until(lambda: not there.store.exists(), 60)
    assert {"after", *account.acknowledged} <= {
        one["name"] for one in first.ask("gnt-disk list -o name")
    }


def followed(town: Scratch) -> tuple[str, str]:
    """Let the candidate take over whose copy is the furthest; return what it says.

    One may have a commit more that the master did not live to acknowledge.
    """
    second, third = on(town, "node2"), on(town, "node3")
    try:
        return "node2", second.type("gnt-cluster master-failover --yes-do-it")
    except BrokenClaim as refusal:
        if "the copy on node3 has 1 commits more" not in str(refusal):
            raise
        return "node3", third.type("gnt-cluster master-failover --yes-do-it")


def _await_end(hands: Typist, summary: str) -> None:
    """Fail if there is no such job, or it does not end as one that was cut short."""
    listed = hands.ask("gnt-job list -o id,summary,status")
    (row,) = [one for one in listed if summary in str(one["summary"])]
    ask = f"gnt-job list -o status {row['id']}"
    ended = process.wait_until(lambda: hands.ask(ask) == [{"status": "error"}], 60)
    assert ended, hands.ask(ask)


def _guest(town: Scratch) -> Any:
    found = sorted((town.node("node3").run / "fake").rglob("*"))
    return [(one.name, one.read_bytes()) for one in found if one.is_file()]


def test_who_may_not_become_the_master_is_told_why(town: Scratch) -> None:
    first, third = on(town, "node1"), on(town, "node3")
    first.type("gnt-node modify -C no node3")
    gone = town.node("node3").run / "state"
    assert process.wait_until(lambda: not gone.exists(), 60)
    said = third.refused("gnt-cluster master-failover --yes-do-it")
    assert "node node3 keeps no copy of the cluster's state" in said
    assert "the master is node1" in said
    kill(town.master)
    devcluster.lose_power(town, "node1")
    devcluster.lose_power(town, "node3")
    second = on(town, "node2")
    said = second.refused("gnt-cluster master-failover --yes-do-it")
    assert "1 of 3 nodes answer, and more than half have to" in said
    told = second.type("gnt-cluster master-failover --no-voting --yes-do-it")
    assert "node1 gives no answer" in told
    assert second.type("gnt-cluster getmaster").strip() == "node2"
