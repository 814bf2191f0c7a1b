# SPDX-License-Identifier: BSD-2-Clause
"""Every hint in the source that names a command can be typed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import moorage
from moorage.cli.command import Command, Program, programs

SOURCE = Path(moorage.__file__).parent
LINE = re.compile(r"\b(gnt-[a-z]+|moorage(?= [a-z]))((?: (?!gnt-)[^\s;()]+)*)")
OPTION = re.compile("-[a-zA-Z]|--[a-z][a-z-]+")
VARIABLE = "VARIABLE"


def known() -> dict[str, Program]:
    return {program.name: program for program in programs()}


def flags_of(command: Command) -> set[str]:
    return {"-h", "--help", *(f for option in command.options for f in option.flags)}


def hints() -> Iterator[tuple[str, str]]:
    """Yield where a hint stands, and its text with a word for each variable."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                for value in _given(node):
                    where = f"{path.relative_to(SOURCE)}:{value.lineno}"
                    yield from ((where, text) for text in _texts(value))


def _given(call: ast.Call) -> Iterator[ast.expr]:
    yield from (one.value for one in call.keywords if one.arg == "hint")
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    if name == "Finding" and len(call.args) > 2:
        yield call.args[2]
    if name == "with_hint":
        yield from call.args


def _texts(value: ast.expr) -> Iterator[str]:
    """Yield the texts that an expression may be."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.JoinedStr):
        parts = (getattr(part, "value", None) for part in value.values)
        yield "".join(part if isinstance(part, str) else VARIABLE for part in parts)
    elif isinstance(value, ast.IfExp):
        yield from (*_texts(value.body), *_texts(value.orelse))


def wrong(text: str, programs: dict[str, Program]) -> Iterator[str]:
    """Yield what cannot be typed of a hint."""
    for name, rest in LINE.findall(text):
        words = rest.split()
        if VARIABLE in name or (words and VARIABLE in words[0]):
            continue
        if name not in programs:
            yield f"there is no {name}"
            continue
        words = [word.rstrip(",.:") for word in words]
        if not words or words[0] in ("", "--help", "COMMAND"):
            continue
        command, given = programs[name].command(words)
        if command is None:
            yield f"{name} has no command {words[0]}"
            continue
        flags = flags_of(command)
        for word in given:
            flag = word.partition("=")[0]
            if VARIABLE not in flag and OPTION.fullmatch(flag) and flag not in flags:
                yield f"{name} {command.name} has no option {flag}"


def test_every_hint_can_be_typed() -> None:
    programs, found = known(), list(hints())
    assert len(found) > 100
    assert sum(bool(LINE.search(text)) for _, text in found) > 60
    bad = [f"{at}: {why}" for at, text in found for why in wrong(text, programs)]
    assert not bad, "\n".join(bad)


def test_every_option_in_a_hint_is_one() -> None:
    every = {
        flag
        for program in known().values()
        for command in program.commands
        for flag in flags_of(command)
    }
    for at, text in hints():
        if at.startswith(("htools", "cli/htools", "ops/planning/placement", "guest")):
            continue  # the planner's own programs have options of their own
        for word in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text):
            assert word in every or not OPTION.fullmatch(word), f"{at}: {text}"


def test_what_cannot_be_typed_is_found() -> None:
    programs = known()
    for text in (
        "gnt-instance nosuch VARIABLE",
        "first: gnt-disk detach --nosuch x",
        "gnt-nosuch list",
    ):
        assert list(wrong(text, programs)), text
    assert not list(wrong("gnt-node modify --offline=no VARIABLE, then", programs))
