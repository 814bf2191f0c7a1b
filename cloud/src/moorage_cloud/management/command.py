# SPDX-License-Identifier: BSD-2-Clause
"""What the commands share: how rows are shown, and how a refusal is told."""

import csv
import json
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Model, QuerySet

from moorage_cloud.clusters import ClusterRefused, ClusterSilent
from moorage_cloud.errors import Refusal
from moorage_cloud.verbs import Caller

M = TypeVar("M", bound=Model)
Row = Mapping[str, object]
FORMATS = ("pretty", "json", "csv")
ADMIN = Caller("admin", "admin", admin=True, request_id="snf-manage")
"""Who types commands."""


class CloudCommand(BaseCommand):
    """A command whose refusals are one sentence."""

    def handle(self, *_args: object, **options: Any) -> None:  # noqa: ANN401
        """Do it; tell a refusal.

        Raises
        ------
        CommandError
            What the service, or a cluster, refused it with.
        """
        try:
            self.go(options)
        except Refusal as refusal:
            raise CommandError(_printable(refusal.sentence)) from None
        except (ClusterRefused, ClusterSilent) as error:
            raise CommandError(_printable(str(error))) from None

    def go(self, options: Mapping[str, Any]) -> None:
        """Do what the command is for."""
        raise NotImplementedError

    def tell(self, line: str) -> None:
        """Print a line."""
        self.stdout.write(_printable(line))

    def sure(self, question: str, options: Mapping[str, Any]) -> bool:
        """Return whether somebody is sure; ``-f`` says so beforehand.

        Raises
        ------
        CommandError
            If nobody answers.
        """
        if options["force"]:
            return True
        self.stdout.write(_printable(f"{question} [Y/N] "), ending="")
        try:
            return input().strip().lower() in {"y", "yes"}
        except EOFError:
            raise CommandError(
                "nobody answered, and nothing was changed; -f is yes"
            ) from None

    def show(self, rows: Sequence[Row], columns: Sequence[str], form: str) -> None:
        """Print rows as a table, or for a program."""
        if form == "json":
            kept = [{name: row[name] for name in columns} for row in rows]
            self.stdout.write(json.dumps(kept, default=str, indent=2))
            return
        lines = [[_text(row[name]) for name in columns] for row in rows]
        if form == "csv":
            writer = csv.writer(self.stdout)
            writer.writerows([list(columns), *lines])
            return
        shown = [[_printable(cell) for cell in line] for line in lines]
        for line in _table([list(columns), *shown]):
            self.tell(line)

    def describe(self, title: str, facts: Row) -> None:
        """Print what is known of one thing, a line a fact."""
        width = max(map(len, facts))
        self.tell(title)
        self.tell("-" * len(title))
        for name, value in facts.items():
            self.tell(_printable(f"{name:<{width}} | {_text(value)}".rstrip()))
        self.tell("")


class ListCommand(CloudCommand, Generic[M]):
    """A command that lists objects.

    Attributes
    ----------
    columns
        What each column shows of an object.
    usual
        Those that are shown unless others are asked for; all, if there are none.
    """

    columns: Mapping[str, Callable[[M], object]]
    usual: Sequence[str] = ()

    def rows(self, options: Mapping[str, Any]) -> "QuerySet[M]":
        """Return the objects."""
        raise NotImplementedError

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what all lists take."""
        parser.add_argument("-o", dest="form", choices=FORMATS, default="pretty")
        parser.add_argument("--fields", help="columns, with commas between them")
        parser.add_argument("--filter-by", help="FIELD=VALUE, with commas between them")
        parser.add_argument("--deleted", action="store_true", help="also what is gone")

    def go(self, options: Mapping[str, Any]) -> None:
        """Print the list."""
        usual = ",".join(self.usual or self.columns)
        wanted = (options["fields"] or usual).split(",")
        unknown = sorted(set(wanted) - self.columns.keys())
        if unknown:
            known = ", ".join(self.columns)
            raise CommandError(f"there is no column '{unknown[0]}': {known}")
        found = [
            {name: show(one) for name, show in self.columns.items()}
            for one in self.rows(options)
        ]
        for condition in filter(None, (options["filter_by"] or "").split(",")):
            name, _, value = condition.partition("=")
            if name not in self.columns:
                raise CommandError(f"there is no column '{name}' to filter by")
            found = [row for row in found if _text(row[name]) == value]
        self.show(found, wanted, options["form"])


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{key}={one}" for key, one in sorted(value.items()))
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def _printable(text: str) -> str:
    """Return a text that a terminal does not obey, on one line: users choose names."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _table(lines: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        cells = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        yield "  ".join(cells).rstrip()
        if number == 0:
            yield "-" * (sum(widths) + 2 * (len(widths) - 1))
