# SPDX-License-Identifier: BSD-2-Clause
"""What the values of options mean to the planner's programs."""

from collections.abc import Callable
from typing import Final

from moorage.cli.declaration import Options
from moorage.errors import BadInput

_MOST: Final = 10**18
_LONGEST_LINE: Final = 300


def number(least: float = -_MOST, most: float = _MOST) -> Callable[[str], float]:
    """Return a reader of numbers in a range, for an option."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise BadInput(f"{text!r} is not {_ranged('', least, most)}")
        return value

    return read


def whole(least: int = -_MOST, most: int = _MOST) -> Callable[[str], int]:
    """Return a reader of whole numbers in a range, for an option."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = most + 1
        if not least <= value <= most:
            raise BadInput(f"{text!r} is not {_ranged('whole ', least, most)}")
        return value

    return read


def _ranged(kind: str, least: float, most: float) -> str:
    """Return what a number must be, in words."""
    words = f"a {kind}number"
    if least > -_MOST:
        words += f" from {least}"
    return words + (f" up to {most}" if most < _MOST else "")


def verbosity(options: Options) -> int:
    """Return how much to say; 1 is usual."""
    return 1 + int(options.verbose) - int(getattr(options, "quiet", 0))


def is_yes(choice: str | None) -> bool:
    """Return whether an option is given, and not with the word ``no``."""
    if choice is None or choice in {"", "yes", "no"}:
        return choice is not None and choice != "no"
    raise BadInput(f"'{choice}' is neither yes nor no")


def names(text: str) -> tuple[str, ...]:
    """Return a list with commas between."""
    return tuple(text.split(",")) if text else ()


def counted(number: int, what: str) -> str:
    """Return a number of things.

    >>> counted(1, "node"), counted(0, "node")
    ('1 node', '0 nodes')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


def one_line(text: str) -> str:
    """Return what somebody else said as one readable line."""
    line = " ".join(text.split())
    line = line if line.isprintable() else ascii(line)[1:-1]
    return line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + "..."
