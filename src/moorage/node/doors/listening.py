# SPDX-License-Identifier: BSD-2-Clause
"""A port of this node that anybody can reach: it listens, with a doorkeeper."""

import asyncio
import os
import socket
import ssl
from typing import cast

from aiohttp import web

from moorage.errors import Failed
from moorage.model.addresses import place
from moorage.node import wire

from .doorkeeper import Doorkeeper, Limits

_BACKLOG = 1024
"""Connections that may wait to be accepted."""


async def listen(
    runner: web.AppRunner,
    address: str,
    port: int,
    context: ssl.SSLContext,
    limits: Limits,
) -> None:
    """Listen; a runner that cannot is cleaned up.

    Raises
    ------
    Failed
        If the port cannot be had.
    """
    try:
        bound = _bound(address, port)
    except OSError as error:
        await runner.cleanup()
        cause = os.strerror(error.errno) if error.errno else str(error)
        raise Failed(f"cannot listen at {place(address, port)}: {cause}") from error
    await _Site(runner, bound, context, limits).start()


def _bound(address: str, port: int) -> socket.socket:
    """Return a socket for all connections to come; they inherit its options."""
    family, kind, protocol, _, where = socket.getaddrinfo(
        address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        wire.steady(found).bind(where)
        found.listen(_BACKLOG)
        found.setblocking(False)
    except OSError:
        found.close()
        raise
    return found


class _Site(web.SockSite):
    """A site with a doorkeeper."""

    def __init__(
        self,
        runner: web.AppRunner,
        listener: socket.socket,
        context: ssl.SSLContext,
        limits: Limits,
    ) -> None:
        super().__init__(runner, listener, ssl_context=context)
        self._kept = limits, context

    async def start(self) -> None:
        """Start to listen."""
        await web.BaseSite.start(self)
        server = self._runner.server
        assert server is not None  # noqa: S101 - the runner was set up
        limits, context = self._kept
        keeper = Doorkeeper(self._sock, server, context, limits)
        # All that aiohttp asks of a server is where it listens, and to close.
        self._server = cast("asyncio.AbstractServer", keeper)
