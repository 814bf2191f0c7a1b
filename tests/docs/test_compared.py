# SPDX-License-Identifier: BSD-2-Clause
"""The page that compares with Ganeti's commands names all of them, and is true."""

from collections import Counter
from importlib import import_module
from io import StringIO

import compared
import pytest

from moorage.cli.command import Program, programs
from moorage.cli.main import run
from moorage.cli.terminal import Terminal

EVERY = compared.compared()
ABSENT = [(one, name, why) for one in programs() for name, why in one.absent.items()]
REFUSED = [
    (one.told, fate)
    for one in EVERY
    for fate in one.fates
    if one.here and fate.what == compared.REFUSED
]


def typed(program: Program, *words: str) -> tuple[int, str]:
    said = StringIO()
    terminal = Terminal(StringIO(), said, StringIO(), {})
    return run(program, words, terminal), said.getvalue()


def program_of(name: str) -> Program:
    program: Program = import_module(f"moorage.cli.{name.replace('-', '_')}").PROGRAM
    return program


def test_all_of_ganetis_commands_and_options_are_compared() -> None:
    fates = Counter(fate.what for one in EVERY for fate in one.fates)
    assert (len(EVERY), fates.total()) == (131, 792)


def test_most_of_them_work() -> None:
    fates = Counter(fate.what for one in EVERY for fate in one.fates)
    assert sum(one.here for one in EVERY) >= 110
    assert fates[compared.WORKS] >= 500


def test_the_page_has_a_line_for_each() -> None:
    page = "\n".join(compared.comparison())
    sections = dict(part.split("\n", 1) for part in page.split("## ")[1:])
    for one in EVERY:
        name = f"`{one.told.name}`"
        lines = [x for x in sections[one.told.program].splitlines() if name in x]
        assert any(line.startswith(f"| {name} |") for line in lines)
        words = [f"`{'/'.join(fate.flags)}`" for fate in one.fates if one.here]
        assert [w for w in words if not any(w in line for line in lines)] == []


@pytest.mark.parametrize(("told", "fate"), REFUSED)
def test_what_is_refused_says_why(told: compared.Told, fate: compared.Fate) -> None:
    words = (told.name, fate.flags[-1], "1", "web1")
    status, said = typed(program_of(told.program), *words)
    assert status == 1
    assert f"{fate.flags[-1]} is not supported: {fate.why}" in " ".join(said.split())


@pytest.mark.parametrize(("program", "name", "why"), ABSENT)
def test_a_command_that_is_left_out_says_why(
    program: Program, name: str, why: str
) -> None:
    assert program.find(name) is None
    status, said = typed(program, name)
    assert (status, why in " ".join(said.split())) == (1, True)
