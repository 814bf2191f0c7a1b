# SPDX-License-Identifier: BSD-2-Clause
"""The way through a program of the planner: read the options, work, say what failed.

Errors and exit statuses are those of Ganeti's tools, where scripts look for them: 2
for what is no option, 1 for what cannot be done, 130 after ^C.
"""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any, Final

from moorage.cli.declaration import Command, Operand, Option, Options, Program
from moorage.cli.htools.declared import ASKED, COMPLETION, HELP, OURS
from moorage.cli.htools.getopt import Given, Misspelled, spelled
from moorage.cli.htools.values import one_line
from moorage.errors import BadInput, MoorageError

_INTERRUPTED: Final = 130
"""Exit status after ^C, as the shell counts."""
_MISSPELLED: Final = 2


def program(
    name: str,
    summary: str,
    options: tuple[Option, ...],
    examples: dict[str, str],
    operands: tuple[Operand, ...] = (),
) -> Program:
    """Return a program of one command; it answers ``--help`` and its like, too.

    What it does is loaded when it is done: ``run`` of the module of its name in
    :mod:`moorage.cli.htools.work`.
    """

    def handler(options: Options) -> int:
        return int(import_module(f"moorage.cli.htools.work.{name}").run(options))

    said = summary[0].upper() + summary[1:]
    every = (*options, *ASKED)
    only = Command("", handler, operands, every, examples, summary=said)
    return Program(name, summary, only=only)


def run(program: Program, argv: Sequence[str] | None = None) -> int:
    """Carry out a command line; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    (command,) = program.commands
    try:
        given, operands = spelled(command.options, OURS, words)
    except Misspelled as error:
        sys.stderr.write(f"Command line error: {error}\n\n{_help(program)}\n")
        return _MISSPELLED
    asked = next((option for option, _ in given if option in ASKED), None)

    def work() -> int:
        if asked:
            print(_answer(program, asked))
            return 0
        return command.handler(_values(program, given, operands, words)) or 0

    return _guarded(work)


def _values(
    program: Program, given: Given, operands: list[str], typed: list[str]
) -> Options:
    """Return the values of the options; ``words`` are the operands."""
    (command,) = program.commands
    values = {name: _unset(option) for name, option in command.named}
    for option, text in given:
        value = _read(option, text) if option.metavar else True
        if option.repeats:
            value = [*values[option.name], value]
        elif option.counts:
            value = values[option.name] + 1
        values[option.name] = value
    if operands and not command.operands:
        raise BadInput("This program doesn't take any arguments.")
    return Options(**values, words=operands, typed=typed)


def _read(option: Option, text: str) -> Any:  # noqa: ANN401 - of any type
    try:
        return option.read(text)
    except BadInput as error:
        error.message = one_line(error.message)
        raise


def _unset(option: Option) -> Any:  # noqa: ANN401 - of any type
    if option.repeats:
        return []
    if option.counts:
        return 0
    return option.default if option.metavar else False


def _answer(program: Program, option: Option) -> str:
    if option is HELP:
        return _help(program)
    if option is COMPLETION:
        from moorage.cli.htools.completion import lines  # noqa: PLC0415 - rare

        return "\n".join(lines(program))
    from moorage import __version__  # noqa: PLC0415 - start-up time

    return f"{program.name} (moorage) version {__version__}"


def _help(program: Program) -> str:
    from moorage.cli.help import command_help  # noqa: PLC0415 - start-up time

    return command_help(program, program.commands[0])


def _guarded(work: Callable[[], int]) -> int:
    """Run a program's work; an error is one sentence and exit status 1."""
    _take_any_letter()
    try:
        status = work()
        _flush()
    except MoorageError as error:
        _flush()
        hint = f"hint: {error.hint}\n" if error.hint else ""
        sys.stderr.write(f"Error: {error.message}\n{hint}")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted\n")
        return _INTERRUPTED
    except MemoryError:
        sys.stderr.write("Error: there is not enough memory for this\n")
        return 1
    except OSError as error:
        return _unwritten(error)
    except Exception as error:  # noqa: BLE001 - whatever nobody thought of
        from moorage.cli.errors import defect  # noqa: PLC0415 - rare

        _flush()
        sys.stderr.write("".join(f"{line}\n" for line in defect(error, os.environ)))
        return 1
    return status


def _flush() -> None:
    """Write what was printed; there may be no output at all."""
    print(end="", flush=True)


def _take_any_letter() -> None:
    """Let output hold names with letters that the terminal has not."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _unwritten(error: OSError) -> int:
    """Say that the output cannot be written; silently where nobody reads it."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - Path costs start-up time
        # The end of the program must not try once more to write it.
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    if not isinstance(error, BrokenPipeError):
        sys.stderr.write(f"Error: cannot write the output: {error.strerror}\n")
    return 1
