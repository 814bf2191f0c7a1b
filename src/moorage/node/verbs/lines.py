# SPDX-License-Identifier: BSD-2-Clause
"""Lines to guests for those who bring a ticket."""

from socket import socket

from moorage.errors import NotSupported
from moorage.protocol import Drawn, DrawTicket, Report

from .context import NodeContext


async def draw(at: NodeContext, args: DrawTicket, _report: Report) -> Drawn:
    """Wait for whoever brings a ticket, for some minutes."""
    if at.tickets is None:
        raise NotSupported(f"node {at.name} is asked over no network")

    async def connect() -> socket:
        return await at.hypervisor(args.hypervisor).connect(args.uuid, "serial", "")

    told = {"instance": args.name, "node": at.name}
    return at.tickets.draw(args.address, told, connect, args.by)


VERBS = (DrawTicket.done_by(draw),)
"""Every verb of lines."""
