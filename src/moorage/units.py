# SPDX-License-Identifier: BSD-2-Clause
"""Units: a size is a whole number of mebibytes everywhere below the command line."""

import re
from collections.abc import Sequence
from math import ceil, floor
from typing import NewType

from moorage.errors import BadInput

Mib = NewType("Mib", int)
"""A size in mebibytes."""

MIB = 1 << 20
"""The bytes of one."""
LARGEST = Mib(2**44)
"""16 EiB: more is a slip of the hand, and sums of it could not be computed exactly."""
MOST = 2**31
"""Of what is counted: processors, disks, cards, spindles, and of a ratio."""
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zA-Z]*)")
_WHOLE = re.compile("-?[0-9]{1,18}")
_FACTORS = {"": 1, "m": 1, "g": 1024, "t": 1024 * 1024}
_STEP = 4


def mib_for(size: int) -> Mib:
    """Return how many MiB hold so many bytes.

    >>> mib_for(1), mib_for(MIB)
    (1, 1)
    """
    return Mib(-(-size // MIB))


def is_whole(text: str) -> bool:
    """Whether a text is a whole number, of at most 18 digits, that `int` reads.

    >>> is_whole("12"), is_whole("-1"), is_whole("9" * 19)
    (True, True, False)
    """
    return bool(_WHOLE.fullmatch(text))


def parse_size(text: str) -> Mib:
    """Return the size that a person typed, rounded up to a multiple of 4 MiB.

    A plain number is MiB; the suffixes m, mb, mib, g, gb, gib, t, tb and tib are
    taken in any case, fractions too. (Ganeti's rule for its command line.)

    Raises
    ------
    BadInput
        If the text is not a positive size.

    >>> parse_size("1G"), parse_size("1001"), parse_size("1.5g")
    (1024, 1004, 1536)
    """
    mib = ceil(_mib(text))
    return Mib(-(-mib // _STEP) * _STEP)


def _mib(text: str) -> float:
    """Return the MiB that a person typed; raise `BadInput` for anything else."""
    found = _SIZE.fullmatch(text.strip())
    unit = found[2].lower().removesuffix("b").removesuffix("i") if found else "?"
    if not found or unit not in _FACTORS:
        raise BadInput(
            f"'{text}' is not a size", hint="write 512M, 10G or 1.5T", size=text
        )
    size = float(found[1]) * _FACTORS[unit]
    if size > LARGEST:
        raise BadInput(f"{text[:40]} is more than 16 EiB: no size of a disk or guest")
    return size


def parse_rate(text: str) -> Mib:
    """Return how many MiB a second a person allows: whole ones, and no more.

    Raises
    ------
    BadInput
        If the text is not a size, or less than the 1 MiB that programs can be told.

    >>> parse_rate("3M"), parse_rate("2.5M")
    (3, 2)
    """
    rate = floor(_mib(text))
    if rate < 1:
        raise BadInput(f"'{text[:40]}' a second is less than 1M, the least there is")
    return Mib(rate)


def format_size(mib: float, unit: str = "h") -> str:
    """Return a size as tables print it.

    Parameters
    ----------
    mib
        The size in MiB.
    unit
        ``h`` picks a suffix a person likes; ``m``, ``g`` and ``t`` print bare
        numbers in that unit, for programs.

    >>> format_size(512), format_size(1536), format_size(1536, "m")
    ('512M', '1.5G', '1536')
    """
    if unit == "m":
        return f"{round(mib)}"
    if unit in ("g", "t"):
        return f"{mib / _FACTORS[unit]:.1f}"
    if mib < _FACTORS["g"]:
        return f"{round(mib)}M"
    if mib < _FACTORS["t"]:
        return f"{mib / _FACTORS['g']:.1f}G"
    return f"{mib / _FACTORS['t']:.1f}T"


def counted(number: int, what: str) -> str:
    """Return so many of something that is named in the singular.

    >>> counted(1, "disk"), counted(2, "other node that answered")
    ('1 disk', '2 other nodes that answered')
    """
    noun, that, rest = what.partition(" that")
    return f"{number} {noun}{'' if number == 1 else 's'}{that}{rest}"


def shortened(names: Sequence[str], most: int) -> str:
    """Return the first of some names, and how many more there are.

    >>> shortened(["a", "b"], 2), shortened(["a", "b", "c"], 2)
    ('a, b', 'a, b and 1 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
