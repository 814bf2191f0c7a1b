# SPDX-License-Identifier: BSD-2-Clause
"""Another node becomes the master: while the one before lives, and when it is lost."""

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any

from account import acknowledged
from answers import Account, Told
from proxy import PASS, REFUSE
from yard import FINISHED, Yard

from moorage.api.luxi import NOCHANGE, LuxiClient
from moorage.daemons import process
from moorage.errors import MoorageError

TRIES = 10
"""How often somebody types it who goes wherever the hint says."""
PATIENCE = 60.0
"""Seconds for copies to become whole, and for a master of before to end."""


class Pulse(threading.Thread):
    """Asks the master again and again, and keeps when it answered."""

    def __init__(self, yard: Yard) -> None:
        super().__init__(name="pulse", daemon=True)
        self.over = False
        self.longest = 0.0
        self._yard = yard

    def run(self) -> None:
        last = time.monotonic()
        while not self.over:
            if self._yard.answers():
                now = time.monotonic()
                self.longest, last = max(self.longest, now - last), now
            time.sleep(0.05)


class Asker(threading.Thread):
    """Asks for things that no node is needed for, from the first moment on.

    Attributes
    ----------
    done
        How many it was told were done.
    """

    def __init__(self, yard: Yard, account: Account, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.over = False
        self.done = 0
        self._yard = yard
        self._account = account

    def run(self) -> None:
        while not self.over:
            try:
                with self._yard.luxi(5.0) as luxi:
                    while not self.over:
                        self._ask(luxi)
            except (MoorageError, OSError):
                time.sleep(0.01)

    def _ask(self, luxi: LuxiClient) -> None:
        tags = [f"t{time.monotonic_ns()}"]
        ask = {"OP_ID": "OP_TAGS_SET", "kind": "cluster", "name": None, "tags": tags}
        job = luxi.submit_job([ask])
        self._account.accept(job)
        seen: Any = [None]
        while seen[0] not in FINISHED:
            change = luxi.wait_for_job_change(job, ("status",), (seen, None), 5.0)
            seen = seen if change == NOCHANGE or change is None else change[0]
        self._account.end(Told(job, seen[0], "OP_TAGS_SET"))
        if seen[0] == "success":
            self._account.tags.update(tags)
        self.done += 1


class Failovers:
    """Lets other nodes take the lead, and looks what became of what was acknowledged.

    Attributes
    ----------
    counts
        How many there were, planned and not; how many were done at the first try, and
        how many tries all of them took.
    outages
        Seconds without a master, one for each planned one.
    """

    def __init__(self, yard: Yard, account: Account, dice: Random) -> None:
        self.counts: Counter[str] = Counter()
        self.outages: list[float] = []
        self._yard = yard
        self._account = account
        self._dice = dice

    # -- which nodes can ------------------------------------------------------------

    def copies(self) -> dict[str, str]:
        """Return what the master says of each copy; nothing while none answers."""
        try:
            rows = self._yard.rows("node", "name", "copy", "copy.lacks", "copy.why")
        except (MoorageError, OSError):
            return {}
        self._account.ledger.note("copies", rows=rows)
        return {one["name"]: one["copy"] for one in rows}

    def current(self) -> list[str]:
        """Return the candidates whose copies are whole, waiting until one is."""
        found: list[str] = []

        def some() -> bool:
            found[:] = [name for name, copy in self.copies().items() if _whole(copy)]
            return bool(found) or time.sleep(0.3) is not None

        process.wait_until(some, PATIENCE)
        if not found:
            self._account.fault("copies", f"no copy becomes whole: {self.copies()}")
        return found

    # -- the three ways -------------------------------------------------------------

    def planned(self) -> None:
        """Let a candidate take over from a master that lives and is busy."""
        if not (able := self.current()):
            return
        old, target = self._yard.leader, self._dice.choice(able)
        pulse = Pulse(self._yard)
        pulse.start()
        tries = self._taken("planned", target, [one for one in able if one != target])
        if tries and process.wait_until(self._yard.answers, PATIENCE):
            time.sleep(0.3)  # one more beat
            self.outages.append(round(pulse.longest, 1))
        pulse.over = True
        pulse.join(10)
        if tries > 1:
            told = f"planned failover {old} -> {target}: {tries} tries"
            self._account.fault("failover", told)
        self._looked(old)

    def unplanned(self) -> None:
        """Lose the master's machine; it comes back when another one leads."""
        if able := self.current():
            self._lost("unplanned", able)

    def after_start(self) -> None:
        """Lose the machine just after its master was started, and somebody was told.

        The candidates are busy at that moment: they answer late, mostly within what a
        master waits for them.
        """
        yard = self._yard
        if not (able := self.current()):
            return
        yard.kill_master(whole=False)
        askers = [Asker(yard, self._account, f"soon{number}") for number in range(2)]
        with self._busy(able):
            for one in askers:
                one.start()
            process.wait_until(lambda: any(one.done for one in askers), 30.0)
            time.sleep(self._dice.choice((0.0, 0.3, 1.0)))
            self.copies()
            yard.lose(yard.leader)
        for one in askers:
            one.over = True
            one.join(10)
        self._account.ledger.note("soon", told=[one.done for one in askers])
        self._lost("after start", able)

    @contextmanager
    def _busy(self, nodes: list[str]) -> Iterator[None]:
        """Let agents stand still now and again, as on a disk that is very busy."""
        over = threading.Event()
        seconds = self._dice.choice((0.0, 0.6, 1.5))

        def work() -> None:
            while seconds and not over.is_set():
                with ExitStack() as still:
                    pids = [self._yard.agent_pid(node) for node in nodes]
                    known = [pid for pid in pids if pid]
                    still.enter_context(self._yard.stopped(known))
                    over.wait(seconds)
                over.wait(0.15)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield
        over.set()
        thread.join(10)

    def stalled(self) -> None:
        """Let the master's machine stand still, and go on after another one leads."""
        yard, old = self._yard, self._yard.leader
        if not (able := self.current()):
            return
        agent = yard.agent_pid(old)
        with yard.stopped([*yard.master_pids(old), *([agent] if agent else [])]):
            target = self._dice.choice(able)
            self._taken("stalled", target, [one for one in able if one != target])
            time.sleep(self._dice.choice((0.0, 1.0, 5.0)))
        self._looked(old)

    # -- what they have in common ----------------------------------------------------

    def _lost(self, kind: str, able: list[str]) -> None:
        """Kill the master's machine, let another one lead, and bring it back."""
        yard, old = self._yard, self._yard.leader
        yard.lose(old)
        if not yard.awaited(old):
            # Each copy was left out by name: whoever was told knows that it is here.
            self.counts[f"{kind}, no copy left"] += 1
            yard.start_agent(old)
            yard.start_master()
            return
        yard.proxies.by_node[old].mode = REFUSE
        target = self._dice.choice(able)
        self._taken(kind, target, [one for one in able if one != target])
        yard.proxies.by_node[old].mode = PASS
        yard.start_agent(old)
        if yard.leader != old:
            yard.command("moorage", "master", "start", on=old)  # it is refused, or ends
            self._looked(old)

    def _taken(self, kind: str, target: str, others: list[str]) -> int:
        """Type it until a node leads; return how often, 0 if none does."""
        self.counts[kind] += 1
        for number in range(1, TRIES + 1):
            begun = time.monotonic()
            words = ("gnt-cluster", "master-failover", "--yes-do-it")
            done = self._yard.command(*words, on=target)
            facts = {"kind": kind, "on": target, "seconds": time.monotonic() - begun}
            said = done.stdout + done.stderr
            note = self._account.ledger.note
            note("failover", number=number, status=done.returncode, said=said, **facts)
            if "report it" in said or "Traceback" in said:
                self._account.fault("defect", f"master-failover: {said[-600:]}")
            if done.returncode == 0:
                self._yard.leader = target
                self.counts[f"{kind}, at first try"] += number == 1
                self.counts[f"{kind}, tries"] += number
                return number
            target, others = _next(said, target, others)
            time.sleep(0.5)
        self._account.fault("no master", f"{kind} failover: {said[-400:]}")
        return 0

    def _looked(self, old: str) -> None:
        """Look whether all is there that was acknowledged, and nobody else leads."""
        if self._yard.leader == old:
            return
        if not process.wait_until(self._yard.answers, PATIENCE):
            self._account.fault("no master", f"none answers on {self._yard.leader}")
            return
        for kind, text in acknowledged(self._yard, self._account):
            self._account.fault(kind, text)
        self._two(old)
        gone = process.wait_until(lambda: not self._yard.master_pids(old), PATIENCE)
        if not gone:
            told = f"the master of before on {old} does not end"
            self._account.fault("two masters", told)

    def _two(self, old: str) -> None:
        """Ask the master of before for something; it must not be done."""
        tag = f"late{self.counts.total()}"
        ask = {"OP_ID": "OP_TAGS_SET", "kind": "cluster", "name": None, "tags": [tag]}
        try:
            with self._yard.luxi(3.0, old) as luxi:
                job = luxi.submit_job([ask])
                change = luxi.wait_for_job_change(job, ("status",), ([None], None), 2.0)
        except (MoorageError, OSError):
            return
        if change not in (None, NOCHANGE) and change[0] == ["success"]:
            self._account.fault("two masters", f"the one on {old} did job {job}")


def _whole(copy: str) -> bool:
    return copy == "current"


def _next(said: str, target: str, others: list[str]) -> tuple[str, list[str]]:
    """Return where to type it next: where the hint says, else on the next one."""
    hint = re.search(r"master-failover, on (node\d+)", said)
    if hint:
        return hint[1], [target]
    return (others[0], [*others[1:], target]) if others else (target, [])
