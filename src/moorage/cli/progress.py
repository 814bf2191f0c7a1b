# SPDX-License-Identifier: BSD-2-Clause
"""A progress bar on the error stream; loaded only at a terminal."""

from collections.abc import Mapping
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from moorage.units import format_size


class ProgressBar:
    """Shows ``{"done", "total", "unit", "note"}`` of the running task.

    Parameters
    ----------
    stream
        The terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, force_terminal=True)
        self._progress: Progress | None = None
        self._task = TaskID(0)

    def show(self, progress: Mapping[str, Any] | None) -> None:
        """Draw the bar; a job without progress has none."""
        if not progress:
            self.close()
            return
        bar = self._progress or self._open()
        bar.update(
            self._task,
            description=str(progress.get("note") or ""),
            completed=float(progress.get("done") or 0),
            total=progress.get("total"),
            amount=amount(progress),
        )

    def _open(self) -> Progress:
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[amount]}"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        self._task = bar.add_task("", total=None, amount="")
        bar.start()
        self._progress = bar
        return bar

    def close(self) -> None:
        """Take the bar off the screen."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def amount(progress: Mapping[str, Any]) -> str:
    """Return how far a task is, in words.

    >>> amount({"done": 512, "total": 2048, "unit": "MiB"})
    '512M of 2.0G'
    """
    done, total = progress.get("done") or 0, progress.get("total")
    unit = str(progress.get("unit") or "")
    if unit.lower() == "mib":
        ends = [format_size(end) for end in (done, total) if end is not None]
        return " of ".join(ends)
    ends = [str(end) for end in (done, total) if end is not None]
    return f"{' of '.join(ends)} {unit}".rstrip()
