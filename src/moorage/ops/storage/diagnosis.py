# SPDX-License-Identifier: BSD-2-Clause
"""What the two diagnoses share: whom to ask, and answers by node."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

from msgspec import Struct

from moorage.errors import BadInput, MoorageError
from moorage.jobs import Ask, Operation, Question, View
from moorage.model import Os, Provider, nice
from moorage.model.values import Value
from moorage.protocol import Verb

T = TypeVar("T", Provider, Os)
Entry = list[str | bool | int | list[str] | list[int] | list[list[str]] | None]
"""What a node has of a name: path, whether it is valid, why not, and more."""
Cell = (
    str
    | bool
    | list[int]
    | list[str]
    | list[list[str]]
    | dict[str, bool]
    | dict[str, Entry]
    | dict[str, list[Entry]]
    | dict[str, dict[str, Value]]
    | None
)
Rows = list[list[Cell]]
"""A row an object, a cell for each of ``output_fields``."""


class Answers(Struct, Generic[T], frozen=True):
    """What the nodes of a cluster said.

    Attributes
    ----------
    found
        All that each node has, in the order of its search path.
    silent
        Why a node said nothing.
    """

    found: dict[str, list[T]]
    silent: dict[str, str]

    def names(self, wanted: Sequence[str]) -> list[str]:
        """Return the names that any node knows, those that are wanted; all if none."""
        known = {one.name for entries in self.found.values() for one in entries}
        return sorted((n for n in known if not wanted or n in wanted), key=nice)

    def entries(self, name: str) -> dict[str, list[T]]:
        """Return what each node has by one name; nothing is an empty list."""
        return {
            node: [one for one in entries if one.name == name]
            for node, entries in self.found.items()
        }

    def status(
        self, name: str, shown: Callable[[T], Entry], unknown: Entry
    ) -> dict[str, list[Entry]]:
        """Return the entries of each node as diagnoses show them.

        A node that said nothing has one invalid entry that says why, and ends with what
        stands for the rest.
        """
        known = {
            node: [shown(one) for one in entries]
            for node, entries in self.entries(name).items()
        }
        lost: dict[str, list[Entry]] = {
            node: [["", False, why, *unknown]] for node, why in self.silent.items()
        }
        return known | lost


def collect(view: View, question: Callable[[str], Ask[list[T]]]) -> Answers[T]:
    """Return what the nodes answered to a question."""
    found: dict[str, list[T]] = {}
    silent: dict[str, str] = {}
    for node in view.config.hosts():
        try:
            found[node.name] = view.answer(question(node.uuid)) or []
        except MoorageError as error:
            silent[node.name] = f"no answer: {error.message}"
    return Answers(found, silent)


def pairs(parameters: Mapping[str, str]) -> list[list[str]]:
    """Return name and description of parameters, sorted."""
    return [[name, parameters[name]] for name in sorted(parameters)]


def rows(
    columns: Mapping[str, Callable[[str], Cell]],
    wanted: Sequence[str],
    of: Iterable[str],
) -> Rows:
    """Return the wanted columns of some names."""
    return [[columns[column](name) for column in wanted] for name in of]


def check_columns(columns: Iterable[str], wanted: Iterable[str]) -> None:
    """Raise `BadInput` if there is no such column."""
    known = list(columns)
    for column in wanted:
        if column not in known:
            raise BadInput(
                f"there is no column '{column}': there is {', '.join(sorted(known))}"
            )


class Diagnosis(Operation, frozen=True, kw_only=True):
    """An operation that looks at what every node has, and changes nothing.

    Attributes
    ----------
    output_fields
        Columns of the answer.
    names
        What to tell about; empty for all.
    """

    columns: ClassVar[tuple[str, ...]]
    ask: ClassVar[Verb[object]]

    output_fields: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def questions(self, view: View) -> Iterator[Question]:
        """Ask every node that is online and may run instances."""
        for node in view.config.hosts():
            yield Ask(node.uuid, self.ask)

    def check(self, _view: View) -> None:
        """Refuse columns that there are not."""
        check_columns(self.columns, self.output_fields)
