# SPDX-License-Identifier: BSD-2-Clause
"""Parts of the reference: programs, their commands and options."""

from collections.abc import Sequence

from declared import Lines, code, table

from moorage.cli import options
from moorage.cli.command import Command, Option, Program, planners
from moorage.cli.command import programs as programs_of_commands
from moorage.cli.help import usage
from moorage.cli.htools import declared


def every_program() -> list[Program]:
    """Return every program that is declared, the planner's last."""
    return [*programs_of_commands(), *planners()]


def programs() -> Lines:
    """Yield a line a program."""
    for program in every_program():
        yield f"- [`{program.name}`](#{program.name}): {program.summary.rstrip('.')}"


def commands() -> Lines:
    """Yield every command of every program, with examples and options."""
    for program in every_program():
        yield from _program(program)


def _program(program: Program) -> Lines:
    yield f"## {program.name}"
    yield ""
    yield f"{program.summary[:1].upper()}{program.summary[1:].rstrip('.')}."
    yield ""
    for command in program.commands:
        yield from _command(program, command)


def _command(program: Program, command: Command) -> Lines:
    if command.name:
        yield f"### {program.name} {command.name}"
        yield ""
        yield f"{command.summary[:1].upper()}{command.summary[1:].rstrip('.')}."
        yield ""
    operands = "".join(f" {operand.usage}" for operand in command.operands)
    yield from (
        "```text",
        f"{' '.join(filter(None, (program.name, command.name)))} [OPTION]...{operands}",
        "```",
    )
    yield ""
    if command.here:
        yield f"Not over `MOORAGE_URL`: {command.here}."
        yield ""
    if command.aliases:
        yield f"Also called: {', '.join(map(code, command.aliases))}."
        yield ""
    if command.examples:
        rows = [[code(line), does] for line, does in command.examples.items()]
        yield from table(("example", "what it does"), rows)
    own, common = _split(command.options)
    yield from options_of(own)
    if common:
        yield f"And {' and '.join(common)}."
        yield ""


def _split(given: tuple[Option, ...]) -> tuple[list[Option], list[str]]:
    """Return a command's own options, and links to the common ones that it has."""
    own, common = [option for option in given if not option.refused], []
    for group, link in (
        (options.ASKING, "the [options of questions](#options-of-questions)"),
        (options.JOB, "the [options of jobs](#options-of-jobs)"),
        (declared.SOURCES, "the [sources of a cluster](#sources-of-a-cluster)"),
        (declared.BALANCING, "the [limits of balancing](#limits-of-balancing)"),
        (declared.ASKED, "the [questions about the program](#about-the-program)"),
    ):
        shared = set(map(_words, group))
        if shared <= set(map(_words, own)):
            own = [option for option in own if _words(option) not in shared]
            common.append(link)
    return own, common


def _words(option: Option) -> tuple[tuple[str, ...], str]:
    return option.flags, option.help


def options_of(given: Sequence[Option]) -> Lines:
    """Yield a table of some options."""
    if given:
        rows = [[code(usage(one)), _meaning(one)] for one in given]
        yield from table(("option", "meaning"), rows)


def _meaning(option: Option) -> str:
    told = option.help
    if option.choices and option.choices[0] not in told:
        told += f"; one of {', '.join(map(code, option.choices))}"
    if option.repeats and "repeat" not in told:
        told += "; may be repeated"
    return told
