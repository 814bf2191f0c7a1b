# SPDX-License-Identifier: BSD-2-Clause
"""What a program offers, as data: parsing, help and completion derive from it.

* Program ``gnt-disk``
  + Verb and command ``attach``
    - Operand ``DISK``, ``INSTANCE``
    - Option ``--index``
* Program ``hbal``, whose one command has no name
  + Option ``--text-data``
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple, Protocol

from moorage.errors import BadInput

Options = SimpleNamespace
"""Values of the options of a call, by their names."""


class Usage(BadInput):
    """The command line does not fit the command; nothing was even asked."""


class Finished(Exception):
    """The command has said all it had to say, before its handler's end."""

    def __init__(self, status: int = 0) -> None:
        super().__init__(status)
        self.status = status


_NODES = frozenset({"NODE", "A[:B]"})
"""What stands for nodes: a script's empty variable is none, and not any."""


class Option(NamedTuple):
    """An option of a command.

    Attributes
    ----------
    flags
        How it is written, the long form last.
    help
        What it does, in one line; what its field says when empty.
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
    glued
        Whether its value, if any, is glued to it (``-Cplan.sh``, ``--luxi=SOCKET``);
        `bare` stands for it where there is none.
    counts
        Whether the value of a switch is how often it is given.
    dest
        Name of the value, and of the opcode's field that it fills in; the long form's
        when empty.
    pair
        Whether it takes two words, as ``--add-pool NAME PROVIDER``; `convert` is
        handed ``NAME=PROVIDER``.
    moot
        Whether it is Ganeti's and asks for what is so here in any case.
    refused
        Why there is no such thing here: who types it reads this. Empty for an option
        that there is.
    field
        Whether it fills in the opcode's field that has its name; else the command
        itself reads it.
    value
        Value of a switch that is given.
    join
        Makes one value of all that were given to an option that repeats.
    """

    flags: tuple[str, ...]
    help: str
    metavar: str = ""
    convert: Callable[[str], Any] = str
    default: Any = None
    repeats: bool = False
    choices: tuple[str, ...] = ()
    bare: str = ""
    glued: bool = False
    counts: bool = False
    dest: str = ""
    pair: bool = False
    moot: bool = False
    refused: str = ""
    field: bool = False
    value: object = True
    join: Callable[[list[Any]], Any] | None = None

    @property
    def name(self) -> str:
        """Name of the attribute that holds the value."""
        return self.dest or self.flags[-1].lstrip("-").replace("-", "_")

    def is_given(self, value: object) -> bool:
        """Whether a value is one that was given, and says something."""
        if not self.metavar:
            return value == self.value
        return bool(value) if self.repeats else value not in (None, {})

    def read(self, text: str) -> Any:  # noqa: ANN401 - what `convert` makes
        """Return the value that a text stands for.

        Raises
        ------
        BadInput
            If it is none; the sentence begins with the option.
        """
        flag = self.flags[-1]
        if self.choices and text not in self.choices:
            raise self.misfit(text)
        if not text and self.metavar in _NODES:
            raise Usage(f"{flag} names no node: what it was given is empty")
        try:
            return self.convert(text)
        except BadInput as error:
            raise BadInput(f"{flag}: {error.message}", hint=error.hint) from error
        except ValueError as error:
            raise Usage(f"{flag} does not take '{text}'") from error

    def misfit(self, text: str) -> Usage:
        """Return what is said of a word that is none of the choices."""
        choices = ", ".join(self.choices)
        return Usage(f"{self.flags[-1]} is one of {choices}, not '{text}'")


class Operand(NamedTuple):
    """Words that are not options.

    Attributes
    ----------
    least, most
        How many; `most` is None when there is no end.
    field
        Name of the opcode's field that they fill in; empty where the command itself
        reads them.
    convert
        Makes the field of a word; may raise `BadInput`.
    """

    name: str
    least: int = 1
    most: int | None = 1
    field: str = ""
    convert: Callable[[str], Any] = str

    @property
    def usage(self) -> str:
        """How it is shown in a line of usage."""
        shown = self.name if self.least else f"[{self.name}]"
        return shown if self.most == 1 else f"{shown}..."


class Handler(Protocol):
    """Carries a command out."""

    def __call__(self, call: Any, /) -> int | None:  # noqa: ANN401 - as of a Command
        """Carry it out; return the exit status, or None for 0."""


class Command(NamedTuple):
    """A sub-command; without a name, the one thing that a program does.

    Attributes
    ----------
    name
        One word, or two: ``pool add`` is one of the commands on pools.
    handler
        Carries it out; returns the exit status, or None for 0. It is handed a
        :class:`~moorage.cli.command.Call`, or the `Options` where it has no name.
    examples
        Lines to type, and what each does.
    surplus
        Hint for who types a name more than it takes; empty where ``--help`` says it.
    operation
        The opcode that it carries out, if it is about one: options without help of
        their own take from its fields what they say.
    here
        Why it works on a machine of the cluster alone, the end of a sentence; empty for
        what asks the cluster, wherever that is.
    summary, aliases
        As of its `Verb`, where it has a name.
    """

    name: str
    handler: Handler
    operands: tuple[Operand, ...] = ()
    options: tuple[Option, ...] = ()
    examples: Mapping[str, str] = MappingProxyType({})
    surplus: str = ""
    operation: str = ""
    here: str = ""
    summary: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def verb(self) -> str:
        """What it does: the last word of its name."""
        return self.name.rpartition(" ")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that calls it."""
        return (self.name, *self.aliases)

    @property
    def named(self) -> list[tuple[str, Option]]:
        """Each option behind its name; several switches may be one name's."""
        return [(one.name, one) for one in self.options]

    def given(self, options: Options) -> dict[str, Any]:
        """Return the opcode's fields that options fill in, of those that were given."""
        filling = {name: one for name, one in self.named if one.field}
        values = {name: getattr(options, name) for name in filling}
        return {
            name: value
            for name, value in values.items()
            if filling[name].is_given(value)
        }


class Verb(NamedTuple):
    """What a program knows of a command before it is asked for.

    Attributes
    ----------
    name
        As of the `Command`.
    module
        Where the command is, below the program's package: one of its ``COMMANDS``.
    summary
        What it does, in one line.
    aliases
        Other names that call it.
    """

    name: str
    module: str
    summary: str
    aliases: tuple[str, ...] = ()

    @property
    def last(self) -> str:
        """The last word of its name, which says what is done."""
        return self.name.rpartition(" ")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that calls it."""
        return (self.name, *self.aliases)


class Program(NamedTuple):
    """A program of several commands, or of one without a name.

    Attributes
    ----------
    package
        Where the modules of its verbs are.
    verbs
        Its commands, each of which is loaded when it is asked for.
    absent
        Why a command of Ganeti's is not here, by its name: who types it reads this.
    only
        The command without a name, of a program that does one thing.
    """

    name: str
    summary: str
    package: str = ""
    verbs: tuple[Verb, ...] = ()
    absent: Mapping[str, str] = MappingProxyType({})
    only: Command | None = None

    @property
    def commands(self) -> tuple[Command, ...]:
        """Every command; all their modules are loaded."""
        return (self.only,) if self.only else tuple(map(self.load, self.verbs))

    def load(self, verb: Verb) -> Command:
        """Return the command of a verb; its module is loaded."""
        known: Sequence[Command]
        known = import_module(f"{self.package}.{verb.module}").COMMANDS
        found = next(command for command in known if command.name == verb.name)
        found = found._replace(summary=verb.summary, aliases=verb.aliases)
        if not found.operation:
            return found
        from .fields import told  # noqa: PLC0415 - it knows options

        return told(found)

    def find(self, name: str) -> Command | None:
        """Return the command of that name or alias, if any."""
        return next((self.load(v) for v in self.verbs if name in v.names), None)

    def command(self, words: Sequence[str]) -> tuple[Command | None, list[str]]:
        """Return the command that words begin with, of two or of one, and the rest."""
        for count in (2, 1):
            found = self.find(" ".join(words[:count]))
            if found:
                return found, list(words[count:])
        return None, list(words)

    def within(self, word: str) -> "Program":
        """Return the verbs whose names begin with a word, for a help of their own.

        It has none if no name of two words begins so.
        """
        found = tuple(
            verb._replace(name=verb.last, aliases=())
            for verb in self.verbs
            if verb.name.startswith(f"{word} ")
        )
        return Program(f"{self.name} {word}", f"{word}s", verbs=found)
