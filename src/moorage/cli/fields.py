# SPDX-License-Identifier: BSD-2-Clause
"""Options that fill in the fields of an operation take from them what they say.

The operations are too much to load for a command line. What they declare of their
fields stands in ``opcodes.json``, which ``scripts/docs/generate.py`` writes.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from moorage.units import is_whole, parse_rate, parse_size

from .declaration import Command, Option
from .option_syntax import ident_key_values, key_values, names, nested, seconds, truth


@cache
def _declared() -> dict[str, dict[str, dict[str, Any]]]:
    """Return what is declared of each field, by opcode and name."""
    place = f"{__file__.rpartition('/')[0]}/opcodes.json"
    with open(place, "rb") as file:  # noqa: PTH123 - commands start without pathlib
        found: dict[str, dict[str, dict[str, Any]]] = json.load(file)
    return found


def fill(flags: str, **more: Any) -> Option:  # noqa: ANN401 - as of an Option
    """Return an option that fills in a field, and takes from it what is not said here.

    Parameters
    ----------
    flags
        As ``-g/--node-group=group``: behind ``=`` the field, where it has not the name
        of the long form.
    more
        What is different from the field, as of :class:`Option`.
    """
    written, _, field = flags.partition("=")
    said: dict[str, Any] = {"help": "", "dest": field, "field": True, **more}
    return Option(tuple(written.split("/")), **said)


def fills(*flags: str) -> tuple[Option, ...]:
    """Return options that fill in fields, written as :func:`fill` takes them.

    Parameters
    ----------
    flags
        Of one option or of several, with blanks between them.

    >>> [option.name for option in fills("-s/--size -g/--node-group=group")]
    ['size', 'group']
    """
    return tuple(fill(one) for text in flags for one in text.split())


def claim(flags: str) -> Option:
    """Return an option that takes yes or no; yes when it is given alone."""
    return fill(
        flags, metavar="yes|no", convert=truth, choices=("yes", "no"), bare="yes"
    )


def told(command: Command) -> Command:
    """Return a command whose options say what the fields say that they fill in."""
    if not command.operation:
        return command
    known = _declared()[command.operation]
    taken = (one if one.help else _of(one, known[name]) for name, one in command.named)
    return command._replace(options=tuple(taken))


_READ: dict[str, tuple[str, Callable[[str], Any]]] = {
    "MiB": ("SIZE", parse_size),
    "MiB/s": ("SIZE", parse_rate),
    "s": ("SECONDS", seconds),
    "dict[str, Any]": ("KEY=VALUE,...", key_values),
    "dict[str, dict[str, Any]]": ("NAME:KEY=VALUE,...", ident_key_values),
    "tuple[str, ...]": ("", names),
    "list[int | str]": ("", names),
}
"""What stands for a value, and what reads it, by a field's unit or type."""
_EXAMPLES = {"MiB": "512M, 10G", "MiB/s": "50M, 1G"}


def _of(option: Option, field: Mapping[str, Any]) -> Option:
    """Return an option with what its field says, where it says nothing itself."""
    if field["type"] != "bool":
        option = _typed(option, field)
    return option._replace(help=_help(option, field))


def _typed(option: Option, field: Mapping[str, Any]) -> Option:
    """Return an option that takes values of its field's type."""
    kind = field.get("unit", field["type"])
    metavar, convert = _READ.get(kind, ("", str))
    word = option.flags[-1].rpartition("-")[2].upper()
    if kind == "int":
        metavar, convert = "N", _whole(field)
    elif option.repeats:  # it takes one at a time
        convert = str
    elif convert is names:
        word = f"{word.removesuffix('S')},..."
    option = option._replace(
        metavar=option.metavar or metavar or word,
        choices=option.choices or tuple(field.get("choices", ())),
    )
    if option.convert is not str:
        return option
    if convert is ident_key_values:
        option = option._replace(repeats=True, join=nested)
    return option._replace(convert=convert)


def _whole(field: Mapping[str, Any]) -> Callable[[str], int]:
    """Return what reads a whole number of a field's range."""

    def convert(text: str) -> int:
        if not is_whole(text):
            raise ValueError(text)
        value, least, most = int(text), field.get("least"), field.get("most")
        if (least is not None and value < least) or (most is not None and value > most):
            raise ValueError(text)
        return value

    return convert


def _help(option: Option, field: Mapping[str, Any]) -> str:
    """Return a field's words as the help of an option: no sentence, but a line.

    What is so where a switch is given needs no "whether".
    """
    said = field["words"].replace("`", "").removesuffix(".").removeprefix("Whether ")
    first = said.split()[0]
    said = said if first[1:] != first[1:].lower() else said[0].lower() + said[1:]
    more = _EXAMPLES.get(field.get("unit", ""), "")
    if any(word not in said for word in option.choices) and not option.bare:
        *early, last = option.choices
        more = f"{', '.join(early)} or {last}"
    said = f"{said} ({more})" if more else said
    return f"{said}; may be repeated" if option.repeats else said
