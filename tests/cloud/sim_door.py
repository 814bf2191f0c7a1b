# SPDX-License-Identifier: BSD-2-Clause
"""A simulated cluster as the service knows clusters, without a door in between.

Its master, its jobs and its tasks are real, and so is everything that may stop them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from moorage.api.deeds import submit_once
from moorage.api.query import Sources
from moorage.errors import MoorageError, NotFound, from_json
from moorage.model import Disk as ClusterDisk
from moorage.model import Instance as ClusterInstance
from moorage.model.caller import Caller
from moorage.storage import Command
from moorage.testing.cluster import ClusterBuilder, Crash, SimCluster
from moorage.testing.machine import provider
from moorage.testing.nodes import SimNode
from moorage_cloud.client import opcode
from moorage_cloud.clusters import (
    ClusterRefused,
    ClusterSilent,
    Disk,
    Heard,
    Instance,
    Job,
    JobState,
)
from moorage_cloud.requests import AnyRequest

STATES = {
    "success": JobState.DONE,
    "error": JobState.FAILED,
    "canceled": JobState.FAILED,
}
ROOT = Caller("cloud", "rapi")
HOW = provider("named", "snapshot", "list", reuse_data="whether it is there already")
INSTANCE = "web"
NODE = "node1"
POWERLESS = 40
"""Turns of the event loop for which a node has no power."""


class Killed(BaseException):
    """The worker is no more."""


class SimDoor:
    """A cluster of one node, with an instance that runs.

    Attributes
    ----------
    lost
        Where a worker's request ends: ``request`` and ``answer`` are lost, with
        ``before`` and ``after`` the worker is killed; empty for nowhere.
    forgets
        Whether ended jobs are not kept.
    """

    def __init__(self, directory: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self.cluster = SimCluster(directory)
        self.lost = ""
        self.forgets = False
        self._run(self._made())

    async def _made(self) -> None:
        await self.cluster.make(ClusterBuilder(nodes=1).instance(INSTANCE))
        self.node.machine.installed += (HOW,)
        await self.cluster.run("OP_INSTANCE_STARTUP", instance_name=INSTANCE)

    @property
    def _sources(self) -> Sources:
        cluster = self.cluster
        return Sources(cluster.config_store, cluster.nodes, cluster.engine)

    @property
    def node(self) -> SimNode:
        """Its node."""
        return self.cluster.nodes.nodes[NODE]

    def _run(self, what: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(what)

    def close(self) -> None:
        """End it."""
        self._run(self.cluster.stop())
        self._loop.close()

    # -- as the service knows it -------------------------------------------------------

    def submit(self, request: AnyRequest, key: str, reason: str) -> int:
        lost, self.lost = self.lost, ""
        if lost == "before":
            raise Killed
        if lost == "request":
            raise ClusterSilent
        op = {**opcode(request), "reason": [["cloud", reason, 1]]}
        try:
            number: int = self._run(submit_once(self._sources, [op], ROOT, key))
        except MoorageError as error:
            raise ClusterRefused(str(error)) from None
        if lost == "after":
            raise Killed
        if lost == "answer":
            raise ClusterSilent
        return number

    def job(self, number: int) -> Job:
        try:
            job = self.cluster.engine.job(number)
        except NotFound:
            return Job(JobState.UNKNOWN)
        if job.finished and self.forgets:
            return Job(JobState.UNKNOWN)
        failed = [op.error for op in job.ops if op.error]
        why = str(from_json(failed[0])) if failed else ""
        return Job(STATES.get(job.status, JobState.UNDER_WAY), why)

    def disk(self, name: str) -> Disk | None:
        return next((one for one in self.disks() if one.name == name), None)

    def disks(self) -> list[Disk]:
        config = self.cluster.config
        owners = {
            uuid: one.name for one in config.all(ClusterInstance) for uuid in one.disks
        }
        return [
            Disk(one.name or "", owners.get(one.uuid), one.size, epoch=one.epoch)
            for one in config.all(ClusterDisk)
        ]

    def instances(self) -> list[Instance]:
        return [Instance(INSTANCE, "running")]

    def features(self) -> frozenset[str]:
        return frozenset({"moorage-disks"})

    def events(self, after: int | None, seconds: float) -> Iterator[Heard]:
        del after, seconds
        return iter(())

    # -- what happens to it ------------------------------------------------------------

    def finish(self) -> None:
        """Let every job end; a master that died comes back for it."""
        for number in sorted(self.cluster.engine.jobs):
            self._run(self._finished(number))

    async def _finished(self, number: int) -> None:
        while True:
            try:
                await self.cluster.finished(number)
            except Crash:
                await self.cluster.crash()
                self.cluster.crash_at = None
                await self.cluster.boot()
            else:
                return

    def at(self, point: str, what: Callable[[], Awaitable[object] | None]) -> None:
        """Let something happen once, when the master passes a point."""

        async def happens(name: str) -> None:
            if name == point:
                self.cluster.extra_point = _pass
                made = what()
                if made is not None:
                    await made

        self.cluster.extra_point = happens

    def dies(self) -> None:
        """Let the master die at the point that it passes now."""
        self.cluster.crash_at = len(self.cluster.points)

    async def cancels(self) -> None:
        """Cancel the newest job, as far as it can be."""
        await self.cluster.engine.cancel(max(self.cluster.engine.jobs))

    async def power_fails(self) -> None:
        """Let the node lose power, and have it again after a while."""
        self.node.lose_power()
        self._later = asyncio.create_task(self._boots())
        await asyncio.sleep(0)

    async def _boots(self) -> None:
        for _ in range(POWERLESS):
            await asyncio.sleep(0)
        self.node.boot()

    def script_fails(self, name: str) -> None:
        """Let a script of the provider fail from now on; empty for none."""

        def refused(_node: str, command: Command) -> bool:
            return bool(name) and command.argv[0].endswith(f"/{name}")

        self.node.machine.refuse = refused

    def scripts(self) -> list[str]:
        """Return which scripts were run so far, in order."""
        ran = [PurePosixPath(one.argv[0]) for one in self.node.machine.ran]
        return [one.name for one in ran if one.parent.name == "named"]


async def _pass(_name: str) -> None:
    """Let nothing happen."""
