# SPDX-License-Identifier: BSD-2-Clause
"""Two clusters that share storage: masters, doors and provider scripts are real.

Their nodes are simulated, and answer in a thread; volumes are files in one directory.
"""

import asyncio
import subprocess
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from shutil import copytree
from threading import Thread
from typing import Any

from msgspec import structs

from moorage.api.features import FEATURES
from moorage.api.rapi.route import Asked, Route
from moorage.api.rapi.routes import ROUTES
from moorage.model import Disk
from moorage.storage import Output
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.machine import provider
from moorage.testing.storage import San
from rapi_door import RapiDoor, rapi_door

SHARE = Path(__file__).parents[2] / "share"
PROVIDER = "named"
MOMENT = 0.2
"""Seconds for jobs of which some may wait for something themselves."""
HOW = provider(PROVIDER, "snapshot", "list", reuse_data="whether it is there already")


class Scripts(San):
    """Storage on which the scripts of the provider are run.

    Attributes
    ----------
    images
        The directory of the volumes.
    ran
        Each script with the variables that matter, in order.
    broken
        Names of scripts that are to fail.
    """

    def furnish(self, directory: Path) -> None:
        """Put the provider into a directory; its images are beside it."""
        self.images = directory / "images"
        self.images.mkdir()
        self.provider = directory / PROVIDER
        copytree(SHARE / "extstorage" / PROVIDER, self.provider)
        (self.provider / "etc" / "settings.sh").write_text(f"IMAGE_DIR={self.images}\n")
        self.ran: list[tuple[str, dict[str, str]]] = []
        self.broken: set[str] = set()

    def _script(self, node: str, script: PurePosixPath, env: dict[str, str]) -> Output:
        if script.parent.name != PROVIDER:
            return super()._script(node, script, env)
        self.ran.append((script.name, env))
        if script.name in self.broken:
            return Output(f"{script.name} is broken", 1)
        done = subprocess.run(
            [self.provider / script.name],
            cwd=self.provider,
            env={"PATH": "/usr/bin:/bin", "VOL_OPEN": f"{SHARE}/bin/moorage-open"}
            | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Output(done.stdout, done.returncode)

    def scripts(self, name: str) -> list[str]:
        """Return which scripts were run for a volume, in order, but for `verify`."""
        return [
            script
            for script, env in self.ran
            if env.get("VOL_CNAME") == name and script != "verify"
        ]


class Town:
    """A cluster with its door."""

    def __init__(self, name: str, cluster: SimCluster, door: RapiDoor) -> None:
        self.name = name
        self.cluster = cluster
        self.door = door
        self.port = door.port
        self.ca = door.directory / "rapi.pem"

    def disks(self) -> set[str]:
        """Return the names of all disks that its configuration has."""
        return {disk.name or "" for disk in self.cluster.config.all(Disk)}


def _told_without(feature: str, route: Route) -> Route:
    """Return a route; that of the features leaves one out."""
    if route.path != "/2/features":
        return route

    async def told(_asked: Asked) -> list[str]:
        await asyncio.sleep(0)
        return [one for one in FEATURES if one != feature]

    return replace(route, serve=replace(route.serve, function=told))


class Towns:
    """Two of them, and the loop that they live in.

    Parameters
    ----------
    without
        A feature that they do not tell of.
    """

    def __init__(self, directory: Path, without: str = "") -> None:
        self._routes = [_told_without(without, one) for one in ROUTES]
        self.san = Scripts()
        self.san.furnish(directory)
        self.towns: dict[str, Town] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._stack = AsyncExitStack()

    def do(self, what: Coroutine[Any, Any, Any]) -> Any:
        """Let something happen in the clusters' thread; return what came of it."""
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(60)

    async def _found(self, name: str, directory: Path) -> None:
        directory.mkdir()
        builder = (
            ClusterBuilder(nodes=1).instance(f"snf-{name}1").instance(f"snf-{name}2")
        )
        known = builder.objects
        known["cluster"] = structs.replace(known["cluster"], uuid=f"cluster-{name}")
        cluster = SimCluster(directory / "sim", self.san)
        await cluster.make(builder)
        self._stack.push_async_callback(cluster.stop)
        for node in cluster.nodes.nodes.values():
            node.machine.installed += (HOW,)
        for number in "12":
            await cluster.run(
                "OP_INSTANCE_STARTUP", instance_name=f"snf-{name}{number}"
            )
        door = await self._stack.enter_async_context(
            rapi_door(cluster, directory, routes=self._routes)
        )
        self.towns[name] = Town(name, cluster, door)

    @contextmanager
    def open(self, directory: Path) -> Iterator["Towns"]:
        """Found both, and end them."""
        self._thread.start()
        try:
            for name in "ab":
                self.do(self._found(name, directory / name))
            yield self
        finally:
            self.do(self._stack.aclose())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def does(self, name: str, op_id: str, **fields: Any) -> Any:
        """Let a cluster do something that must succeed."""
        return self.do(self.towns[name].cluster.run(op_id, **fields))

    @contextmanager
    def held(self, name: str, instance: str) -> Iterator[None]:
        """Keep an instance busy, so that jobs about it wait."""
        cluster = self.towns[name].cluster
        goes_on = asyncio.Event()

        async def wait(_name: str) -> None:
            await goes_on.wait()

        async def begin() -> None:
            cluster.extra_point = wait
            await cluster.submit("OP_INSTANCE_REBOOT", instance_name=instance)
            await asyncio.sleep(0.05)

        async def end() -> None:
            goes_on.set()
            await asyncio.sleep(0)

        self.do(begin())
        yield
        self.do(end())

    def cancel(self, name: str) -> None:
        """Cancel the newest job of a cluster; it must wait."""
        engine = self.towns[name].cluster.engine
        assert self.do(engine.cancel(max(engine.jobs)))[0]

    def finish(self, name: str) -> None:
        """Wait for all jobs of a cluster."""
        cluster = self.towns[name].cluster
        for number in sorted(cluster.engine.jobs):
            self.do(cluster.finished(number))

    def let_finish(self) -> None:
        """Wait for all jobs of both, but not longer than a moment."""
        self.do(self._finished())

    async def _finished(self) -> None:
        ends = [
            asyncio.create_task(town.cluster.engine.finished(number))
            for town in self.towns.values()
            for number, job in town.cluster.engine.jobs.items()
            if not job.finished
        ]
        if ends:
            _done, late = await asyncio.wait(ends, timeout=MOMENT)
            for one in late:
                one.cancel()

    def jobs(self, name: str) -> list[dict[str, Any]]:
        """Return the operations of all jobs that the service made, in order."""
        engine = self.towns[name].cluster.engine
        every = [op.input for _, job in sorted(engine.jobs.items()) for op in job.ops]
        return [one for one in every if "moorage-cloud" in str(one.get("reason"))]
