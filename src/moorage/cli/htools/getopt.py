# SPDX-License-Identifier: BSD-2-Clause
"""Options as people and scripts type them for Ganeti's tools.

A long option may be cut short as long as it stays unique, short ones may be joined
(``-qC``), and a value that may be left out is glued to its option (``-Cplan.sh``,
``--luxi=SOCKET``).
"""

from collections.abc import Iterator, Mapping, Sequence

from moorage.cli.declaration import Option

Given = list[tuple[Option, str]]
"""Options in the order of their use, each with its value's text."""


class Misspelled(Exception):
    """Something that is no option, or not in this form."""


def spelled(
    options: Sequence[Option], ours: Sequence[Option], argv: Sequence[str]
) -> tuple[Given, list[str]]:
    """Return the options that are given, and the other words.

    Parameters
    ----------
    ours
        Those that Ganeti's tools do not have: they take no abbreviation from others.

    Raises
    ------
    Misspelled
        With what is wrong, in one sentence.
    """
    flags = {flag: option for option in options for flag in option.flags}
    late = {flag for option in ours for flag in option.flags}
    given: Given = []
    words: list[str] = []
    rest = iter(argv)
    for word in rest:
        if word == "--":
            words.extend(rest)
        elif word.startswith("--"):
            given.append(_long(flags, late, word, rest))
        elif word.startswith("-") and word != "-":
            given.extend(_short(flags, word[1:], rest))
        else:
            words.append(word)
    return given, words


def _long(
    flags: Mapping[str, Option], late: set[str], word: str, rest: Iterator[str]
) -> tuple[Option, str]:
    typed, has_value, value = word.partition("=")
    name = _whole(flags, late, typed)
    option = flags[name]
    if not option.metavar:
        if has_value:
            raise Misspelled(f"option `{name}' doesn't allow an argument")
        return option, ""
    if not has_value:
        value = option.bare if option.glued else _next(name, option, rest)
    return option, value


def _whole(flags: Mapping[str, Option], late: set[str], typed: str) -> str:
    """Return the option that somebody began to type."""
    if typed in flags:
        return typed
    found = [name for name in flags if name.startswith(typed)]
    if len(found) > 1:
        found = [name for name in found if name not in late]
    if len(found) > 1:
        listed = "".join(f"\n  {name}" for name in sorted(found))
        raise Misspelled(f"option `{typed}' is ambiguous; could be one of:{listed}")
    if not found:
        raise Misspelled(f"unrecognized option `{typed}'")
    return found[0]


def _short(
    flags: Mapping[str, Option], letters: str, rest: Iterator[str]
) -> Iterator[tuple[Option, str]]:
    while letters:
        typed, letters = f"-{letters[0]}", letters[1:]
        option = flags.get(typed)
        if option is None:
            raise Misspelled(f"unrecognized option `{typed}'")
        if not option.metavar:
            yield option, ""
            continue
        if not letters:
            letters = option.bare if option.glued else _next(typed, option, rest)
        yield option, letters
        return


def _next(typed: str, option: Option, rest: Iterator[str]) -> str:
    for word in rest:
        return word
    raise Misspelled(f"option `{typed}' requires an argument {option.metavar}")
