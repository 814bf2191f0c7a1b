# SPDX-License-Identifier: BSD-2-Clause
"""``cpu_mask``: which of a node's processors a guest's may use, as Ganeti writes it.

``0-2,5:all:1``: one entry a virtual processor, or one for the whole guest.
"""

import re
from typing import NamedTuple

from moorage.errors import BadInput

ALL = "all"
_ENTRY = re.compile(r"\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*", re.ASCII)


class CpuMask(NamedTuple):
    """What a mask says.

    Attributes
    ----------
    entries
        How many there are; 0 for an empty mask.
    highest
        The highest number of a processor that is named, from 0; None if none is.
    sets
        The processors of each entry, as first and last ones of ranges; empty for all.
    """

    entries: int
    highest: int | None
    sets: tuple[tuple[tuple[int, int], ...], ...]


def parsed(text: str) -> CpuMask:
    """Return what a mask says.

    Raises
    ------
    BadInput
        If it is none.

    >>> parsed("0-2,5:all:1")
    CpuMask(entries=3, highest=5, sets=(((0, 2), (5, 5)), (), ((1, 1),)))
    """
    entries = [one for one in text.split(":") if text]
    sets = tuple(_ranges(one, text) if one.lower() != ALL else () for one in entries)
    tops = [last for ranges in sets for _, last in ranges]
    return CpuMask(len(entries), max(tops, default=None), sets)


def _ranges(entry: str, mask: str) -> tuple[tuple[int, int], ...]:
    if not _ENTRY.fullmatch(entry):
        raise _bad(mask, f"'{entry[:80]}' is neither")
    spans = [one.split("-") for one in entry.split(",")]
    for first, *last in spans:
        if last and int(first) > int(last[0]):
            raise _bad(mask, f"'{first}-{last[0]}' runs backwards")
    return tuple((int(one[0]), int(one[-1])) for one in spans)


def _bad(mask: str, why: str) -> BadInput:
    return BadInput(
        f"cpu_mask '{mask[:80]}' is not all, or numbers and ranges of processors, for "
        f"all virtual ones or for each (0-2,5:all:1): {why}",
        parameter="cpu_mask",
    )
