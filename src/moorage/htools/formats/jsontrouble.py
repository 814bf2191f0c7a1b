# SPDX-License-Identifier: BSD-2-Clause
"""Where JSON goes wrong in ways that the standard parser does not place."""

import json
import re
from typing import Final

DEEPEST: Final = 200
"""Lists and objects within each other."""
LONGEST: Final = 400
"""Digits of a whole number."""

_TOKEN: Final = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}:,]|NaN|-?Infinity|-?[0-9]++', re.DOTALL
)


class _Walk:
    """The lists and objects around a token; of objects, the keys so far."""

    def __init__(self) -> None:
        self.around: list[set[str] | None] = []
        self.before = ""

    def trouble(self, token: str) -> str:
        """Take the next token; return what is wrong with it, or ''."""
        first, before = token[0], self.before
        self.before = first
        if first in "{[":
            self.around.append(set() if first == "{" else None)
            return "is nested too deep" if len(self.around) > DEEPEST else ""
        if first in "}]":
            del self.around[-1:]
            return ""
        if first == '"':
            return self._repeats(token) if before in {"{", ","} else ""
        if token.endswith(("N", "y")):
            return f"{token} is not a number"
        return f"a number of {len(token)} digits" if len(token) > LONGEST else ""

    def _repeats(self, token: str) -> str:
        keys = self.around[-1] if self.around else None
        if keys is None:
            return ""
        key = json.loads(token, strict=False)
        if key in keys:
            from moorage.htools.formats.brief import brief  # noqa: PLC0415 - rare

            return f"{brief(key)} occurs twice"
        keys.add(key)
        return ""


def first_trouble(text: str) -> tuple[int, str]:
    """Return where in a JSON text the first trouble starts, and what it is.

    >>> first_trouble('{"a": 1, "b": {"a": 2}, "a": 3}')
    (24, "'a' occurs twice")
    >>> first_trouble("[1, NaN]")
    (4, 'NaN is not a number')
    """
    walk = _Walk()
    for found in _TOKEN.finditer(text):
        why = walk.trouble(found[0])
        if why:
            return found.start(), why
    return 0, "holds a number that is none"
