# SPDX-License-Identifier: BSD-2-Clause
"""What a program offers, as data: parsing, help and completion derive from it.

* Program ``gnt-disk``
  + Command ``attach``
    - Operand ``DISK``, ``INSTANCE``
    - Option ``--index``
"""

import argparse
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple

from moorage.api.luxi import LuxiClient
from moorage.errors import BadInput

from .environment import socket_path
from .terminal import Terminal


class Option(NamedTuple):
    """An option of a command.

    Attributes
    ----------
    flags
        How it is written, the long form last.
    help
        What it does, in one line.
    metavar
        What stands for its value; empty for a switch.
    convert
        Makes the value of the text; may raise `BadInput`.
    repeats
        Whether it may be given several times; its value is then a list.
    choices
        The words that it takes; any when empty.
    bare
        Value of the option when it is given without one of its choices.
    dest
        Name of the value; the long form's when empty.
    moot
        Whether it is Ganeti's and asks for what is so here in any case.
    """

    flags: tuple[str, ...]
    help: str
    metavar: str = ""
    convert: Callable[[str], Any] = str
    default: Any = None
    repeats: bool = False
    choices: tuple[str, ...] = ()
    bare: str = ""
    dest: str = ""
    moot: bool = False

    @property
    def name(self) -> str:
        """Name of the attribute that holds the value."""
        return self.dest or self.flags[-1].lstrip("-").replace("-", "_")


class Operand(NamedTuple):
    """Words that are not options.

    Attributes
    ----------
    least, most
        How many; `most` is None when there is no end.
    """

    name: str
    least: int = 1
    most: int | None = 1

    @property
    def usage(self) -> str:
        """How it is shown in a line of usage."""
        shown = self.name if self.least else f"[{self.name}]"
        return shown if self.most == 1 else f"{shown}..."


class Example(NamedTuple):
    """A line to type, and what it does."""

    line: str
    does: str


class Command(NamedTuple):
    """A sub-command.

    Attributes
    ----------
    handler
        Carries it out; returns the exit status.
    """

    name: str
    handler: "Callable[[Call], int]"
    summary: str
    operands: tuple[Operand, ...] = ()
    options: tuple[Option, ...] = ()
    aliases: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that calls it."""
        return (self.name, *self.aliases)


class Program(NamedTuple):
    """A program of several commands."""

    name: str
    summary: str
    commands: tuple[Command, ...]

    def find(self, name: str) -> Command | None:
        """Return the command of that name or alias, if any."""
        found = (command for command in self.commands if name in command.names)
        return next(found, None)


PROGRAMS = (
    "moorage",
    "gnt_cluster",
    "gnt_node",
    "gnt_group",
    "gnt_instance",
    "gnt_disk",
    "gnt_storage",
    "gnt_job",
    "gnt_os",
    "gnt_debug",
)
"""The modules of the programs that are declared so, in the order of the reference."""


def programs() -> list[Program]:
    """Return every program that is declared so; all their modules are loaded."""
    return [import_module(f"moorage.cli.{name}").PROGRAM for name in PROGRAMS]


class Finished(Exception):
    """The command has said all it had to say, before its handler's end."""

    def __init__(self, status: int = 0) -> None:
        super().__init__(status)
        self.status = status


class Call:
    """One call of a command.

    Attributes
    ----------
    options
        Values of the options, by their names.
    words
        The operands, in order.
    """

    def __init__(
        self,
        program: Program,
        command: Command,
        options: argparse.Namespace,
        terminal: Terminal,
    ) -> None:
        self.program = program
        self.command = command
        self.options = options
        self.words: list[str] = options.words
        self.terminal = terminal

    @cached_property
    def client(self) -> LuxiClient:
        """The connection to the master."""
        return LuxiClient(socket_path(self.terminal.environ))

    def option(self, name: str, default: Any = None) -> Any:  # noqa: ANN401
        """Return an option's value; the default for one the command does not have."""
        return getattr(self.options, name, default)

    def given(self, **names: str) -> dict[str, Any]:
        """Return the options that were given, by the names of opcode fields.

        Parameters
        ----------
        names
            Name of the option by name of the field.
        """
        values = {field: self.option(option) for field, option in names.items()}
        return {field: value for field, value in values.items() if value is not None}

    def ask(self, question: str) -> None:
        """Go on only if a person agrees, or said so with an option.

        Raises
        ------
        Finished
            If the answer is no.
        BadInput
            If nobody is there to answer.
        """
        if self.option("force") or self.option("yes") or self.option("dry_run"):
            return
        if self.option("no_input") or not self.terminal.answers:
            flags = [flag for option in self.command.options for flag in option.flags]
            raise BadInput(
                f"nobody is here to be asked: {question}",
                hint=f"add {'-f' if '-f' in flags else '--yes'} to go on",
            )
        if not self.terminal.confirms(question):
            raise Finished(1)

    def warn(self, question: str) -> None:
        """Ask as :meth:`ask` does; where nobody is there to answer, go on.

        For what Ganeti does without a question, so that scripts need no option more.
        """
        if self.terminal.answers:
            self.ask(question)
