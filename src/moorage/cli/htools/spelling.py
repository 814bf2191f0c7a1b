# SPDX-License-Identifier: BSD-2-Clause
"""Options as people and scripts type them for Ganeti's tools, spelled out.

A long option may be cut short as long as it stays unique, short ones may be joined
(``-qC``), and a value may be optional: then it is glued to its option (``-Cplan.sh``,
``--luxi=SOCKET``).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

OPTIONAL: Final = {
    "-p": "--print-nodes",
    "-C": "--print-commands",
    "-L": "--luxi",
}
"""Short options whose value, if any, is glued to them."""
_GLUED: Final = frozenset(
    {*OPTIONAL.values(), "--machine-readable", "--mond", "--survive"}
)
"""Long options whose value may be left out."""
_OURS: Final = frozenset(
    {"--explain", "--html", "--lookahead", "--compact", "--cost", "--survive"}
)
"""Options that Ganeti's tools do not have: they take no abbreviation from those."""


class Misspelled(Exception):
    """Something that is no option, or not in this form."""


class Flag(Protocol):
    """What the parser knows of an option."""

    option_strings: Sequence[str]
    nargs: int | str | None
    metavar: str | tuple[str, ...] | None


def spelled(flags: Mapping[str, Flag], words: Sequence[str]) -> Iterator[str]:
    """Yield words with every option in full, and its value behind ``=``.

    Parameters
    ----------
    flags
        Every option, by each of its spellings.

    Raises
    ------
    Misspelled
        With what is wrong, in one sentence.
    """
    rest = iter(words)
    for word in rest:
        if word == "--":
            yield word
            yield from rest
        elif word.startswith("--"):
            yield _long(flags, word, rest)
        elif word.startswith("-") and word != "-":
            yield from _short(flags, word[1:], rest)
        else:
            yield word


def _long(flags: Mapping[str, Flag], word: str, rest: Iterator[str]) -> str:
    typed, given, value = word.partition("=")
    name = _whole(flags, typed)
    if not _takes_value(flags[name]):
        if given:
            raise Misspelled(f"option `{name}' doesn't allow an argument")
        return name
    if not given and name in _GLUED:
        return name if flags[name].nargs == "?" else f"{name}="
    return f"{name}={value if given else _next(name, flags[name], rest)}"


def _whole(flags: Mapping[str, Flag], typed: str) -> str:
    """Return the option that somebody began to type."""
    if typed in flags:
        return typed
    found = [name for name in flags if name.startswith(typed)]
    if len(found) > 1:
        found = [name for name in found if name not in _OURS]
    if len(found) > 1:
        listed = "".join(f"\n  {name}" for name in sorted(found))
        raise Misspelled(f"option `{typed}' is ambiguous; could be one of:{listed}")
    if not found:
        raise Misspelled(f"unrecognized option `{typed}'")
    return found[0]


def _short(
    flags: Mapping[str, Flag], letters: str, rest: Iterator[str]
) -> Iterator[str]:
    while letters:
        short, letters = f"-{letters[0]}", letters[1:]
        name = OPTIONAL.get(short, short)
        if name not in flags:
            raise Misspelled(f"unrecognized option `{short}'")
        flag = flags[name]
        if not _takes_value(flag):
            yield name
            continue
        if not letters and name not in _GLUED:
            letters = _next(short, flag, rest)
        yield f"{flag.option_strings[-1]}={letters}"
        return


def _takes_value(flag: Flag) -> bool:
    return flag.nargs != 0


def _next(typed: str, flag: Flag, rest: Iterator[str]) -> str:
    for word in rest:
        return word
    raise Misspelled(f"option `{typed}' requires an argument {flag.metavar or ''}")
