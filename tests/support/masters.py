# SPDX-License-Identifier: BSD-2-Clause
"""Masters of a scratch cluster's nodes: hands on them, their deaths, and an account."""

import io
import os
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any

from moorage.api.luxi import NOCHANGE, LuxiClient
from moorage.cli.tour.typist import Typist
from moorage.daemons import process
from moorage.daemons.devcluster import Scratch
from moorage.daemons.paths import MasterPlaces
from moorage.errors import MoorageError


def on(town: Scratch, name: str, more: Mapping[str, str] | None = None) -> Typist:
    """Return hands on a node, with `more` variables; the first one made the cluster."""
    root = places(town, name).root
    told = {
        "MOORAGE_DIR": str(root),
        "MOORAGE_SOCKET": str(root / "luxi.sock"),
        "MOORAGE_NODE_DIR": str(town.node(name).root),
    }
    return Typist(town.environment() | told | dict(more or {}), io.StringIO())


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

    def __init__(
        self, at: MasterPlaces, before: "Account | None" = None, prefix: str = "d"
    ) -> None:
        self.acknowledged: list[str] = before.acknowledged if before else []
        self._numbers = before._numbers if before else count()
        self._prefix = prefix
        self._luxi = LuxiClient(str(at.socket))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(MoorageError):  # until the master is gone
            for number in self._numbers:
                self._add(f"{self._prefix}{number}")

    def _add(self, name: str) -> None:
        fields = {"disk_template": "sharedfile", "size": 1, "name": name}
        job = self._luxi.submit_job([{"OP_ID": "OP_DISK_ADD", **fields}])
        seen: list[Any] = [None]
        while seen[0] not in ("success", "error"):
            found = self._luxi.wait_for_job_change(job, ("status",), (seen, None))
            seen = seen if found == NOCHANGE else found[0]
        if seen[0] == "success":  # else it was cut short with its master
            self.acknowledged.append(name)

    def ended(self) -> None:
        self._thread.join(60)
        self._luxi.close()
        assert not self._thread.is_alive()
