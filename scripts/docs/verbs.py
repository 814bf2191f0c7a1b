# SPDX-License-Identifier: BSD-2-Clause
"""A part of the reference: the verbs of the protocol between master and agent."""

from collections.abc import Sequence

from declared import Lines, code, field_rows, table, type_name

from moorage.jobs.words import about
from moorage.protocol import OnDisk, OnGuest, Verb, answer_of, declared, name_of


def agent() -> Lines:
    """Yield the verbs of the protocol, by what they are about."""
    every = sorted(declared(), key=name_of)
    disks = [one for one in every if issubclass(one, OnDisk)]
    guests = [one for one in every if issubclass(one, OnGuest)]
    nodes = [one for one in every if one not in disks + guests]
    yield from _verbs("Verbs on one disk", disks)
    yield from _verbs("Verbs on one guest", guests)
    yield from _verbs("Verbs on a node", nodes)


def _verbs(title: str, kinds: Sequence[type[Verb[object]]]) -> Lines:
    yield f"## {title}"
    yield ""
    rows = [
        [
            code(name_of(one)),
            about(one),
            code(type_name(answer_of(one))),
            "yes" if one.reads else "",
            f"{one.limit:g}",
        ]
        for one in kinds
    ]
    yield from table(("verb", "what it does", "answer", "reads", "seconds"), rows)
    yield from _arguments(kinds)


def _arguments(kinds: Sequence[type[Verb[object]]]) -> Lines:
    """Yield a table of arguments, each with the verbs that take it."""
    takers: dict[tuple[str, ...], list[str]] = {}
    for kind in kinds:
        for row in field_rows(kind):
            takers.setdefault(row, []).append(code(name_of(kind)))
    rows = [
        [*row[:3], "all" if len(verbs) == len(kinds) else ", ".join(verbs), row[3]]
        for row, verbs in takers.items()
    ]
    yield from table(("argument", "type", "default", "of", "meaning"), rows)
