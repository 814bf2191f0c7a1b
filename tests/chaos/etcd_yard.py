# SPDX-License-Identifier: BSD-2-Clause
"""A yard whose state is in a real etcd of three members, and a master on each node."""

import asyncio
import json
import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from yard import Yard

from moorage.api.luxi import LuxiClient
from moorage.daemons import process
from moorage.errors import MoorageError
from moorage.store import etcd_of
from moorage.store.etcd import EtcdStore
from support.etcd_members import Members

LEASE = 2
_LONG = 60.0
_FRESH = 0.5
"""Seconds for which is believed who led."""


class EtcdYard(Yard):
    """Three masters over three members; who leads is whoever answers.

    Attributes
    ----------
    members
        Those of etcd; they may be killed and stopped, too.
    """

    over_etcd = True

    def __init__(self, root: Path, *, nodes: int, slow: int, guest: str = "") -> None:
        self._leads, self._looked = "", 0.0
        at = root / "etcd"
        at.mkdir()
        self.members = Members(at, 3, tls=False)
        for number in range(3):
            self.members.start(number)
        self.members.wait()
        self.store = str(at / "store.json")
        told = {"endpoints": self.members.clients, "prefix": "/chaos", "lease": LEASE}
        Path(self.store).write_text(json.dumps(told))
        try:
            super().__init__(root, nodes=nodes, slow=slow, guest=guest)
        except BaseException:
            self.members.close()
            raise

    def _found(self) -> None:
        """Make the cluster, and let a master wait on each other node."""
        super()._found()
        for name in self.scratch.names[1:]:
            key = self.scratch.node(name).run / "state" / "keys" / "own.pem"
            assert process.wait_until(key.exists, _LONG), name
            file = str(self.scratch.master.etcd)
            done = self.command("moorage", "master", "wait", "--store", file, on=name)
            assert done.returncode == 0, done.stderr

    def close(self) -> None:
        """End everything."""
        super().close()
        self.members.close()
        shutil.rmtree(self.members.directory)

    # -- who leads ------------------------------------------------------------------

    @property
    def leader(self) -> str:
        """The node whose master answers; else the one that did so last."""
        now = time.monotonic()
        if now - self._looked > _FRESH:
            names = [self._leads, *self.scratch.names]
            self._leads = next(filter(self._answers, names), self._leads)
            self._looked = now
        return self._leads

    @leader.setter
    def leader(self, name: str) -> None:
        self._leads, self._looked = name, time.monotonic()

    def _answers(self, name: str) -> bool:
        path = str(self.places(name).root / "luxi.sock")
        try:
            with LuxiClient(path, 1.0) as luxi:
                luxi.query("node", ["name"])
        except (MoorageError, OSError):
            return False
        return True

    # -- breaking it ----------------------------------------------------------------

    def start_master(self) -> None:
        """Start the masters that are not there, and wait until one leads."""
        for name in self.scratch.names:
            if not process.holder(self.places(name).supervisor):
                self.command("moorage", "master", "start", on=name)
        assert process.wait_until(self.answers, _LONG), "no master leads"

    def kill_member(self, number: int) -> None:
        """Kill a member of etcd; count it."""
        self.members.signal(number, signal.SIGKILL)
        self.kills.update(members=1)

    def start_member(self, number: int) -> None:
        """Start a member that was killed, and wait until all take writes."""
        self.members.start(number)
        self.members.wait()

    def stop_member(self, number: int, seconds: float) -> None:
        """Let a member stand still."""
        self.members.signal(number, signal.SIGSTOP)
        time.sleep(seconds)
        self.members.signal(number, signal.SIGCONT)
        self.members.wait()

    def stop_leader(self, seconds: float) -> None:
        """Let who leads stand still for longer than its lease, or not so long."""
        pid = process.holder(self.places(self.leader).lock)
        with self.stopped([pid] if pid else []):
            time.sleep(seconds)

    # -- looking from outside --------------------------------------------------------

    def stored_jobs(self) -> dict[int, dict[str, Any]]:
        """Return the jobs as etcd has them, without asking a master."""
        records = asyncio.run(self._whole())
        return {
            int(name): json.loads(value)
            for (kind, name), value in records.items()
            if kind == "job"
        }

    async def _whole(self) -> dict[tuple[str, str], bytes]:
        settings = etcd_of(self.scratch.master.store)
        assert settings
        store = EtcdStore(settings)
        try:
            return dict((await store.whole())[1])
        finally:
            await store.close()

    def end(self) -> None:
        """End all processes but etcd; the files stay."""
        super().end()
        for one in self.members.processes.values():
            with suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGCONT)
