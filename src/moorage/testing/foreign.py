# SPDX-License-Identifier: BSD-2-Clause
"""Storage of other makers, real and small, for as long as a test needs it."""

from abc import ABC, abstractmethod
from typing import Self


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
