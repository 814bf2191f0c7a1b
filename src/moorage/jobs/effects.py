# SPDX-License-Identifier: BSD-2-Clause
"""What the engine takes from outside: time, chance, and places to be interrupted."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any


async def _pass(_name: str) -> None:
    """Pass a point without interruption."""


@dataclass(frozen=True, slots=True)
class Effects:
    """What the engine takes from outside; tests give their own.

    Attributes
    ----------
    clock
        The time in seconds.
    steady
        Seconds that never go back, and count while the machine sleeps.
    sleep
        How to wait.
    fresh
        Makes a uuid.
    patience
        Seconds after which a job says what it waits for.
    point
        Called at every place where a crash must be survived; tests crash there.
    aside
        Runs what may take long, without holding up everybody else.
    """

    clock: Callable[[], float] = time.time
    steady: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    fresh: Callable[[], str] = lambda: str(uuid.uuid4())
    patience: float = 10.0
    point: Callable[[str], Awaitable[None]] = _pass
    aside: Callable[[Callable[[], Any]], Awaitable[Any]] = asyncio.to_thread


REAL = Effects()
"""The world outside tests."""
