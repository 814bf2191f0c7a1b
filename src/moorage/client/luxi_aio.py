# SPDX-License-Identifier: BSD-2-Clause
"""Connections to the master's socket, that hold nobody up."""

import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from moorage.api.luxi_async import AsyncLuxi
from moorage.api.wanted import Wanted
from moorage.errors import Unreachable

from .luxi import WAIT, heard
from .places import Socket
from .told import Entry


class LuxiAio:
    """The way to a cluster over the master's socket; as :class:`~.luxi.Luxi`."""

    def __init__(self, at: Socket, timeout: float) -> None:
        other = Path(at.other) if at.other else None
        self._luxi = AsyncLuxi(Path(at.path), timeout, other)
        self._timeout = timeout

    async def call(self, method: str, args: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return the result of a method."""
        if method == "Features":
            from moorage.api.features import FEATURES  # noqa: PLC0415 - as it blocks

            return FEATURES
        try:
            return await self._luxi.call(method, *args)
        except TimeoutError:
            raise Unreachable(
                f"the connection to the master broke: no answer in {self._timeout:g} s",
                lost="master",
            ) from None

    async def listen(
        self, after: int | None, wanted: Wanted, end: float | None
    ) -> AsyncGenerator[Entry | None, None]:
        """Yield what happens until time is over; None says that the master lives."""
        at = after
        if at is None:
            at = (await self.call("WaitForEvents", (None, 0.0)))["number"]
            yield Entry(at, reset=True)
        left = WAIT
        while left > 0:
            left = WAIT if end is None else min(WAIT, end - time.monotonic())
            told = await self.call("WaitForEvents", (at, max(left, 0.0)))
            for entry in heard(told, wanted):
                yield entry
            yield None
            at = told["number"]

    async def close(self) -> None:
        """Hang up."""
        self._luxi.close()
