# SPDX-License-Identifier: BSD-2-Clause
"""Two clusters that share storage: masters, doors and provider scripts are real.

Their nodes are simulated, and answer in a thread; volumes are files in one directory.
"""

import asyncio
import subprocess
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path, PurePosixPath
from shutil import copytree
from threading import Thread
from typing import Any

from moorage.model import Disk
from moorage.storage import Output
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.machine import provider
from moorage.testing.storage import San
from rapi_door import RapiDoor, rapi_door

SHARE = Path(__file__).parents[2] / "share"
PROVIDER = "named"
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
        """Return which scripts were run for a volume, in order, asking ones left out."""
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
        self.port = door.port
        self.ca = door.directory / "rapi.pem"

    def disks(self) -> set[str]:
        """Return the names of all disks that its configuration has."""
        return {disk.name or "" for disk in self.cluster.config.all(Disk)}


class Towns:
    """Two of them, and the loop that they live in."""

    def __init__(self, directory: Path) -> None:
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
        cluster = SimCluster(directory / "sim", self.san)
        await cluster.make(builder)
        self._stack.push_async_callback(cluster.stop)
        for node in cluster.nodes.nodes.values():
            node.machine.installed += (HOW,)
        door = await self._stack.enter_async_context(rapi_door(cluster, directory))
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

    def jobs(self, name: str) -> list[dict[str, Any]]:
        """Return the operations of all jobs of a cluster, in order."""
        engine = self.towns[name].cluster.engine
        return [op.input for _, job in sorted(engine.jobs().items()) for op in job.ops]
