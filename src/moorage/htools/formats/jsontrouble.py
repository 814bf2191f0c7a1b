# SPDX-License-Identifier: BSD-2-Clause
"""Where JSON goes wrong in ways that the standard parser does not place."""

import re
from typing import Final

DEEPEST: Final = 200
"""Lists and objects within each other."""
LONGEST: Final = 400
"""Digits of a whole number."""

_TOKEN: Final = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}:,]|NaN|-?Infinity|-?[0-9]++', re.DOTALL
)


def first_trouble(text: str) -> tuple[int, str]:
    """Return where in a JSON text the first trouble starts, and what it is.

    >>> first_trouble("[1, NaN]")
    (4, 'NaN is not a number')
    >>> first_trouble("[" * 300)
    (200, 'is nested too deep')
    """
    depth = 0
    for found in _TOKEN.finditer(text):
        word = found[0]
        depth += (word in "{[") - (word in "}]")
        if depth > DEEPEST:
            return found.start(), "is nested too deep"
        if word.endswith(("N", "y")):
            return found.start(), f"{word} is not a number"
        if word[0] != '"' and len(word) > LONGEST:
            return found.start(), f"a number of {len(word)} digits"
    return 0, "holds a number that is none"
