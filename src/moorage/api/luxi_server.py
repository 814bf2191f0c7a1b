# SPDX-License-Identifier: BSD-2-Clause
"""The master's side of LUXI: every method, answered from its sources."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec.json import Encoder

from moorage.errors import MoorageError, NotSupported, Unreachable
from moorage.jobs.turns import let_go
from moorage.node.lines import Line

from .luxi_caller import Believed
from .luxi_inbox import MOST
from .luxi_line import open_line
from .luxi_messages import encode_long, encode_result
from .luxi_method import Method
from .luxi_methods import method
from .luxi_request import ConnectInstance, Request
from .luxi_socket import LARGEST_REQUEST, GoneError, LuxiSocket
from .query import MANY, Sources

_ROWS = Encoder()


class LuxiServer(LuxiSocket):
    """Answers requests on a Unix socket that only its owner may use.

    Attributes
    ----------
    sources
        Where answers come from; None while the master cannot give any.
    excuse
        Makes what everybody is told while there are no sources.
    """

    def __init__(
        self,
        sources: Sources | None,
        path: Path,
        longest: int = LARGEST_REQUEST,
        most: int = MOST,
        doors: Mapping[Path, Believed] | None = None,
    ) -> None:
        super().__init__(path, longest, most, doors)
        self.sources = sources
        self.excuse: Callable[[], MoorageError] = _starting

    def read(self, name: str, args: list[Any]) -> Request:
        """Return a request for one of the master's methods."""
        return method(name, args)

    async def line(self, wanted: ConnectInstance) -> tuple[dict[str, Any], Line]:
        """Open a line to a guest, through the agent of its node."""
        return await open_line(self._ready(), wanted)

    async def answer(self, wanted: Request, gone: asyncio.Task[Any]) -> bytes:
        """Return the answer to a request, made from the sources."""
        if not isinstance(wanted, Method):
            raise NotSupported("a line can be had over a connection of its own only")
        return await _encoded(await self._result(wanted, self._ready(), gone))

    def _ready(self) -> Sources:
        if self.sources is None:
            raise self.excuse()
        return self.sources

    async def _result(
        self, wanted: Method, sources: Sources, gone: asyncio.Task[Any]
    ) -> Any:  # noqa: ANN401
        """Return the result; give up waiting for a client that went away."""
        work = asyncio.create_task(wanted.answer(sources))
        self._under_way.add(work)
        work.add_done_callback(self._done)
        if not wanted.waits:
            # A job that is being taken must not be torn when its client hangs up.
            return await asyncio.shield(work)
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not isinstance(gone.result(), bytes):
                raise GoneError
            return await work
        finally:
            work.cancel()

    def _done(self, work: asyncio.Task[Any]) -> None:
        self._under_way.discard(work)
        if not work.cancelled():
            work.exception()  # whoever waited was told; nobody may be left


def _starting() -> MoorageError:
    return Unreachable("the master is starting", lost="master")


async def _encoded(result: Any) -> bytes:  # noqa: ANN401
    """Return the answer; a long one is made in a thread of its own."""
    table = isinstance(result, dict) and result.keys() == {"fields", "data"}
    data = result["data"] if table else result
    if isinstance(data, list) and len(data) >= MANY:
        return await asyncio.to_thread(_encoded_long, result, data if table else [])
    return encode_result(result)


def _encoded_long(result: Any, rows: list[Any]) -> bytes:  # noqa: ANN401
    """Return the answer with its rows, which nobody needs any more."""
    answer = encode_long(result, _written)
    let_go(rows)
    return answer


def _written(rows: list[Any]) -> str:
    """Return rows as JSON, ten times as fast as Python's own library writes them.

    That one knows halves of a character and numbers of more than 64 bits, too.
    """
    try:
        return _ROWS.encode(rows).decode()
    except (OverflowError, UnicodeError):
        return json.dumps(rows, separators=(",", ":"))
