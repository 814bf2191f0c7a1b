# SPDX-License-Identifier: BSD-2-Clause
"""Masters on three candidates, with one state in a real etcd: who waits takes over."""

import io
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from moorage.cli.main import INTERRUPTED
from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from moorage.daemons.paths import MasterPlaces
from moorage.store import inspect
from support.etcd_members import Members, members
from support.masters import Account, kill, on, places
from support.sampling import SEED

pytestmark = pytest.mark.real
LONG = 120.0
ROUNDS = int(os.environ.get("MOORAGE_ROUNDS", "3"))
EVENTS = ("kill", "stop", "kill both")
"""What becomes of the master that leads; "both": and of etcd's own leader."""
NAMES = ("node1", "node2", "node3")


@pytest.fixture(scope="module")
def etcd() -> Iterator[Members]:
    with members() as found:
        yield found


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory, etcd: Members) -> Iterator[Scratch]:
    """Return a cluster with a master that leads, and two that wait."""
    at = tmp_path_factory.mktemp("town") / "c"
    made = devcluster.up(at, nodes=3, hypervisor="sim", bare=True)
    hosts = ",".join(url.removeprefix("http://") for url in etcd.clients)
    try:
        hands = Typist(made.environment(), io.StringIO())
        where = f"--store etcd://{hosts}/demo --shared-file-storage-dir=/shared"
        hands.type(f"gnt-cluster init {where} --node-name node1 demo")
        for name in NAMES[1:]:
            hands.type(f"gnt-node add {name}")
            key = made.node(name).run / "state" / "keys" / "own.pem"
            assert process.wait_until(key.exists, LONG)
        for name in NAMES[1:]:
            said = on(made, name).type(
                f"moorage master wait --store {made.master.etcd}"
            )
            assert f"A master on {name} waits for the lead" in said
        yield made
    finally:
        for name in NAMES:
            on(made, name)._run("moorage master stop", shown=False)
        devcluster.down(at)


def leads(town: Scratch, name: str) -> bool:
    done = on(town, name)._run("gnt-cluster info", shown=False)
    return done.returncode == 0


def leader(town: Scratch, *among: str) -> str:
    """Return which master leads, as soon as one does."""
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        for name in among:
            if leads(town, name):
                return name
    raise AssertionError("nobody leads")


def test_who_waits_says_where_the_master_is(town: Scratch) -> None:
    said = on(town, "node2").refused("gnt-node list")
    assert "this master waits for the lead: another master leads on etcd://" in said
    assert on(town, "node2").type("gnt-cluster getmaster") == "node1\n"
    said = on(town, "node2").refused(f"moorage master wait --store {town.master.etcd}")
    assert "there is a master here already" in said


class Blow:
    """What becomes of the master that leads, and of etcd; it is mended later."""

    def __init__(self, event: str, at: MasterPlaces, etcd: Members) -> None:
        self._event, self._at, self._etcd = event, at, etcd
        self._member = etcd.leader() if event == "kill both" else None
        pid = process.holder(at.lock)
        assert pid
        self._pid = pid
        if event == "stop":
            os.kill(pid, signal.SIGSTOP)
        else:
            kill(at)
        if self._member is not None:
            etcd.signal(self._member, signal.SIGKILL)

    def mend(self) -> None:
        """Let a master go on that stood still, which ends it; start what was killed."""
        if self._event == "stop":
            os.kill(self._pid, signal.SIGCONT)
            assert process.wait_until(lambda: not process.alive(self._pid), LONG)
        if self._member is not None:
            self._etcd.start(self._member)
            self._etcd.wait()


def test_masters_die_and_stand_still_and_nothing_is_lost(
    town: Scratch, etcd: Members
) -> None:
    """A history: clients add disks, the master that leads dies or stands still.

    Nothing that was acknowledged is lost, no job stays, each lead has a term of its
    own, and whoever stood still is followed and ends. ``MOORAGE_ROUNDS`` makes it
    longer, ``MOORAGE_SEED`` another one.
    """
    drawn = random.Random(SEED)  # noqa: S311 - it is to be drawn again
    more = drawn.choices(EVENTS, k=max(ROUNDS - len(EVENTS), 0))
    account: Account | None = None
    now, first = leader(town, *NAMES), found_term(town, NAMES[0])
    for number, event in enumerate([*EVENTS, *more][:ROUNDS]):
        account = Account(places(town, now), account)
        told, much = account.acknowledged, len(account.acknowledged) + 3
        assert process.wait_until(lambda told=told, much=much: len(told) > much, LONG)
        since = time.monotonic()
        blow = Blow(event, places(town, now), etcd)
        heir = leader(town, *(one for one in NAMES if one != now))
        hands = on(town, heir)
        hands.type(f"gnt-disk add -t sharedfile -s 1M heir{number}")
        took = time.monotonic() - since
        sys.stdout.write(f"{event}: {took:.1f} s to the first job of the next master\n")
        away = "cannot be asked" in hands.type("gnt-cluster verify")
        assert away == (event == "kill both")  # a member of etcd's is away
        blow.mend()
        account.ended()
        disks = {one["name"] for one in hands.ask("gnt-disk list -o name")}
        assert disks >= {*account.acknowledged, f"heir{number}"}
        assert hands.type("gnt-cluster getmaster") == f"{heir}\n"
        on(town, now).type("moorage master start")  # it waits from now on
        assert not leads(town, now)
        now = heir
    assert process.wait_until(lambda: ended(on(town, now)), LONG), "a job stays"
    assert "ERROR" not in on(town, now).type("gnt-cluster verify")
    assert "No problem" in on(town, now).type("moorage master check")
    assert found_term(town, now) == first + ROUNDS


def ended(hands: Typist) -> bool:
    statuses = {one["status"] for one in hands.ask("gnt-job list -o status")}
    return statuses <= {"success", "error"}


def found_term(town: Scratch, name: str) -> int:
    """Return the term of the lead, by what is in etcd."""
    found = inspect(places(town, name).store, live=True)
    assert found.faults == []
    return found.term


def test_the_lead_is_handed_over_in_peace(town: Scratch) -> None:
    old = leader(town, *NAMES)
    on(town, old).type("moorage master stop")
    heir = leader(town, *(one for one in NAMES if one != old))
    on(town, heir).type("gnt-disk add -t sharedfile -s 1M peace")
    on(town, old).type("moorage master start")
    assert not leads(town, old)


def test_a_candidate_that_was_chosen_gets_the_lead_and_no_other(town: Scratch) -> None:
    old = leader(town, *NAMES)
    heir, third = (one for one in NAMES if one != old)
    said = on(town, old).refused("gnt-cluster master-failover --yes-do-it")
    assert "the master is on this node already" in said
    for option in ("--no-voting", "--accept-loss"):
        said = on(town, heir).refused(f"gnt-cluster master-failover {option}")
        assert f"{option} says nothing where the state is in etcd" in said
    account = Account(places(town, old))
    since = time.monotonic()
    on(town, heir).type("gnt-cluster master-failover --yes-do-it")
    sys.stdout.write(f"handed over in {time.monotonic() - since:.1f} s\n")
    account.ended()
    assert leads(town, heir)
    disks = {one["name"] for one in on(town, heir).ask("gnt-disk list -o name")}
    assert disks >= set(account.acknowledged)
    assert process.wait_until(
        lambda: waits(town, old) and waits(town, third), LONG
    )  # who led before was started again, and is there for the next time
    on(town, third).type("moorage master stop")
    said = on(town, third).refused("gnt-cluster master-failover --yes-do-it")
    assert "the master here does not wait for the lead" in said
    on(town, third).type("moorage master start")


def waits(town: Scratch, name: str) -> bool:
    done = on(town, name)._run("gnt-cluster info", shown=False)
    return "this master waits for the lead" in done.stderr


def test_who_got_another_key_while_it_waited_leads_by_that(town: Scratch) -> None:
    old = leader(town, *NAMES)
    heir, third = (one for one in NAMES if one != old)
    on(town, third).type("moorage master stop")
    key = town.node(heir).run / "state" / "keys" / "own.pem"
    before = key.read_bytes()
    hands = on(town, old)
    hands.type(f"gnt-node modify -C no {heir}")
    hands.type(f"gnt-node modify -C yes {heir}")
    hands.type("gnt-cluster renew-crypto --new-node-certificates")
    assert process.wait_until(lambda: key.read_bytes() != before, LONG)
    assert process.wait_until(lambda: ended(hands), LONG)
    hands.type("moorage master stop")
    assert leader(town, heir) == heir
    on(town, heir).type("gnt-disk add -t sharedfile -s 1M renewed")
    for name in (old, third):
        on(town, name).type("moorage master start")


def interrupted(hands: Typist, line: str, begun: Callable[[], bool]) -> float:
    """Type a command and Ctrl-C when it has begun; return the seconds that it took."""
    pipe = subprocess.PIPE
    with subprocess.Popen(line.split(), env=hands._environ, stderr=pipe) as typed:
        assert process.wait_until(lambda: typed.poll() is not None or begun(), LONG)
        since = time.monotonic()
        typed.send_signal(signal.SIGINT)
        typed.communicate(timeout=LONG)
    assert typed.returncode == INTERRUPTED
    return time.monotonic() - since


def wished(etcd: Members) -> bool:
    found = etcd.keys()
    return b"/demo/wish" in found


def test_ctrl_c_ends_a_failover_at_once(town: Scratch, etcd: Members) -> None:
    """A job keeps the lead for ten seconds: nobody has to wait for that."""
    old = leader(town, *NAMES)
    heir = next(one for one in NAMES if one != old)
    assert process.wait_until(lambda: waits(town, heir), LONG)
    on(town, old).type("gnt-debug delay --submit 30")
    line = "gnt-cluster master-failover --yes-do-it"
    took = interrupted(on(town, heir), line, lambda: wished(etcd))
    assert took < 5
    assert not wished(etcd)
    leader(town, *NAMES)


def test_ctrl_c_in_a_move_of_the_state_leaves_the_lead_here(town: Scratch) -> None:
    """Masters that wait get no lead by it; the move is taken back by its name."""
    old = leader(town, *NAMES)
    others = [one for one in NAMES if one != old]
    assert process.wait_until(lambda: all(waits(town, one) for one in others), LONG)
    at = places(town, old)
    interrupted(on(town, old), "moorage store move sqlite", at.moving.exists)
    assert leads(town, old)
    on(town, old).type(f"moorage store move {at.etcd}")
    assert not at.moving.exists()
    assert leads(town, old)
    on(town, old).type("gnt-disk add -t sharedfile -s 1M interrupted")
