# SPDX-License-Identifier: BSD-2-Clause
"""Help, derived from the declaration of the commands: examples first."""

from collections.abc import Iterator
from textwrap import wrap

from .declaration import Command, Option, Program

_WIDTH = 80
_INDENT = 26


def program_help(program: Program) -> str:
    """Return what ``gnt-disk --help`` prints."""
    lines = [f"{program.name}: {program.summary}", ""]
    lines += [f"Usage: {program.name} COMMAND [OPTION]... [NAME]...", "", "Commands:"]
    for verb in program.verbs:
        lines += _entry(", ".join(verb.names), verb.summary)
    lines += ["", f"{program.name} COMMAND --help tells more of one."]
    return "\n".join(lines)


def command_help(program: Program, command: Command) -> str:
    """Return what ``gnt-disk attach --help`` prints."""
    words = [program.name, *filter(None, [command.name]), "[OPTION]..."]
    words += [operand.usage for operand in command.operands]
    lines = [f"Usage: {' '.join(words)}", "", f"{command.summary}."]
    if command.examples:
        lines += ["", "Examples:"]
    for line, does in command.examples.items():
        lines += [f"  {line}", f"      {does}"]
    lines += ["", "Options:"]
    for option in command.options:
        if not option.refused:
            lines += _entry(usage(option), option.help)
    if not any("--help" in option.flags for option in command.options):
        lines += _entry("-h, --help", "show this")
    return "\n".join(lines)


def usage(option: Option) -> str:
    """Return how an option is written, with what stands for its value."""
    flags = ", ".join(option.flags)
    if not option.metavar:
        return flags
    if option.glued:
        return f"{flags}[={option.metavar}]"
    return f"{flags} [{option.metavar}]" if option.bare else f"{flags} {option.metavar}"


def _entry(name: str, text: str) -> Iterator[str]:
    """Yield a name and what it means, in two columns of 80 characters."""
    lines = wrap(text, _WIDTH - _INDENT)
    if len(name) > _INDENT - 4:
        yield f"  {name}"
    else:
        yield f"  {name:{_INDENT - 2}}{lines.pop(0)}"
    yield from (" " * _INDENT + line for line in lines)
