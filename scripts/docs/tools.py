# SPDX-License-Identifier: BSD-2-Clause

"""What tests found out about tools that were made for Ganeti: their own lists."""

from collections.abc import Iterator
from pathlib import Path

from declared import Lines, code, table

_LISTS = Path(__file__).resolve().parents[2] / "tests" / "api" / "data"
LEFT_OUT = _LISTS / "ganeti-left-out.txt"
DIFFERENCES = _LISTS / "rapi-differences.txt"


def _listed(path: Path) -> Iterator[tuple[str, str]]:
    """Yield what is listed, with its reason."""
    for line in path.read_text().splitlines():
        what, _, why = line.partition(": ")
        yield what, why


def left_out() -> Lines:
    """Yield the commands of Ganeti's own programs that do not work, and why."""
    rows = [[code(command), why] for command, why in _listed(LEFT_OUT)]
    yield from table(("command", "why"), rows)


def differences() -> Lines:
    """Yield where our answers are not those of Ganeti's daemon, and why."""
    rows = []
    for what, why in _listed(DIFFERENCES):
        path, _, key = what.partition(" ")
        told = key if " " in key else code(key) or "all"
        rows.append([code(path), told, why])
    yield from table(("GET", "what differs", "why"), rows)
