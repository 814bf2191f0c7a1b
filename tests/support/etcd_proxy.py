# SPDX-License-Identifier: BSD-2-Clause
"""What stands between a store and etcd: it loses requests, or answers, or all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

BEFORE, AFTER = "before", "after"


class Proxy:
    """Hands requests on.

    Attributes
    ----------
    asked
        The requests that came, but for renewals of the lease.
    faults
        By the number of a request: whether it is lost, or its answer.
    dies
        Whether nothing comes through after the first fault.
    dead
        Whether nothing comes through.
    """

    def __init__(self, behind: str) -> None:
        self.asked: list[str] = []
        self.faults: dict[int, str] = {}
        self.dies = False
        self.dead = False
        self.reached = asyncio.Event()
        self.url = ""
        self._behind = behind

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if self.dead:
            return _lost(request)
        fault = ""
        if not request.path.endswith("keepalive"):
            fault = self.faults.pop(len(self.asked), "")
            self.asked.append(request.path)
        if fault:
            self.dead = self.dies
            self.reached.set()
        if fault == BEFORE:
            return _lost(request)
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self._behind}{request.path}", data=body) as answer,
        ):
            found = await answer.read()
        if fault == AFTER:
            return _lost(request)
        return web.Response(body=found, status=answer.status)


def _lost(request: web.Request) -> web.Response:
    if request.transport:
        request.transport.close()
    return web.Response(status=500)


@asynccontextmanager
async def proxied(behind: str) -> AsyncIterator[Proxy]:
    """Stand before a member."""
    made = Proxy(behind)
    application = web.Application(client_max_size=1 << 30)
    application.router.add_post("/{path:.*}", made.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield made
    finally:
        await runner.cleanup()
