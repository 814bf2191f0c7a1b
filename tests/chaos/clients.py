# SPDX-License-Identifier: BSD-2-Clause
"""Clients that work on a cluster, and remember what it acknowledged.

Each client owns an instance and some disks that nobody else touches: for these it knows
what must be there. Now and then it also grabs at what all of them share.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from answers import Account, Told
from kept import Keeper
from yard import FINISHED, Yard

from moorage.api.luxi import NOCHANGE, LuxiClient
from moorage.errors import Failed, MoorageError, NoMaster, Refused

MOST = 4
"""Disks that a client has at a time."""


PROVES = {"OP_DISK_ATTACH", "OP_DISK_GROW", "OP_DISK_SNAPSHOT", "OP_INSTANCE_STARTUP"}
"""What is not done with a disk in quarantine."""


@dataclass
class Own:
    """What a client was told about a disk of its own; size in MiB.

    Attributes
    ----------
    sound
        Whether no request about it failed since one that quarantine forbids.
    """

    size: int
    attached: bool = False
    sound: bool = True


class Doubt(Exception):
    """Nobody can tell whether a request became a job."""


class Client(threading.Thread):
    """One client.

    Parameters
    ----------
    working
        While it is set, requests are made.
    patience
        Seconds after which a job that does not end is a fault.
    """

    patience = 900.0

    def __init__(
        self, yard: Yard, number: int, seed: int, account: Account, shared: list[str]
    ) -> None:
        super().__init__(name=f"client {number}", daemon=True)
        self.instance = f"c{number}"
        self.disks: dict[str, Own] = {}
        self.running = True
        self.memory: int | None = None  # MiB that it was told, if that is sure
        self.place: str | None = None  # its node, if that is sure
        self.tags: set[str] = set()
        self.doubtful: set[str] = set()
        self.suspects: list[str] = []
        self.working = threading.Event()
        self.idle = threading.Event()
        self.over = False
        self._yard = yard
        self._number = number
        self._dice = Random(f"{seed}/{number}")  # noqa: S311
        self._account = account
        self._shared = shared
        self._names = 0
        self._luxi: LuxiClient | None = None
        there = yard.truth.kept
        self.keeper = Keeper(self, self._dice, there, self.instance) if there else None

    # -- life ---------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the client's instance, before anything breaks."""
        node = self._yard.scratch.names[self._number % self._yard.scratch.nodes]
        status, why = self._do(
            "OP_INSTANCE_CREATE",
            instance_name=self.instance,
            disk_template="diskless",
            pnode=node,
            **self._yard.truth.instance,
        )
        assert status == "success", why
        self.place = node

    def run(self) -> None:
        while not self.over:
            if not self.working.wait(0.2):
                continue
            self.idle.clear()
            try:
                while self.working.is_set():
                    self._step()
            except Exception as error:  # noqa: BLE001
                told = f"{self.name}: {type(error).__name__}: {error}"
                self._account.fault("driver", told)
                self.working.clear()
            self.idle.set()

    def _step(self) -> None:
        with self._account.lock:
            self._account.operations += 1
        self._dice.choice(self._choices())()

    def _choices(self) -> list[Callable[[], None]]:
        """Return what may be done, each as often as is likely."""
        choices = [self._add, self._attach, self._detach, self._grow, self._rename]
        choices += [self._snapshot, self._remove, self._power, self._move, self._modify]
        choices += [self._share, self._attach, self._detach, self._activate, self._tag]
        choices += [self._clear] if self.suspects else []
        if self.keeper:
            choices += [self.keeper.step] * 4
        return choices

    # -- requests about what is its own ---------------------------------------------

    def _pick(self, *, attached: bool | None = None) -> str | None:
        names = [
            name
            for name, own in sorted(self.disks.items())
            if name not in self.doubtful and attached in (None, own.attached)
        ]
        return self._dice.choice(names) if names else None

    def _fresh(self) -> str:
        self._names += 1
        return f"c{self._number}d{self._names}"

    def _add(self) -> None:
        if len(self.disks) >= MOST:
            return
        name, size = self._fresh(), self._dice.randrange(4, 32)
        fields = {
            "disk_template": "ext",
            "provider": self._yard.truth.provider,
            "size": size,
        }
        if self._own("OP_DISK_ADD", name, name=name, **fields):
            self.disks[name] = Own(size)

    def _attach(self) -> None:
        name = self._pick(attached=False)
        fields = {"disk": name, "instance_name": self.instance}
        if name and self._own("OP_DISK_ATTACH", name, **fields):
            self.disks[name].attached = True

    def _detach(self) -> None:
        name = self._pick(attached=True)
        if name and self._own("OP_DISK_DETACH", name, disk=name):
            self.disks[name].attached = False

    def _grow(self) -> None:
        name, amount = self._pick(), self._dice.randrange(1, 8)
        if name and self._own("OP_DISK_GROW", name, disk=name, amount=amount):
            self.disks[name].size += amount

    def _rename(self) -> None:
        name, new = self._pick(), self._fresh()
        if not name:
            return
        if self._own("OP_DISK_RENAME", name, disk=name, new_name=new):
            self.disks[new] = self.disks.pop(name)
        elif name in self.doubtful:
            self.doubtful.add(new)

    def _snapshot(self) -> None:
        name, new = self._pick(), self._fresh()
        if not name or len(self.disks) >= MOST:
            return
        if self._own("OP_DISK_SNAPSHOT", new, disk=name, new_name=new):
            self.disks[new] = Own(self.disks[name].size)

    def _remove(self) -> None:
        name = self._pick(attached=False)
        if name and self._own("OP_DISK_REMOVE", name, disk=name):
            del self.disks[name]

    def _power(self) -> None:
        word = "SHUTDOWN" if self.running else "STARTUP"
        if self._own(f"OP_INSTANCE_{word}", "power", instance_name=self.instance):
            self.running = not self.running

    def _activate(self) -> None:
        word = "OP_INSTANCE_ACTIVATE_DISKS"
        self._own(word, "disks", instance_name=self.instance)

    def _move(self) -> None:
        node = self._dice.choice(self._yard.scratch.names)
        word = "MIGRATE" if self.running and self._dice.random() < 0.7 else "FAILOVER"
        fields = {"instance_name": self.instance, "target_node": node}
        if self._own(f"OP_INSTANCE_{word}", "place", **fields):
            self.place = node
        else:
            self.place = None  # one that failed may be here or there

    def _modify(self) -> None:
        memory = self._dice.randrange(130, 200)
        fields = {"instance_name": self.instance, "beparams": {"maxmem": memory}}
        if self._own("OP_INSTANCE_SET_PARAMS", "memory", **fields):
            self.memory = memory
        else:
            self.memory = None

    def _tag(self) -> None:
        self._names += 1
        tag = f"{self.instance}t{self._names}"
        what = {"kind": "instance", "name": self.instance, "tags": [tag]}
        if self.ask("OP_TAGS_SET", **what) == "success":
            self.tags.add(tag)

    def _clear(self) -> None:
        """Get rid of a disk in quarantine, as somebody does who has looked."""
        name = self.suspects.pop()
        own = self.disks.get(name)
        if own and own.attached and not self._own("OP_DISK_DETACH", name, disk=name):
            return
        if own and self._own("OP_DISK_REMOVE", name, disk=name, volume_is_ours=True):
            del self.disks[name]

    def _share(self) -> None:
        """Grab at a disk that everybody wants; whoever has it is asked no more."""
        disk = self._dice.choice(self._shared)
        fields: dict[str, Any] = {"disk": disk}
        with suppress(Doubt):
            if self._dice.random() < 0.5:
                self._do("OP_DISK_ATTACH", instance_name=self.instance, **fields)
            else:
                self._do("OP_DISK_DETACH", **fields)

    def learn(self, disks: Mapping[str, Mapping[str, Any]], *, up: bool) -> None:
        """Take for true what is on record, where nobody could tell: all is quiet."""
        if "power" in self.doubtful:
            self.running = up
        for name in self.doubtful:
            self.disks.pop(name, None)
            if disk := disks.get(name):
                attached = disk["instance"] is not None
                self.disks[name] = Own(disk["size"], attached, sound=False)
        self.doubtful.clear()
        self.suspects = [
            one for one in self.disks if disks.get(one, {}).get("quarantine")
        ]

    # -- asking -------------------------------------------------------------------

    def _own(self, op_id: str, about: str, **fields: Any) -> bool:
        """Make a request about what is this client's own; return whether it was done.

        What nobody can tell is left out of the account.
        """
        status = self.ask(op_id, **fields)
        if status in ("doubt", "stuck", "lost"):
            self.doubtful.add(about)
        touched = [self.disks.get(about)] if about in self.disks else self._attached()
        for own in touched:
            if own and status not in ("refused", "success"):
                own.sound = False
            elif own and status == "success" and op_id in PROVES:
                own.sound = True
        return status == "success"

    def _attached(self) -> list[Own | None]:
        return [own for own in self.disks.values() if own.attached]

    def ask(self, op_id: str, **fields: Any) -> str:
        """Return how a job ended; ``doubt`` where nobody can tell."""
        try:
            return self._do(op_id, **fields)[0]
        except Doubt:
            return "doubt"

    def _do(self, op_id: str, **fields: Any) -> tuple[str, str]:
        """Submit a job and wait for its end; return its status, and why."""
        try:
            job = self._connected().submit_job([{"OP_ID": op_id, **fields}])
        except Failed as error:  # the connection broke in the middle, or the store
            self._account.ledger.note("doubt", op=op_id, why=error.message)
            self._luxi = None
            self._await_master()
            with self._account.lock:
                self._account.lost += 1
            raise Doubt(op_id) from error
        except Refused as error:
            if isinstance(error, NoMaster):
                self._luxi = None
                self._await_master()
            time.sleep(0.02)
            with self._account.lock:
                self._account.refused += 1
            self._account.ledger.note("refused", op=op_id, why=error.message)
            return "refused", ""
        self._account.accept(job)
        status, why = self._end(job, op_id)
        if status in FINISHED:
            self._account.end(Told(job, status, op_id))
        if "internal error" in why:
            self._account.fault("defect", f"job {job} ({op_id}): {why}")
        return status, why

    def _end(self, job: int, op_id: str) -> tuple[str, str]:
        deadline = time.monotonic() + self.patience
        seen: list[Any] = [None]
        while seen[0] not in FINISHED:
            if time.monotonic() > deadline:
                self._account.fault("stuck", f"job {job} ({op_id}) stays {seen[0]}")
                return "stuck", ""
            try:
                fields = ("status", "opresult")
                luxi = self._connected()
                change = luxi.wait_for_job_change(job, fields, (seen, None), 5.0)
            except MoorageError:
                self._luxi = None
                self._await_master()
                continue
            if change is None:
                told = f"job {job} ({op_id}) was accepted, and is lost"
                self._account.fault("lost", told)
                return "lost", ""
            if change != NOCHANGE:
                seen = change[0]
        return str(seen[0]), str(seen[1:])

    def _connected(self) -> LuxiClient:
        if self._luxi is None:
            self._luxi = self._yard.luxi()
        return self._luxi

    def _await_master(self) -> None:
        """Wait until a master answers."""
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            try:
                self._connected().query("node", ["name"])
            except MoorageError:
                self._luxi = None
                time.sleep(0.1)
            else:
                return
        self._account.fault("no master", "no master answers")
