# SPDX-License-Identifier: BSD-2-Clause
"""Regular expressions of filters, tried in bounded time.

The master answers everybody in one thread, and Python's matcher tries every way to
divide a text among the repeats of a pattern: their number is the exponent of the time.
So no group is repeated, repeats are few, and texts short where there are several. What
may be left out, and what may be one thing or another, multiplies the ways, too.
"""

import re
from collections.abc import Iterator
from math import prod
from time import monotonic

from moorage.errors import BadInput

SECONDS = 2.0
"""For one pattern on all objects of a query; one text more may be under way."""
_LONGEST = (1 << 20, 10_000, 500, 256)
"""Characters of a text, by the repeats that may divide it: some 10^8 steps."""
_LONGEST_PATTERN = 2000
"""Characters; to compile a pattern takes time, too."""
_MOST_CHOICES = 10_000
_ATOM = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_REPEAT = re.compile(r"[*+]|\{[0-9,]")
_OPTION = re.compile(r"(?<!\()\?")
_REFUSED = {
    "a group that is repeated": re.compile(r"\)\s*(?:[*+]|\{[0-9,])"),
    "a comment or free spacing": re.compile(r"\(\?(?:#|[a-wyz]*x)"),
    "a reference to a group": re.compile(r"\(\?(?:P=|\()"),
}
_REFERENCE = re.compile(r"\\[1-9]")


class Pattern:
    """A pattern that can be tried on many texts.

    Raises
    ------
    BadInput
        If it is no regular expression, or one that could take for ever.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _LONGEST_PATTERN:
            raise BadInput(
                f"a pattern has at most {_LONGEST_PATTERN} characters, not {len(text)}"
            )
        try:
            self._pattern = re.compile(text)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadInput(f"'{text[:80]}' is no regular expression: {error}") from None
        self._text = text
        repeats, choices = _ways(text)
        self._most = int(_LONGEST[repeats] / choices ** (1 / (repeats + 1)))
        self._end = 0.0
        self._tried = 0

    def fits(self, text: str) -> bool:
        """Whether the pattern is found in a text.

        Raises
        ------
        BadInput
            If the text is too long for it, or all texts together took too long.
        """
        if len(text) > self._most:
            raise self._slow(f"a text has {len(text)} characters, {self._most} at most")
        now = monotonic()
        self._end = self._end or now + SECONDS
        if now > self._end:
            raise self._slow(f"{self._tried} texts took {SECONDS:g} s")
        self._tried += 1
        return bool(self._pattern.search(text))

    def _slow(self, why: str) -> BadInput:
        return BadInput(
            f"the pattern '{self._text[:80]}' takes too long: {why}",
            hint='compare with == or a part of the text, as in name =~ "^web"',
        )


def _ways(text: str) -> tuple[int, int]:
    """Return how many repeats multiply, and how many choices there are in all.

    Of the repeats, all do but the first, where it is anchored.
    """
    bare = _ATOM.sub("x", text)
    found = [why for why, mark in _REFUSED.items() if mark.search(bare)]
    if any(_REFERENCE.match(atom[0]) for atom in _ATOM.finditer(text)):
        found.append("a reference to a group")
    repeats = len(_REPEAT.findall(bare))
    least = int(bare.startswith("^") and "|" not in bare and repeats > 1)
    if repeats - least >= len(_LONGEST):
        found.append(f"{repeats} repeats")
    choices = prod(_alternatives(bare)) << len(_OPTION.findall(bare))
    if choices > _MOST_CHOICES:
        found.append(f"more than {_MOST_CHOICES} choices")
    if found:
        raise BadInput(
            f"the pattern '{text[:80]}' could take for ever: it has {found[0]}",
            hint=f"at most {len(_LONGEST) - 1} of * + {{}}, none after a group, and "
            "few of ? and |",
        )
    return repeats - least, choices


def _alternatives(bare: str) -> Iterator[int]:
    """Yield how many alternatives each group has, and the whole."""
    open_groups = [1]
    for char in bare:
        if char == "(":
            open_groups.append(1)
        elif char == "|":
            open_groups[-1] += 1
        elif char == ")" and len(open_groups) > 1:
            yield open_groups.pop()
    yield from open_groups
