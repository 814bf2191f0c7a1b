# SPDX-License-Identifier: BSD-2-Clause
"""Commands typed at a simulated cluster: through the socket of its master."""

import asyncio
import os
import shlex
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from moorage.api.luxi_caller import Believed
from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.api.store_health import KnownHealth
from moorage.cli.main import run
from moorage.cli.terminal import Terminal
from moorage.model.caller import Role
from moorage.testing.cluster import SimCluster


class Screen(NamedTuple):
    """What a command left: its exit status, and both of its streams."""

    status: int
    out: str
    err: str


class Desk:
    """Where commands are typed.

    Parameters
    ----------
    cluster
        Whose master answers.
    directory
        Of the socket, and the master's own.
    """

    def __init__(self, cluster: SimCluster, directory: Path) -> None:
        self.cluster = cluster
        self.directory = directory
        self.environ = {
            "MOORAGE_SOCKET": f"{directory}/luxi.sock",
            "MOORAGE_DIR": str(directory),
            "TERM": "dumb",
        }

    async def screen(self, line: str) -> Screen:
        """Type a line; return what came of it."""
        return await asyncio.to_thread(self._typed, line)

    async def types(self, line: str) -> str:
        """Type a line that must succeed; return what it printed.

        Raises
        ------
        AssertionError
            If it fails.
        """
        screen = await self.screen(line)
        if screen.status:
            raise AssertionError(f"{line}: {screen.status}\n{screen.out}{screen.err}")
        return screen.out

    async def refused(self, line: str) -> str:
        """Type a line that must fail; return what it said.

        Raises
        ------
        AssertionError
            If it succeeds.
        """
        screen = await self.screen(line)
        if not screen.status:
            raise AssertionError(f"{line} succeeded: {screen.out}")
        return screen.err

    def _typed(self, line: str) -> Screen:
        name, *words = shlex.split(line)
        program = import_module(f"moorage.cli.{name.replace('-', '_')}").PROGRAM
        terminal = Terminal(StringIO(), StringIO(), StringIO(), dict(self.environ))
        status = run(program, words, terminal)
        return Screen(status, _text(terminal.out), _text(terminal.err))


def _text(stream: object) -> str:
    return stream.getvalue() if isinstance(stream, StringIO) else ""


@asynccontextmanager
async def desk(
    cluster: SimCluster, directory: Path, store: KnownHealth | None = None
) -> AsyncIterator[Desk]:
    """Serve a cluster's master on a socket in a directory, and type at it."""
    made = cluster.config_store, cluster.nodes, cluster.engine
    sources = Sources(
        *made,
        clock=cluster.clock,
        lines=cluster.nodes.line,
        store=store or KnownHealth(),
    )
    doors = {directory / "door.sock": Believed(os.geteuid(), most=Role.ROOT)}
    server = LuxiServer(sources, directory / "luxi.sock", doors=doors)
    await server.start()
    try:
        yield Desk(cluster, directory)
    finally:
        await server.stop()


@asynccontextmanager
async def desk_at(make: Callable[[Path], Awaitable[SimCluster]]) -> AsyncIterator[Desk]:
    """Make a cluster in a directory of its own, and type at it until it is stopped."""
    with tempfile.TemporaryDirectory() as directory:
        cluster = await make(Path(directory) / "nodes")
        async with desk(cluster, Path(directory)) as found:
            yield found
        assert cluster.nodes.san.broken == []
        await cluster.stop()
