# SPDX-License-Identifier: BSD-2-Clause
"""Verbs that this node obeys where a file of its administrator's allows it."""

from moorage.errors import NotSupported
from moorage.node.extensions.orders import Orders
from moorage.protocol import PutFile, Report, RunCommand, Said

from .context import NodeContext


async def command(at: NodeContext, args: RunCommand, _report: Report) -> Said:
    """Run a command."""
    return await _orders(at).run(args.command)


async def put(at: NodeContext, args: PutFile, _report: Report) -> None:
    """Write a file."""
    _orders(at).put(args.path, args.content, args.mode)


def _orders(at: NodeContext) -> Orders:
    if at.machine.orders is None:
        raise NotSupported(f"node {at.name} takes no such orders")
    return at.machine.orders


VERBS = (RunCommand.done_by(command), PutFile.done_by(put))
"""Every verb of this kind."""
