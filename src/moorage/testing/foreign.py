# SPDX-License-Identifier: BSD-2-Clause
"""Storage of other makers, real and small, for as long as a test needs it."""

import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

from moorage.errors import Failed

PATIENCE = 300.0
"""Seconds that a program may take, or what one waits for."""
_STEP = 0.05


class Foreign(ABC):
    """What is started by entering it, and closed at the end, whatever fails."""

    def __enter__(self) -> Self:
        """Start it."""
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.close()

    @abstractmethod
    def _start(self) -> None:
        """Start its daemons, and wait for them."""

    @abstractmethod
    def close(self) -> None:
        """End it; its data are gone."""


def run(*argv: str) -> str:
    """Run a program; return what it prints.

    Raises
    ------
    Failed
        If it ends with another status than 0.
    """
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise Failed(f"{' '.join(argv)}: {said}")
    return done.stdout


def until(true: Callable[[], bool], complaint: str, seconds: float = PATIENCE) -> None:
    """Wait until something is true.

    Raises
    ------
    Failed
        If it is not in time.
    """
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise Failed(f"{complaint} after {seconds:g} s")
        time.sleep(_STEP)
