# SPDX-License-Identifier: BSD-2-Clause

"""Write the manual pages of all programs from what they declare.

``python scripts/docs/manual.py DIR`` writes a page a program, as ``DIR/gnt-disk.8``.
"""

import sys
from collections.abc import Iterator

from declared import write

from moorage import __version__
from moorage.cli.command import Command, Option, Program, planners, programs
from moorage.cli.help import usage

_MACROS = (".", "'")


def pages() -> dict[str, str]:
    """Return the text of every page by the name of its file."""
    found = {f"{one.name}.8": _page(one, 8) for one in programs()}
    return found | {f"{one.name}.1": _page(one, 1) for one in planners()}


def _page(program: Program, section: int) -> str:
    lines = [
        f'.TH {program.name.upper()} {section} "" "moorage {__version__}"',
        ".SH NAME",
        _text(f"{program.name} - {program.summary.rstrip('.')}"),
        ".SH SYNOPSIS",
        *_synopsis(program),
    ]
    if not _is_alone(program):
        lines += [".SH COMMANDS"]
    for command in program.commands:
        lines += _command(command)
    lines += [".SH EXIT STATUS", _EXIT, ".SH SEE ALSO", *_see_also(program.name)]
    return "\n".join(lines) + "\n"


_EXIT = (
    "0 when it is done, 1 when it was refused or failed, 130 when it was interrupted."
)


def _is_alone(program: Program) -> bool:
    """Whether a program does one thing, and has no commands with names."""
    return any(not command.name for command in program.commands)


def _synopsis(program: Program) -> Iterator[str]:
    alone = _is_alone(program)
    operands = [one.usage for one in program.commands[0].operands] if alone else []
    rest = [*operands] if alone else ["[NAME]..."]
    words = [*([] if alone else ["COMMAND"]), "[OPTION]...", *rest]
    yield f".B {_text(program.name)}"
    yield _text(" ".join(words))


def _command(command: Command) -> Iterator[str]:
    if command.name:
        operands = " ".join(one.usage for one in command.operands)
        yield f'.SS "{_text(", ".join(command.names))} {_text(operands)}"'
    else:
        yield ".SH DESCRIPTION"
    yield _text(f"{command.summary[:1].upper()}{command.summary[1:]}.")
    for option in command.options:
        yield from _option(option)
    for line, does in command.examples.items():
        yield from (".PP", f"{_text(does)}:", ".PP", ".nf", f"    {_text(line)}", ".fi")


def _option(option: Option) -> Iterator[str]:
    yield ".TP"
    yield f"\\fB{_text(usage(option))}\\fR"
    choices = f" ({', '.join(option.choices)})" if option.choices else ""
    yield _text(f"{option.help}{choices}")


def _see_also(name: str) -> Iterator[str]:
    others = [f"{one.name}(8)" for one in programs()]
    others += [f"{one.name}(1)" for one in planners()]
    yield _text(", ".join(other for other in others if other[:-3] != name) + ".")
    yield ".PP"
    yield _text("The documentation is in /usr/share/doc/moorage-doc.")


def _text(text: str) -> str:
    """Return text as troff reads it: dashes to type, and no line that is a macro."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{text}" if text.startswith(_MACROS) else text


if __name__ == "__main__":
    write(pages(), *sys.argv[1:])
