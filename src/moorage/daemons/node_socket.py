# SPDX-License-Identifier: BSD-2-Clause
"""What the command line gets on a machine that is not the master's.

The agent answers there: it says who is the master, and reaches the guests that run on
this node, whether or not the master can be reached.
"""

import logging
import shlex
from functools import partial
from typing import Any

from msgspec.structs import replace

from moorage.api.luxi_line import ConnectInstance
from moorage.api.luxi_server import LuxiServer
from moorage.errors import Failed, MoorageError, WrongState
from moorage.node.agent import Agent
from moorage.node.lines import Line, StreamLine

from .paths import NodePlaces

_LOG = logging.getLogger(__name__)


async def serve(places: NodePlaces, agent: Agent) -> LuxiServer | None:
    """Answer on the node's own socket; its owner alone can reach it.

    Returns None, and says so in the log, where no socket can be.
    """
    server = LuxiServer(None, places.socket)
    server.excuse = partial(elsewhere, agent)
    server.lines = partial(_line, agent)
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


async def _line(agent: Agent, wanted: ConnectInstance) -> tuple[dict[str, Any], Line]:
    """Return a line to a guest of this node."""
    found = await agent.guest(wanted.instance)
    if found is None:
        raise _not_here(agent, wanted.instance)
    line = replace(found, kind=wanted.kind, ticket=wanted.ticket)
    told = {"instance": found.name, "node": agent.name}
    return told, await StreamLine.over(await agent.line(line))


def _not_here(agent: Agent, word: str) -> MoorageError:
    """Return what is told of a guest that does not run on this node."""
    error = elsewhere(agent)
    if agent.master not in ("", agent.name):
        error.hint = (
            f"ssh {agent.master} gnt-instance console --show-cmd {shlex.quote(word)} "
            "prints a command that opens it here"
        )
    return error
