# SPDX-License-Identifier: BSD-2-Clause
"""The master is killed, a candidate takes over, and nothing acknowledged is lost.

Master and agents are processes on addresses of their own; guests are only pretended.
"""

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from moorage.node.records import leader
from support.masters import Account, copied, kill, on, places

ENDED = "is to be the next master: this one ends as planned"
TIMES = int(os.environ.get("FAILOVERS", "1"))
"""How often a busy master is followed; ten times takes minutes."""
pytestmark = pytest.mark.slow


@pytest.fixture
def town(scratch_of: Callable[[str], Scratch]) -> Scratch:
    return scratch_of("--nodes 3 --hypervisor fake")


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
    # It may have a commit that the master did not live to acknowledge: it is fetched.
    name, second = "node2", on(town, "node2")
    second.type("gnt-cluster master-failover --yes-do-it")
    _await_end(second, "TEST_DELAY")  # what was under way was taken up
    disks = {one["name"] for one in second.ask("gnt-disk list -o name")}
    assert len(account.acknowledged) >= 3
    assert set(account.acknowledged) <= disks
    assert second.type("gnt-cluster getmaster").strip() == name
    assert second.ask("gnt-instance list -o name,status")[0]["status"] == "running"
    assert _guest(town) == guest  # it is the same process, and nobody touched it
    second.type("gnt-disk add --size 1m -t sharedfile --name after")

    # The old master comes back with its store, and becomes a node.
    # Nothing failed: a supervisor ends well, and a unit of systemd's is not red.
    said = f"the cluster's master is on node {name} now"
    assert process.wait_until(lambda: led_by(town, name), 60)
    assert former(town) == 3
    assert said in town.master.log.read_text()
    assert not town.master.store.exists()
    assert process.wait_until(lambda: copied(second, "node1"), 60)
    assert json.loads(second.type("gnt-cluster verify --json"))["errors"] == []

    # And the way back, while the master lives: it ends first.
    back = first.type("gnt-cluster master-failover --yes-do-it")
    assert "node node1 is the master" in back
    there = places(town, name)
    assert process.wait_until(lambda: not process.holder(there.lock), 60)
    assert ENDED in there.log.read_text()
    assert process.wait_until(lambda: not there.store.exists(), 60)
    assert {"after", *account.acknowledged} <= {
        one["name"] for one in first.ask("gnt-disk list -o name")
    }


def led_by(town: Scratch, name: str) -> bool:
    """Whether the agents of all nodes have heard the master on one of them."""
    return all(
        (known := leader.read(town.node(one).run)) and known.sender.node == name
        for one in ("node1", "node2", "node3")
    )


def former(town: Scratch) -> int:
    """Let the former master start, as at the boot of its machine; return its status."""
    argv = process.command("master", "run", "--dir", str(town.master.root))
    with town.master.log.open("a") as log:
        return subprocess.run(argv, stderr=log, timeout=120, check=False).returncode


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


def test_what_is_acknowledged_right_after_a_start_survives_the_machine(
    town: Scratch,
) -> None:
    """The master is killed, its supervisor starts it, it acknowledges, and is lost."""
    first = on(town, "node1")
    assert process.wait_until(lambda: copied(first, "node2", "node3"), 60)
    account = Account(town.master)
    for _ in range(2):
        before = process.holder(town.master.lock)
        assert before
        os.kill(before, signal.SIGKILL)
        account.ended()
        since = len(account.acknowledged)
        first.type("moorage master start")  # it hurries, and answers
        account = Account(town.master, account)
        assert process.wait_until(
            lambda n=since, a=account: len(a.acknowledged) > n, 60
        )  # type: ignore[misc]
    kill(town.master)
    devcluster.lose_power(town, "node1")
    account.ended()
    second = on(town, "node3")
    second.type("gnt-cluster master-failover --yes-do-it")
    disks = {one["name"] for one in second.ask("gnt-disk list -o name")}
    assert set(account.acknowledged) <= disks


def test_a_busy_master_is_followed_as_planned_and_at_the_first_try(
    town: Scratch,
) -> None:
    """Several clients work all the time; nobody is killed."""
    assert process.wait_until(lambda: copied(on(town, "node1"), "node2", "node3"), 60)
    leads, acknowledged, ended = "node1", list[str](), Counter[str]()
    for turn in range(TIMES):
        clients = [
            Account(places(town, leads), prefix=f"t{turn}c{one}n") for one in range(3)
        ]
        assert process.wait_until(
            lambda them=clients: all(one.acknowledged for one in them),
            60,  # type: ignore[misc]
        )
        next_ = "node3" if leads == "node2" else "node2"
        told = on(town, next_).type("gnt-cluster master-failover --yes-do-it")
        assert f"node {next_} is the master" in told
        for one in clients:
            one.ended()
            acknowledged += one.acknowledged
        there = places(town, leads)
        # It was let go as planned: nobody starts it again, and its store is aside.
        assert process.wait_until(
            lambda at=there: not process.holder(at.supervisor), 60
        )  # type: ignore[misc]
        assert not there.store.exists()
        ended[leads] += 1
        assert there.log.read_text().count(ENDED) == ended[leads]
        leads = next_
        hands = on(town, leads)
        disks = {one["name"] for one in hands.ask("gnt-disk list -o name")}
        assert set(acknowledged) <= disks
        assert process.wait_until(
            lambda h=hands, other=next_: copied(h, *({"node2", "node3"} - {other})),
            60,  # type: ignore[misc]
        )
