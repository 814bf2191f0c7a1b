# SPDX-License-Identifier: BSD-2-Clause
"""The process of the door: RAPI over HTTPS, with nothing behind it but LUXI."""

import asyncio
import logging
import signal
import time
from dataclasses import replace
from pathlib import Path

from moorage.api.luxi_async import AsyncLuxi
from moorage.api.rapi.application import Door
from moorage.api.rapi.events import LISTENER, Hub
from moorage.api.rapi.limits import Gate
from moorage.api.rapi.routes import ROUTES
from moorage.api.rapi.serving import Certificate, look_after, serve
from moorage.api.rapi.users import Users
from moorage.jobs.turns import give_back
from moorage.model.addresses import place
from moorage.record_types import look_at_types
from moorage.web.serving import WebPages

from . import log_limit, pauses, systemd
from .rapi_settings import Settings

_LOG = logging.getLogger(__name__)
_TIDY = 60.0
"""Seconds between two looks for what connections left behind in circles."""


def run(settings: Settings) -> None:
    """Serve until the process is told to end.

    Raises
    ------
    Failed
        If the certificate cannot be read, or the port cannot be had.
    """
    log_limit.write_log()
    log_limit.allow_descriptors()
    look_at_types()  # before there are threads
    asyncio.run(_run(settings))


async def _run(settings: Settings) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_limit.complain)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)  # files are looked at anyway
    certificate = Certificate(Path(settings.certificate))
    files = Path(settings.users), Path(settings.tokens)
    users = Users(*files, clock=time.time)
    if not users.number:
        _LOG.warning("nobody can come in: %s and %s name no user", *files)
    gate = Gate(settings.limits, time.monotonic)
    luxi = AsyncLuxi(Path(settings.socket), settings.limits.answer)
    door = Door(luxi, users, gate, ROUTES, Hub(luxi.of(LISTENER)))
    door = replace(door, pages=WebPages(door))
    runner = await serve(door, settings.address, settings.port, certificate)
    _LOG.info("RAPI is served at %s", place(settings.address, settings.port))
    signs = systemd.Signs()
    signs.begin()
    pauses.keep_short()
    tidying = asyncio.create_task(_tidy())
    chore = asyncio.create_task(look_after(runner, gate, certificate))
    ended = asyncio.create_task(stopped.wait())
    await asyncio.wait({chore, ended}, return_when=asyncio.FIRST_COMPLETED)
    signs.end()
    ended.cancel()
    tidying.cancel()
    await runner.cleanup()
    luxi.close()
    if chore.done():
        chore.result()
    chore.cancel()


async def _tidy() -> None:
    """Keep the process small: long answers leave much behind that is free."""
    while True:
        await asyncio.sleep(_TIDY)
        pauses.sweep(whole=True)
        await asyncio.to_thread(give_back)
