# SPDX-License-Identifier: BSD-2-Clause

"""What became here of Ganeti's commands and options, as the programs declare it."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from declared import Lines, code, table

from moorage.cli.command import Command, Option, Program, programs

GANETI = Path(__file__).resolve().parent / "ganeti-3.0.2.txt"
WORKS, ACCEPTED, REFUSED, MISSING = "works", "accepted", "refused", "missing"
FATES = (WORKS, ACCEPTED, REFUSED, MISSING)
ABSENT = "its command is left out"


class Told(NamedTuple):
    """A command of Ganeti's: its other names, and the flags of its options."""

    program: str
    name: str
    aliases: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]


class Fate(NamedTuple):
    """What became of an option, and why it does not just work."""

    flags: tuple[str, ...]
    what: str
    why: str = ""


class Compared(NamedTuple):
    """A command of Ganeti's with what became of it here.

    Attributes
    ----------
    here
        Whether the command is there.
    why
        Why it is not; empty where nobody has said it.
    """

    told: Told
    here: bool
    why: str
    fates: tuple[Fate, ...]


def ganeti() -> Iterator[Told]:
    """Yield every command of Ganeti's."""
    program = ""
    for line in GANETI.read_text().splitlines()[1:]:
        if not line.startswith(" "):
            program = line
            continue
        head, _, flags = line.strip().partition(":")
        name, _, aliases = head.rstrip("]").partition(" [")
        options = tuple(tuple(one.split("/")) for one in flags.split())
        yield Told(program, name, tuple(aliases.split()), options)


def compared() -> list[Compared]:
    """Return every command of Ganeti's with what became of it."""
    known = {program.name: program for program in programs()}
    return [_compared(one, known.get(one.program)) for one in ganeti()]


def _compared(told: Told, program: Program | None) -> Compared:
    command = program.find(told.name) if program else None
    if command:
        return Compared(told, True, "", tuple(_fates(told, command)))
    why = program.absent.get(told.name, "") if program else ""
    left = REFUSED if why else MISSING
    fates = tuple(Fate(flags, left, ABSENT) for flags in told.options)
    return Compared(told, False, why, fates)


def _fates(told: Told, command: Command) -> Iterator[Fate]:
    for flags in told.options:
        option = _option(command, flags)
        if not option:
            yield Fate(flags, MISSING)
        elif option.refused:
            yield Fate(flags, REFUSED, option.refused)
        elif option.moot:
            yield Fate(flags, ACCEPTED, option.help.partition(": ")[2] or option.help)
        else:
            yield Fate(flags, WORKS)


def _option(command: Command, flags: tuple[str, ...]) -> Option | None:
    """Return the option that has all of some flags."""
    fitting = (one for one in command.options if set(flags) <= set(one.flags))
    return next(fitting, None)


def counts() -> Lines:
    """Yield how many there are of what, program by program."""
    every = compared()
    names = dict.fromkeys(one.told.program for one in every)
    rows = [_count(name, _of(name, every)) for name in names]
    rows.append(_count("", every, "all"))
    yield from table(("program", "commands", "options", *FATES), rows)


def _of(program: str, every: list[Compared]) -> list[Compared]:
    return [one for one in every if one.told.program == program]


def _count(name: str, rows: list[Compared], word: str = "") -> list[str]:
    fates = Counter(fate.what for one in rows for fate in one.fates)
    here = sum(one.here for one in rows)
    return [
        code(name) or word,
        f"{here} of {len(rows)}",
        str(fates.total()),
        *(str(fates[what]) for what in FATES),
    ]


def comparison() -> Lines:
    """Yield every command with its options, and what becomes of them."""
    every = compared()
    for name in dict.fromkeys(one.told.program for one in every):
        mine = _of(name, every)
        yield from (f"## {name}", "")
        rows = [[code(o.told.name), _state(o), _words(o, WORKS)] for o in mine]
        yield from table(("command", "here", "options that work"), rows)
        yield from _others(mine)


def _state(one: Compared) -> str:
    return "yes" if one.here else f"left out: {one.why}" if one.why else "missing"


def _words(one: Compared, what: str) -> str:
    return " ".join(code("/".join(f.flags)) for f in one.fates if f.what == what)


def _others(rows: list[Compared]) -> Lines:
    """Yield the options that do not just work, those of one reason together."""
    found: dict[Fate, list[str]] = {}
    for one in rows:
        for fate in one.fates if one.here else ():
            if fate.what != WORKS:
                found.setdefault(fate, []).append(code(one.told.name))
    order = sorted(found, key=lambda fate: (FATES.index(fate.what), fate.flags))
    lines = [
        [code("/".join(fate.flags)), ", ".join(found[fate]), fate.what, fate.why]
        for fate in order
    ]
    if lines:
        yield from table(("other option", "of", "what becomes of it", "why"), lines)
