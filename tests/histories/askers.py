# SPDX-License-Identifier: BSD-2-Clause
"""Clients that write down what they asked masters for, and what they were told."""

import math
import threading
import time
from collections.abc import Sequence
from itertools import count
from random import Random
from typing import Any

from checker import ADD, READ, WRITE, Op

from moorage.api.luxi import NOCHANGE, LuxiClient
from moorage.errors import Failed, MoorageError, NoMaster, Refused

ENDED = ("success", "error", "canceled")
REGISTER, SET, COUNTER = "memory of", "tags of", "size of disk"
"""What instances and disks are taken for."""
_SHORT, _LONG = 1.0, 15.0
"""Seconds for an answer: who waits long is answered by a master that stood still."""
_STAYS = 120.0
"""Seconds after which a job is one that stays."""


class History:
    """What all clients saw, by object; and how jobs ended that were accepted."""

    def __init__(self) -> None:
        self.ops: dict[str, list[Op]] = {}
        self.told: dict[int, str] = {}
        self.faults: list[str] = []
        self._numbers: dict[str, count[int]] = {}
        self._lock = threading.Lock()

    def fresh(self, what: str) -> int:
        """Return a number that an object has not had."""
        with self._lock:
            return next(self._numbers.setdefault(what, count(200)))

    def add(self, what: str, op: Op) -> None:
        with self._lock:
            self.ops.setdefault(what, []).append(op)

    def count(self, *, known: bool) -> int:
        """Return how many writes were acknowledged, or left in doubt."""
        all_ops = [op for ops in self.ops.values() for op in ops]
        return sum(op.kind != READ and op.known is known for op in all_ops)


class Asker(threading.Thread):
    """One client, who knows the sockets of all masters, and not which of them leads."""

    def __init__(
        self,
        history: History,
        sockets: Sequence[str],
        objects: Sequence[str],
        seed: str,
    ) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()
        self._history = history
        self._sockets = list(sockets)
        self._objects = list(objects)
        self._dice = Random(seed)  # noqa: S311 - it is to be drawn again
        self._luxi: LuxiClient | None = None

    def run(self) -> None:
        changes = (self._write, self._tag, self._grow)
        choices = (*changes, *changes, self.read, self.look)
        while not self.over.is_set():
            self._dice.choice(choices)(self._dice.choice(self._objects))
        self.away()

    def _write(self, name: str) -> None:
        value = self._history.fresh(what := f"{REGISTER} {name}")
        new = {"instance_name": name, "beparams": {"maxmem": value}}
        self._change(what, WRITE, value, {"OP_ID": "OP_INSTANCE_SET_PARAMS", **new})

    def _tag(self, name: str) -> None:
        tag = f"t{self._history.fresh(what := f'{SET} {name}')}"
        op = {"OP_ID": "OP_TAGS_SET", "kind": "instance", "name": name, "tags": [tag]}
        self._change(what, ADD, tag, op)

    def _grow(self, name: str) -> None:
        op = {"OP_ID": "OP_DISK_GROW", "disk": f"{name}d", "amount": 1}
        self._change(f"{COUNTER} {name}d", ADD, 1, op)

    def _change(self, what: str, kind: str, value: Any, op: dict[str, Any]) -> None:
        begun = time.monotonic()
        try:
            job = self.connected().submit_job([op])
        except MoorageError as error:
            self.away()
            if not _untouched(error):
                self._history.add(what, Op(kind, value, begun))
            return
        status = self.end(job)
        ended = time.monotonic() if status == "success" else math.inf
        self._history.add(what, Op(kind, value, begun, ended))

    def end(self, job: int) -> str:
        """Return how a job ended that was accepted, whoever leads by then."""
        seen: list[Any] = [None]
        serial = -1
        until = time.monotonic() + _STAYS
        while seen[0] not in ENDED:
            if time.monotonic() > until:
                self._history.faults.append(f"job {job} stays {seen[0]}")
                return "stays"
            try:
                found = self.connected().wait_for_job_change(
                    job, ("status",), (seen, serial), 0.5
                )
            except MoorageError:
                self.away()
                continue
            if found is None:
                self._history.faults.append(f"job {job} was accepted, and is lost")
                return "lost"
            if found != NOCHANGE:
                seen, entries = found
                serial = max((entry[0] for entry in entries), default=serial)
        self._history.told[job] = str(seen[0])
        return str(seen[0])

    def read(self, name: str) -> None:
        """Read an instance: a register and a set."""
        begun = time.monotonic()
        rows = self._rows("instance", ["be/maxmem", "tags"], name)
        if rows:
            memory, tags = rows
            ended = time.monotonic()
            self._history.add(f"{REGISTER} {name}", Op(READ, memory, begun, ended))
            found = Op(READ, frozenset(tags), begun, ended)
            self._history.add(f"{SET} {name}", found)

    def look(self, name: str) -> None:
        """Read a disk: a counter."""
        begun = time.monotonic()
        rows = self._rows("disk", ["size"], f"{name}d")
        if rows:
            found = Op(READ, rows[0], begun, time.monotonic())
            self._history.add(f"{COUNTER} {name}d", found)

    def _rows(self, what: str, fields: list[str], name: str) -> list[Any]:
        try:
            _, rows = self.connected().query(what, fields, ["=", "name", name])
        except MoorageError:
            self.away()
            return []
        return [value for _, value in rows[0]] if rows else []

    def connected(self) -> LuxiClient:
        """Return a connection to a master."""
        if self._luxi is None:
            patience = self._dice.choice((_SHORT, _LONG))
            self._luxi = LuxiClient(self._dice.choice(self._sockets), patience)
        return self._luxi

    def away(self) -> None:
        """Hang up; ask another master next."""
        if self._luxi:
            self._luxi.close()
        self._luxi = None
        time.sleep(0.05)


def _untouched(error: MoorageError) -> bool:
    """Whether a master did nothing of what it was asked for, or there was none."""
    if isinstance(error, Refused | NoMaster):
        return True
    return isinstance(error, Failed) and "waits for the lead" in error.message
