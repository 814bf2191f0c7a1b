# SPDX-License-Identifier: BSD-2-Clause
"""What keeps pages live: a stream of what changed, and the strip of running jobs.

The door hears of changes once for all who listen.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from aiohttp import web
from msgspec import json

from moorage.api.wanted import Wanted
from moorage.client.aio import AsyncClient
from moorage.client.told import Entry
from moorage.errors import MoorageError

from .jobs import named, progress_of
from .values import address, short
from .way import InsideWay

_WRITE = 10.0
"""Seconds that a browser may take to read what changed."""
_MOST = 5
"""Jobs that a strip shows."""
_LINE = 200
"""Characters of a job's last line."""
_FIELDS = ("id", "status", "summary", "progress", "oplog")


async def stream(
    request: web.Request,
    way: InsideWay,
    headers: Mapping[str, str],
    still: Callable[[], bool],
) -> web.StreamResponse:
    """Tell a browser what changes, as long as it listens and its session lasts.

    An event has the kinds of what changed, and the numbers of jobs; pages that show
    these are fetched again.
    """
    told = {**headers, "Content-Type": "text/event-stream", "Cache-Control": "no-store"}
    answer = web.StreamResponse(headers=told)
    try:
        await answer.prepare(request)
        async for entry in way.listen(None, Wanted(), None):
            if not still():
                break
            async with asyncio.timeout(_WRITE):
                await answer.write(_block(entry))
    except (ConnectionError, TimeoutError, MoorageError):
        pass  # it went away or reads too slowly, or the master went away
    return answer


def _block(entry: Entry | None) -> bytes:
    if entry is None or entry.reset:
        return b": here\n\n"
    kinds = sorted({one.kind for one in entry.events})
    jobs = sorted({one.job for one in entry.events if one.job})
    return b"data: %s\n\n" % json.encode({"kinds": kinds, "jobs": jobs})


class Line(NamedTuple):
    """A running job in the strip."""

    number: int
    href: str
    status: str
    summary: str
    progress: Any
    last: str


async def strip(client: AsyncClient) -> dict[str, Any]:
    """Return what the strip of running jobs shows."""
    states = ("running", "waiting", "canceling", "queued")
    chosen = ["|", *(["==", "status", one] for one in states)]
    jobs = (await client.query("job", _FIELDS, chosen)).objects()
    lines = [_line(one) for one in jobs[:_MOST]]
    return {"lines": lines, "left": len(jobs) - len(lines)}


def _line(job: dict[str, Any]) -> Line:
    said = [text for log in job["oplog"] or () for *_, text in log]
    last = short(said[-1], _LINE) if said and isinstance(said[-1], str) else ""
    told = progress_of(job["progress"])
    number = job["id"]
    summary = named(job["summary"])
    return Line(number, address("job", number), job["status"], summary, told, last)
