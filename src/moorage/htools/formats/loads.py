# SPDX-License-Identifier: BSD-2-Clause
"""Dynamic load of instances, as files for ``-U`` hold it."""

import re
from typing import Final

from moorage.errors import BadInput
from moorage.htools.formats.excerpt import brief
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
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        if not text:
            break
        words = line.split(" ")
        if len(words) != 5:
            raise BadInput(
                f"{file}: line {number}, column 1: {len(words)} columns instead of 5 "
                "(name cpu mem disk net)"
            )
        cpu, mem, disk, net = (
            _load_of(word, f"{file}: line {number}, column {at}")
            for at, word in enumerate(words[1:], 2)
        )
        found.append((words[0], (cpu, mem, disk, net)))
    return found


def _load_of(word: str, place: str) -> float:
    value = float(word) if _LOAD.fullmatch(word) else float("nan")
    if not -_MOST_LOAD <= value <= _MOST_LOAD:
        raise BadInput(f"{place}: {brief(word)} is not a load (a number)")
    return value
