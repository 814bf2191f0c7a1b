# SPDX-License-Identifier: BSD-2-Clause
"""Names of machines: letter case, short names, and names that are alike."""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

_NUMBERS = re.compile("[0-9]+")
_LETTERS = "abcdefghijklmnopqrstuvwxyz-._"


def lowered(name: str) -> str:
    """Return a name as it is recorded: names of machines have no letter case.

    >>> lowered("Web1.Example.COM")
    'web1.example.com'
    """
    return name.lower()


def short_for(word: str, names: Iterable[str]) -> list[str]:
    """Return the names that a word is the beginning of, up to a dot.

    >>> short_for("Web1", ["web1.example.com", "web11.example.com"])
    ['web1.example.com']
    """
    beginning = f"{lowered(word)}."
    return sorted(name for name in names if name.startswith(beginning))


def beginnings(name: str) -> list[str]:
    """Return the words that are short for a name.

    >>> beginnings("web1.example.com")
    ['web1', 'web1.example']
    """
    return [name[:at] for at, mark in enumerate(name) if mark == "."]


def slips(word: str) -> Iterator[str]:
    """Yield the names that a word is one slip of the hand from, if they exist.

    A letter too many, too few or wrong, two that changed places, another letter case:
    some 60 names for each letter, however many names there are.

    >>> {"web", "Web", "ewb", "we", "webs"} <= set(slips("ewb")) | set(slips("web"))
    True
    """
    yield from (word.lower(), word.upper(), word.capitalize())
    for at in range(len(word) + 1):
        before, after = word[:at], word[at:]
        yield before + after[1:]
        yield before + after[1:2] + after[:1] + after[2:]
        yield before + after[:1].swapcase() + after[1:]
        for letter in _LETTERS:
            yield before + letter + after
            yield before + letter + after[1:]


def alike(word: str, names: Iterable[str]) -> list[str]:
    """Return up to three names that a word may be a slip of.

    A name with other numbers is another machine's, and never what was meant.

    >>> alike("wbe1", ["web1", "web2"]), alike("web3", ["web1", "web2"])
    (['web1'], [])
    """
    wanted = _NUMBERS.findall(word)
    same = [name for name in names if _NUMBERS.findall(name) == wanted]
    return get_close_matches(word, same, n=3)
