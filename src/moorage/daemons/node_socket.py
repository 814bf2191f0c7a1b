# SPDX-License-Identifier: BSD-2-Clause
"""What the command line gets on a machine that is not the master's.

The agent answers there: it says who is the master, and reaches the guests that run on
this node, whether or not the master can be reached.
"""

import asyncio
import logging
import shlex
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from moorage.api.luxi_request import ConnectInstance, Request, read
from moorage.api.luxi_socket import LuxiSocket
from moorage.errors import Failed, MoorageError, WrongState
from moorage.node.agent import Agent
from moorage.node.lines import Line, StreamLine

from .paths import NodePlaces

_LOG = logging.getLogger(__name__)


class NodeSocket(LuxiSocket):
    """Answers on the node's own socket; its owner alone can reach it."""

    def __init__(self, agent: Agent, path: Path) -> None:
        super().__init__(path)
        self._agent = agent

    def read(self, name: str, args: list[Any]) -> Request:
        """Return what is asked for; which of the master's methods, matters not."""
        connects = name == ConnectInstance.__name__
        return read(ConnectInstance, args) if connects else Request()

    async def answer(self, wanted: Request, gone: asyncio.Task[Any]) -> bytes:  # noqa: ARG002
        """Say where the master is."""
        raise elsewhere(self._agent)

    async def line(self, wanted: ConnectInstance) -> tuple[dict[str, Any], Line]:
        """Return a line to a guest of this node."""
        agent = self._agent
        found = await agent.guest(wanted.instance)
        if found is None:
            raise _not_here(agent, wanted.instance)
        line = replace(found, kind=wanted.kind, ticket=wanted.ticket)
        told = {"instance": found.name, "node": agent.name}
        return told, await StreamLine.over(await agent.line(line))


async def serve(places: NodePlaces, agent: Agent) -> NodeSocket | None:
    """Answer on the node's own socket.

    Returns None, and says so in the log, where no socket can be.
    """
    server = NodeSocket(agent, places.socket)
    try:
        await server.start()
    except (Failed, OSError) as error:
        _LOG.warning("commands are told nothing on this node: %s", error)
        return None
    return server


def elsewhere(agent: Agent) -> MoorageError:
    """Return what every command is told that is for the master."""
    if not agent.master:
        return WrongState(
            f"this is node {agent.name}, and no master has spoken to it yet",
            hint="gnt-cluster getmaster, on the node that was the cluster's first",
        )
    if agent.master == agent.name:
        return WrongState(
            f"the master does not run: this node, {agent.name}, is its node",
            hint="moorage master start",
            lost="master",
        )
    return WrongState(
        f"this is not the master node, please connect to {agent.master}",
        hint=f"ssh {agent.master}",
    )


def _not_here(agent: Agent, word: str) -> MoorageError:
    """Return what is told of a guest that does not run on this node."""
    error = elsewhere(agent)
    if agent.master not in ("", agent.name):
        error.hint = (
            f"ssh {agent.master} gnt-instance console --show-cmd {shlex.quote(word)} "
            "prints a command that opens it here"
        )
    return error
