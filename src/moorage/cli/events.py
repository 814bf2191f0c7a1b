# SPDX-License-Identifier: BSD-2-Clause
"""``moorage events``: what happens in the cluster, line by line, as it happens."""

import json
import time
from collections.abc import Iterator
from typing import Any

from moorage.client import Entry
from moorage.errors import NoMaster, Unreachable

from .command import Call, Command, Option
from .option_syntax import number
from .table import moment

_AGAIN = 0.5
"""Seconds between two looks for a master."""


def _events(call: Call) -> None:
    """Print what happens, until somebody stops it."""
    last = call.option("after")
    for entry in _entries(call, last):
        if entry.reset:
            call.terminal.talk(
                f"Warning: what happened behind entry {last} is not kept any more; "
                f"this goes on behind {entry.number}"
            )
        last = entry.number
        lines = [json.dumps(_told(entry))] if call.option("json") else _lines(entry)
        for line in lines:
            call.terminal.print(line)
        call.terminal.out.flush()


def _entries(call: Call, after: int | None) -> Iterator[Entry]:
    """Yield entries behind one: those that there are, or all that come."""
    if call.option("no_wait"):
        yield from _present(call, after)
        return
    begins = after is None  # and that is said to everybody
    for entry in _heard(call, after):
        if not begins:
            yield entry
        begins = False


def _heard(call: Call, after: int | None) -> Iterator[Entry]:
    """Listen to the master until it ends; wait for the next one."""
    said = False
    while True:
        try:
            for entry in call.client.events(after):
                said = False
                yield entry
                after = entry.number
        except (NoMaster, Unreachable) as error:
            if not said:
                call.terminal.talk(f"Waiting for a master: {error.message}")
            said = True
            time.sleep(_AGAIN)


def _present(call: Call, after: int | None) -> Iterator[Entry]:
    """Yield what is there already."""
    newest = call.client.newest()
    if after is None or after == newest:
        return
    for entry in call.client.events(after):
        yield entry
        if entry.number >= newest:
            return


def _told(entry: Entry) -> dict[str, Any]:
    """Return an entry as the master tells it: what is empty is left out."""
    told = {name: value for name, value in entry._asdict().items() if value}
    every = (one._asdict().items() for one in entry.events)
    return told | {"events": [{k: v for k, v in one if v} for one in every]}


def _lines(entry: Entry) -> Iterator[str]:
    """Yield a line an event: when, the entry's number, what, and why."""
    why = f" by job {entry.job}" if entry.job else ""
    for event in entry.events:
        if event.kind == "job":
            what = f"job {event.job} {event.status}: {event.summary}"
            if event.event == "removed":
                what = f"job {event.job} archived"
        else:
            what = f"{event.kind} {event.name or event.uuid} {event.event}{why}"
        yield f"{moment(entry.time)} {entry.number} {what}"


COMMANDS = (
    Command(
        "events",
        _events,
        (),
        (
            Option(
                ("--after",),
                "go on behind this entry instead of from now",
                "NUMBER",
                convert=number("the number of an entry"),
            ),
            Option(("--no-wait",), "print what there is, and end"),
            Option(("--json",), "print entries as JSON, one a line"),
        ),
        examples={
            "moorage events": "from now on, until Ctrl-C",
            "moorage events --json --after 4294967400": "since an entry, for programs",
        },
    ),
)
