# SPDX-License-Identifier: BSD-2-Clause
"""What breaks, and when: decided from a seed."""

import time
from collections import Counter
from collections.abc import Collection
from random import Random

import rooms
from answers import Account
from etcd_yard import EtcdYard
from failovers import Failovers
from proxy import CUT, LATE, PASS, REFUSE
from yard import Yard

from moorage.daemons import process

ROOM = 90.0
"""Seconds within which a master is back by itself once there is room again."""
EVENTS = {
    "master killed": 8,
    "agent killed": 8,
    "both killed": 2,
    "all killed": 2,
    "killed while it starts": 3,
    "agent stopped": 1,
    "master cannot write": 1,
    "replies cut": 2,
    "requests late": 2,
    "connections refused": 1,
    "planned failover": 1.5,
    "machine lost": 1.5,
    "lost after start": 1.5,
    "machine stalls": 1,
    "master's directory full": 0.7,
    "copies' directory full": 0.7,
    "agent's directory full": 0.7,
}
"""What happens, and how often in proportion."""
OVER_ETCD = {"member killed": 4, "member stopped": 2, "leader stopped": 3}
"""What happens besides, where the state is in etcd."""
OVER_SQLITE = frozenset(
    {
        *("planned failover", "machine lost", "lost after start", "machine stalls"),
        *("master cannot write", "master's directory full", "copies' directory full"),
    }
)
"""What happens only where it is in a file, of which candidates keep copies."""
WIRE = {"replies cut": CUT, "requests late": LATE, "connections refused": REFUSE}
FULL = ("master's directory full", "copies' directory full", "agent's directory full")


class Chaos:
    """Decides from a seed what breaks when."""

    def __init__(
        self,
        yard: Yard,
        account: Account,
        seed: str,
        without: Collection[str] = (),
        only: Collection[str] = (),
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._yard = yard
        self._account = account
        self._dice = Random(f"{seed}/chaos")  # noqa: S311
        self.failovers = Failovers(yard, account, self._dice)
        spared = OVER_SQLITE if yard.over_etcd else OVER_ETCD.keys()
        self._events = {
            what: weight
            for what, weight in (EVENTS | OVER_ETCD).items()
            if what not in without
            and what not in spared
            and (not only or what in only)
            and (what not in FULL or rooms.there())
        }

    def happen(self) -> None:
        """Let one thing break, and mend it after a moment."""
        (what,) = self._dice.choices(list(self._events), list(self._events.values()))
        node = self._dice.choice(self._yard.scratch.names)
        self._account.ledger.note("event", event=what, node=node)
        self.counts[what] += 1
        if what in WIRE:
            self._wire(what, node)
        elif what in FULL:
            self._full(what, node)
        else:
            ways = {
                "agent stopped": self._stop,
                "master cannot write": self._unwritable,
                "planned failover": lambda _: self.failovers.planned(),
                "machine lost": lambda _: self.failovers.unplanned(),
                "lost after start": lambda _: self.failovers.after_start(),
                "machine stalls": lambda _: self.failovers.stalled(),
                "all killed": self._all,
                "killed while it starts": self._again,
                **dict.fromkeys(OVER_ETCD, lambda _: self._over_etcd(what)),
            }
            ways.get(what, lambda at: self._kill(what, at))(node)

    def _over_etcd(self, what: str) -> None:
        """Let a member of etcd die or stand still, or the master that leads."""
        yard, number = self._yard, self._dice.randrange(3)
        seconds = self._dice.choice((0.1, 1.0, 3.0, 6.0))
        assert isinstance(yard, EtcdYard)
        if what == "leader stopped":
            yard.stop_leader(seconds)
        elif what == "member stopped":
            yard.stop_member(number, seconds)
        else:
            if self._dice.random() < 0.5:  # etcd's own leader, in half of all cases
                number = yard.members.leader() or number
            yard.kill_member(number)
            time.sleep(seconds)
            yard.start_member(number)

    def _stop(self, node: str) -> None:
        pid = self._yard.agent_pid(node)
        with self._yard.stopped([pid] if pid else []):
            time.sleep(self._dice.choice((0.3, 1.0, 3.0, 18.0)))

    def _unwritable(self, _node: str) -> None:
        with self._yard.full_disk():
            time.sleep(self._dice.uniform(0.05, 1.5))
        self._yard.start_master()

    def _wire(self, what: str, node: str) -> None:
        proxy = self._yard.proxies.by_node[node]
        proxy.mode = WIRE[what]
        time.sleep(self._dice.uniform(0.1, 1.0))
        proxy.mode = PASS

    def _kill(self, what: str, node: str) -> None:
        if what != "master killed":
            self._yard.kill(node)
        whole = self._dice.random() < 0.5
        if what != "agent killed":
            self._yard.kill_master(whole=whole)
        time.sleep(self._dice.choice((0.0, 0.0, 0.05, 0.5)))
        if what != "agent killed":
            self._back(whole=whole)
        self._yard.start_agent(node)

    def _back(self, *, whole: bool) -> None:
        """Start a master that was killed, unless its supervisor does."""
        if whole or not process.wait_until(self._yard.answers, ROOM):
            self._yard.start_master()

    def _all(self, _node: str) -> None:
        """Kill the master and every agent at one moment, as a room without power."""
        yard = self._yard
        yard.kill(*yard.scratch.names, masters=yard.master_pids())
        time.sleep(self._dice.choice((0.0, 0.5)))
        for name in yard.scratch.names:
            yard.start_agent(name)
        yard.start_master()

    def _again(self, node: str) -> None:
        """Kill master and agents again and again, while they mend what was left."""
        yard = self._yard
        for _ in range(3):
            yard.kill_master(whole=False)
            yard.kill(node)
            yard.start_agent(node)
            if self._dice.random() < 0.7:
                process.wait_until(yard.answers, ROOM)
            time.sleep(self._dice.uniform(0.0, 0.4))
        self._back(whole=False)

    def _full(self, what: str, node: str) -> None:
        """Fill a file system; once there is room, nobody has to start anything."""
        places = self._yard.scratch.node(node)
        agent = self._yard.agent_pid(node)
        path = {
            FULL[0]: self._yard.places(self._yard.leader).root,
            FULL[1]: places.run / "state",
            FULL[2]: places.run,
        }[what]
        with rooms.filled(path):
            time.sleep(self._dice.choice((0.2, 1.0, 4.0, 8.0)))
        if not process.wait_until(self._yard.answers, ROOM):
            told = f"{what}: there is room again, and no master comes by itself"
            self._account.fault("no master", told)
            self._yard.start_master()
        if agent and self._yard.agent_pid(node) != agent:
            self._account.fault("agent", f"{what}: the agent of {node} ended")
            self._yard.start_agent(node)
