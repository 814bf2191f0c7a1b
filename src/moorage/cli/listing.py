# SPDX-License-Identifier: BSD-2-Clause
"""The two commands that every resource has: ``list`` and ``list-fields``."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from moorage.client import qfilter

from .command import Call, Command, Operand, Option, objects
from .options import DEBUG, JSON
from .table import NORMAL, UNAVAILABLE, Cell, Look, formats, table
from .yamlish import lines

UNKNOWN_FIELD = 14
_KINDS = {
    "text": "Text",
    "bool": "Boolean",
    "number": "Number",
    "float": "Floating-point number",
    "unit": "Storage size",
    "timestamp": "Timestamp",
    "other": "Custom",
    "unknown": "Unknown",
}

LOOK = (
    Option(("--no-headers",), "leave the titles out"),
    Option(
        ("--separator",),
        "put this between columns, without padding; sizes are MiB then",
        "TEXT",
    ),
    Option(
        ("--units",),
        "sizes in h (as people like), m, g or t",
        "UNIT",
        choices=("h", "m", "g", "t"),
    ),
    Option(("-v", "--verbose"), "spell missing values out"),
)
"""Options of each command that prints a table."""

OUTPUT = Option(
    ("-o", "--output"), "fields to show, with commas; +FIELD adds one", "FIELDS"
)
OPTIONS = (
    OUTPUT,
    Option(
        ("-F", "--filter"),
        "take the operand for a filter, even if it looks like a name",
    ),
    *LOOK,
    JSON,
    DEBUG,
)


class Listing(NamedTuple):
    """What is listed.

    Attributes
    ----------
    resource
        The master's name of it.
    fields
        Those that are shown when nothing is asked for.
    key
        Fields that an operand may stand in.
    """

    resource: str
    fields: tuple[str, ...]
    key: tuple[str, ...] = ("name",)

    def commands(
        self, program: str, example: str, field: str = "tags"
    ) -> tuple[Command, Command]:
        """Return the two commands.

        Parameters
        ----------
        example
            A filter that makes sense for the resource.
        field
            One that the list does not show by itself.
        """
        word = self.resource
        lister = Command(
            "list",
            self.list,
            (Operand(word.upper(), 0, None),),
            OPTIONS,
            examples={
                f"{program} list": f"every {word}",
                f"{program} list -o +{field}": "one more column",
                f"{program} list --filter '{example}'": "those that fit",
            },
        )
        fields = Command(
            "list-fields",
            self.list_fields,
            (Operand("FIELD", 0, None),),
            (*LOOK, JSON, DEBUG),
        )
        return lister, fields

    def info(
        self,
        fields: Sequence[str],
        shown: Callable[[dict[str, Any]], Mapping[str, Any]],
    ) -> Command:
        """Return the command that shows all about some objects, or about all.

        Parameters
        ----------
        fields
            What is asked of the master, and told to programs.
        shown
            Makes of an object what people see.
        """

        def handler(call: Call) -> None:
            found = call.look_up(self.resource, fields, self.key)
            call.show(found, lines([shown(one) for one in found]))

        return Command(
            "info", handler, (Operand(self.resource.upper(), 0, None),), (JSON, DEBUG)
        )

    def list(self, call: Call) -> int:
        """Print the table."""
        fields = chosen(call.option("output"), self.fields)
        forced = bool(call.option("filter"))
        whose = self.resource == "disk"
        wanted = qfilter.of_words(call.words, self.key, forced=forced, whose=whose)
        if call.option("node"):
            nodes = call.option("node")
            call.client.query("node", ["name"], _any_of("name", nodes))  # are there
            wanted = ["&", *filter(None, [wanted, _any_of("node", nodes)])]
        order = (self.key[0], call.words)
        return print_query(call, self.resource, fields, wanted, order)

    def list_fields(self, call: Call) -> int:
        """Print what fields there are."""
        told = call.client.query_fields(self.resource, call.words or None)
        found = [field._asdict() for field in told]
        if call.option("json"):
            call.terminal.print(json.dumps(found, indent=2))
            return 0
        titles = ("Name", "Type", "Title", "Description")
        columns = [{"title": title, "kind": "text"} for title in titles]
        rows = [[(NORMAL, value) for value in _described(field)] for field in found]
        print_table(call, columns, rows)
        return warn_unknown(call, found)


def chosen(asked: str | None, usual: Sequence[str]) -> list[str]:
    """Return the fields to show; ``+field`` extends the usual ones.

    >>> chosen("+tags", ["name"]), chosen("uuid,name", ["name"])
    (['name', 'tags'], ['uuid', 'name'])
    """
    if not asked:
        return list(usual)
    if asked.startswith("+"):
        return [*usual, *asked[1:].split(",")]
    return asked.split(",")


def _any_of(field: str, words: Sequence[str]) -> list[Any]:
    return ["|", *(["==", field, word] for word in words)]


def print_query(
    call: Call,
    resource: str,
    fields: Sequence[str],
    wanted: list[Any] | None,
    order: tuple[str, Sequence[str]] = ("", ()),
) -> int:
    """Print what the master answers; return the exit status.

    Parameters
    ----------
    order
        A field, and the names that were asked for: rows come in the order of these.
    """
    key, names = order
    asked = [*fields, key] if len(names) > 1 else fields
    told, rows = call.client.query(resource, asked, wanted)
    how = formats(resource)
    columns = [
        {**field._asdict(), "format": how.get(field.name, field.kind)} for field in told
    ]
    if asked != fields:
        rows = [row[:-1] for row in sorted(rows, key=lambda row: _place(names, row))]
        columns = columns[:-1]
    if call.option("json"):
        call.terminal.print(json.dumps(objects(fields, rows), indent=2))
    else:
        print_table(call, columns, rows)
    return warn_unknown(call, columns)


def _place(names: Sequence[str], row: Sequence[Cell]) -> int:
    """Return which of the names that were asked for a row's last cell is."""
    value = str(row[-1][1])
    fits = (n for n, name in enumerate(names) if fnmatchcase(value, name))
    short = (n for n, name in enumerate(names) if value.startswith(f"{name}."))
    return next(fits, next(short, len(names)))


def print_table(
    call: Call, columns: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[Cell]]
) -> None:
    """Print a table as the command's options want it."""
    look = Look(
        headers=not call.option("no_headers"),
        separator=call.option("separator"),
        units=call.option("units") or "",
        verbose=bool(call.option("verbose")),
    )
    for line in table(columns, rows, look):
        call.terminal.print(line)


def print_objects(
    call: Call,
    known: Mapping[str, tuple[str, str]],
    fields: Iterable[str],
    rows: Iterable[Mapping[str, Any]],
) -> None:
    """Print some fields of objects as a table; a value that is None is missing.

    Parameters
    ----------
    known
        Title and kind of each column, by field.
    """
    columns = [dict(zip(("title", "kind"), known[one], strict=True)) for one in fields]
    values = ([row[name] for name in fields] for row in rows)
    cells = [[(UNAVAILABLE if v is None else NORMAL, v) for v in row] for row in values]
    print_table(call, columns, cells)


def warn_unknown(call: Call, columns: Sequence[Mapping[str, Any]]) -> int:
    """Say which fields are not known; return the exit status."""
    unknown = [str(c["name"]) for c in columns if c["kind"] == "unknown"]
    if not unknown:
        return 0
    call.terminal.talk(f"Warning: Queried for unknown fields {', '.join(unknown)}")
    return UNKNOWN_FIELD


def _described(field: Mapping[str, Any]) -> tuple[str, str, str, str]:
    kind = _KINDS.get(str(field["kind"]), "Unknown")
    return str(field["name"]), kind, str(field["title"]), str(field.get("doc", ""))
