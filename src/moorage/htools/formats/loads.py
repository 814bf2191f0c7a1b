# SPDX-License-Identifier: BSD-2-Clause
"""Dynamic load of instances, as files for ``-U`` hold it."""

import re
from typing import Final

from moorage.htools.formats.text import Cell, Row
from moorage.htools.inst import Load

_LOAD: Final = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_MOST_LOAD: Final = 1e12


def parse_loads(text: str, file: str = "<loads>") -> list[tuple[str, Load]]:
    """Return the dynamic loads in a file of ``name cpu mem disk net`` lines.

    Raises
    ------
    BadInput
        With file, line and column of the first thing that is off.
    """
    found: list[tuple[str, Load]] = []
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate(lines, 1):
        row = Row(file, number, tuple(line.split(" ")))
        if len(row.columns) != 5:
            columns = "(name cpu mem disk net)"
            raise row.bad(f"{len(row.columns)} columns instead of 5 {columns}")
        cpu, mem, disk, net = (_load_of(row.cell(at)) for at in range(1, 5))
        found.append((row.columns[0], (cpu, mem, disk, net)))
    return found


def _load_of(cell: Cell) -> float:
    value = float(cell.text) if _LOAD.fullmatch(cell.text) else float("nan")
    if not -_MOST_LOAD <= value <= _MOST_LOAD:
        raise cell.bad("a load (a number)")
    return value
