# SPDX-License-Identifier: BSD-2-Clause
"""A simulated cluster behind a real socket, for commands that are typed at it."""

import asyncio
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources

from .cluster import ClusterBuilder, SimCluster

T = TypeVar("T")
_PATIENCE = 300.0
"""Seconds that a master may take to start or to stop."""


class Served:
    """A master in a thread of its own.

    Attributes
    ----------
    cluster
        The cluster; only :meth:`inside` may touch it while the master runs.
    environ
        What a command needs to find it.
    """

    def __init__(self, directory: Path, builder: ClusterBuilder) -> None:
        self.cluster: SimCluster
        self.environ = {"MOORAGE_SOCKET": f"{directory}/luxi.sock"}
        self._directory = directory
        self._builder = builder
        self._loop: asyncio.AbstractEventLoop
        self._ready, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def inside(self, work: Callable[[SimCluster], Awaitable[T]]) -> T:
        """Do something with the cluster, in the master's thread; return its result."""

        async def done() -> T:
            return await work(self.cluster)

        future = asyncio.run_coroutine_threadsafe(done(), self._loop)
        return future.result(_PATIENCE)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        cluster = await SimCluster.start(self._directory / "nodes", self._builder)
        self.cluster = cluster
        sources = Sources(cluster.config_store, cluster.nodes, cluster.engine)
        server = LuxiServer(sources, self._directory / "luxi.sock")
        await server.start()
        self._ready.set()
        await asyncio.to_thread(self._done.wait)
        await server.stop()
        await cluster.stop()

    def start(self) -> None:
        """Start the master, and wait until it serves."""
        self._thread.start()
        if not self._ready.wait(_PATIENCE):
            raise AssertionError("the master did not start")

    def stop(self) -> None:
        """Stop the master."""
        self._done.set()
        self._thread.join(_PATIENCE)


@contextmanager
def served(builder: ClusterBuilder) -> Iterator[Served]:
    """Serve what a builder builds, for as long as it is needed."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "nodes").mkdir()
        master = Served(Path(directory), builder)
        master.start()
        try:
            yield master
        finally:
            master.stop()
