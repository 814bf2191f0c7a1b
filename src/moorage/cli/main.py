# SPDX-License-Identifier: BSD-2-Clause
"""The way through a program: find the command, parse, carry out, say what went wrong.

Exit status: 0 done, 1 refused or failed, 14 a list was asked for unknown fields,
130 interrupted.
"""

import os
import sys
from collections.abc import Sequence
from typing import TextIO

from moorage import __version__
from moorage.errors import Failed, MoorageError, NotFound, NotSupported

from .declaration import Command, Finished, Program, Usage
from .terminal import Terminal

INTERRUPTED = 130
DESTROYS = frozenset({"remove", "destroy", "down", "shutdown", "reinstall"})
"""Commands that are never suggested, and for which nothing is."""


def run(
    program: Program,
    argv: Sequence[str] | None = None,
    terminal: Terminal | None = None,
) -> int:
    """Carry out a command line; return the exit status."""
    terminal = terminal or Terminal.standard()
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        status = _dispatch(program, words, terminal)
        terminal.out.flush()
    except Finished as finished:
        status = finished.status
    except MoorageError as error:
        _show(error, terminal)
        status = 1
    except KeyboardInterrupt:
        terminal.talk("")
        status = INTERRUPTED
    except BrokenPipeError:
        status = _deaf()
    except OSError as error:
        status = _system(error, terminal)
    except Exception as error:  # noqa: BLE001 - the one blanket handler here
        status = _defect(error, terminal)
    _let_go(terminal)
    return status


def _show(error: MoorageError, terminal: Terminal) -> None:
    from .errors import show  # noqa: PLC0415 - start-up time

    show(error, terminal)


def _dispatch(program: Program, words: list[str], terminal: Terminal) -> int:
    if not words:
        terminal.talk(_help(program, words))
        return 1
    name, *rest = words
    if name in ("-h", "--help", "help"):
        terminal.print(_help(program, rest))
        return 0
    if program.within(name).verbs and rest[:1] in (["-h"], ["--help"]):
        terminal.print(_help(program, words))
        return 0
    if name == "--version":
        terminal.print(f"{program.name} (moorage) {__version__}")
        return 0
    command, rest = _found(program, words)
    return _carry_out(program, command, rest, terminal)


def _help(program: Program, words: list[str]) -> str:
    """Return the help of a program, or of the command that is named after ``help``."""
    from .help import command_help, program_help  # noqa: PLC0415 - start-up time

    if not words or words[0].startswith("-"):
        return program_help(program)
    within = program.within(words[0])
    if within.verbs and (len(words) == 1 or words[1].startswith("-")):
        return program_help(within)
    command, _ = _found(program, words)
    return command_help(program, command)


def _found(program: Program, words: list[str]) -> tuple[Command, list[str]]:
    """Return the command that some words begin with, of one word or two, and the rest.

    Raises
    ------
    Usage
        If there is none.
    """
    command, rest = program.command(words)
    if command:
        return command, rest
    within = program.within(words[0])
    if not within.verbs:
        raise _unknown_command(program, words[0])
    if not words[1:]:
        raise Usage(f"{within.name} needs a command", hint=f"{within.name} --help")
    raise _unknown_command(within, words[1])


def _carry_out(
    program: Program, command: Command, words: list[str], terminal: Terminal
) -> int:
    from .arguments import parse  # noqa: PLC0415 - start-up time
    from .command import Call  # noqa: PLC0415 - start-up time
    from .environment import default_arguments  # noqa: PLC0415 - start-up time

    preset = default_arguments(program.name, command.name, terminal.environ)
    options = parse(f"{program.name} {command.name}", command, [*preset, *words])
    if options.wants_help:
        terminal.print(_help(program, command.name.split()))
        return 0
    if command.here and terminal.environ.get("MOORAGE_URL"):
        raise NotSupported(
            f"{program.name} {command.name} does not work over MOORAGE_URL: "
            f"{command.here}"
        )
    call = Call(program, command, options, terminal)
    try:
        return command.handler(call) or 0
    except NotFound as error:
        if command.verb in DESTROYS and error.hint.startswith("did you mean"):
            error.hint = ""  # what is alike must not be destroyed for it
        raise
    finally:
        if "client" in vars(call):
            call.client.close()


def _unknown_command(program: Program, name: str) -> Usage:
    from .arguments import close  # noqa: PLC0415 - start-up time

    kept = [verb for verb in program.verbs if verb.last not in DESTROYS]
    known = [name for verb in kept for name in verb.names]
    if name in program.absent:
        return Usage(f"there is no {program.name} {name} here: {program.absent[name]}")
    hint = close(name, known, program.name)
    return Usage(f"{program.name} has no command '{name}'", hint=hint)


def _deaf() -> int:
    """End in silence: nobody can be given the output."""
    _mute(sys.stdout)
    return 1


def _let_go(terminal: Terminal) -> None:
    """Let go of what could not be said, in a log on a full disk, say.

    Python would try again at the end, and call it a failure of the program's.
    """
    try:
        terminal.err.flush()
    except OSError:
        _mute(sys.stderr)


def _mute(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _system(error: OSError, terminal: Terminal) -> int:
    """Say what this machine refused: a full disk, a file of somebody else's."""
    if terminal.environ.get("MOORAGE_DEBUG"):
        raise error
    where = f"{error.filename}: " if error.filename else ""
    _show(Failed(f"{where}{error.strerror or error}"), terminal)
    try:
        terminal.out.flush()
    except OSError:  # said already; Python would try again, and complain
        return _deaf()
    return 1


def _defect(error: Exception, terminal: Terminal) -> int:
    """Say that this is our fault; the trace is for those who ask for it."""
    from .errors import defect  # noqa: PLC0415 - rare

    first, *rest = defect(error, terminal.environ)
    terminal.talk(first, red=True)
    for line in rest:
        terminal.talk(line)
    return 1
