# SPDX-License-Identifier: BSD-2-Clause
"""The programs, and one call of a command."""

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

from moorage.client import Client, Socket
from moorage.errors import BadInput

from .declaration import Command, Finished, Operand, Option, Options, Program
from .environment import agent_socket, connected, place, socket_path
from .table import NORMAL, Cell
from .terminal import Terminal

if TYPE_CHECKING:  # start-up time
    from moorage.api.luxi import LuxiClient

PROGRAMS = (
    "moorage",
    "gnt_cluster",
    "gnt_node",
    "gnt_group",
    "gnt_instance",
    "gnt_network",
    "gnt_disk",
    "gnt_storage",
    "gnt_backup",
    "gnt_job",
    "gnt_os",
    "gnt_filter",
    "gnt_debug",
)
"""The modules of the programs that have commands, in the order of the reference."""

PLANNERS = ("hail", "hbal", "hcheck", "hinfo", "hroller", "hscan", "hspace", "hsqueeze")
"""Those of the planner's programs, which have one command without a name."""

__all__ = [
    "PLANNERS", "PROGRAMS", "Call", "Command", "Finished", "Operand",
    "Option", "Program", "planners", "programs",
]  # fmt: skip


def programs() -> list[Program]:
    """Return every program that has commands; all their modules are loaded."""
    return [import_module(f"moorage.cli.{name}").PROGRAM for name in PROGRAMS]


def planners() -> list[Program]:
    """Return every program of the planner; all their modules are loaded."""
    return [import_module(f"moorage.cli.htools.{name}").PROGRAM for name in PLANNERS]


def objects(
    fields: Sequence[str], rows: Sequence[Sequence[Cell]]
) -> list[dict[str, Any]]:
    """Return rows of cells as objects; a value that is missing is None."""
    cells = ([value if status == NORMAL else None for status, value in r] for r in rows)
    return [dict(zip(fields, row, strict=True)) for row in cells]


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
        self, program: Program, command: Command, options: Options, terminal: Terminal
    ) -> None:
        self.program = program
        self.command = command
        self.options = options
        self.words: list[str] = options.words
        self.terminal = terminal

    @property
    def prefix(self) -> str:
        """What stands before the last word of the command: ``gnt-storage pool``."""
        return f"{self.program.name} {self.command.name}".rpartition(" ")[0]

    @cached_property
    def client(self) -> Client:
        """The way to the cluster."""
        return connected(self.terminal.environ)

    @property
    def is_remote(self) -> bool:
        """Whether the cluster is asked over the network."""
        return not isinstance(place(self.terminal.environ), Socket)

    @property
    def socket(self) -> "LuxiClient":
        """A connection of its own to the master's socket, for lines to guests."""
        from moorage.api.luxi import LuxiClient  # noqa: PLC0415 - it is seldom asked

        environ = self.terminal.environ
        return LuxiClient(socket_path(environ), other=agent_socket(environ))

    def option(self, name: str) -> Any:  # noqa: ANN401
        """Return an option's value; None for one that the command does not have."""
        return getattr(self.options, name, None)

    @property
    def fields(self) -> dict[str, Any]:
        """The opcode's fields that operands and options fill in."""
        return {**self.named, **self.given}

    @property
    def named(self) -> dict[str, Any]:
        """The opcode's fields that operands fill in."""
        words, found = iter(self.words), {}
        for operand in self.command.operands:
            taken = list(map(operand.convert, islice(words, operand.most)))
            if operand.field and (taken or operand.most != 1):
                found[operand.field] = taken[0] if operand.most == 1 else taken
        return found

    @property
    def given(self) -> dict[str, Any]:
        """The opcode's fields that options fill in, of those that were given."""
        return self.command.given(self.options)

    def show(self, value: Any, lines: Iterable[str]) -> None:  # noqa: ANN401
        """Print a value for programs, or lines for people."""
        for line in [json.dumps(value, indent=2)] if self.option("json") else lines:
            self.terminal.print(line)

    def rows(
        self, resource: str, fields: Sequence[str], wanted: list[Any] | None = None
    ) -> list[dict[str, Any]]:
        """Return what the master answers to a query; missing values are None."""
        return objects(fields, self.client.query(resource, fields, wanted).rows)

    def look_up(
        self, resource: str, fields: Sequence[str], keys: Sequence[str] = ("name",)
    ) -> list[dict[str, Any]]:
        """Return the objects that the operands name, or all.

        The master raises `NotFound` for an operand that names none.
        """
        parts = [["==", key, word] for word in self.words for key in keys]
        return self.rows(resource, fields, ["|", *parts] if parts else None)

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
