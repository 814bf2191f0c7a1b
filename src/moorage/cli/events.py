# SPDX-License-Identifier: BSD-2-Clause
"""``moorage events``: what happens in the cluster, line by line, as it happens."""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.errors import NoMaster, Unreachable

from .command import Call, Command, Option
from .option_syntax import number
from .table import moment

_WAIT = 30.0
"""Seconds that one question waits for something to happen."""
_AGAIN = 0.5
"""Seconds between two looks for a master."""


def _events(call: Call) -> None:
    """Print what happens, until somebody stops it."""
    for entry in _entries(call, call.option("after")):
        lines = [json.dumps(entry)] if call.option("json") else _lines(entry)
        for line in lines:
            call.terminal.print(line)
        call.terminal.out.flush()


def _entries(call: Call, after: int | None) -> Iterator[Mapping[str, Any]]:
    """Yield entries behind one: those that there are, or all that come."""
    wait = 0.0 if call.option("no_wait") else _WAIT
    if after is None:
        after = call.client.call("WaitForEvents", None, 0.0)["number"]
    while True:
        told = _told(call, after, wait)
        if told["reset"]:
            call.terminal.talk(
                f"Warning: what happened behind entry {after} is not kept any more; "
                f"this goes on behind {told['number']}"
            )
        yield from told["entries"]
        after = told["number"]
        if not wait and not told["entries"]:
            return


def _told(call: Call, after: int, wait: float) -> dict[str, Any]:
    """Ask the master; where one ends, the next one goes on."""
    said = False
    while True:
        try:
            answer: dict[str, Any] = call.client.call("WaitForEvents", after, wait)
        except (NoMaster, Unreachable) as error:
            if not wait:
                raise
            if not said:
                call.terminal.talk(f"Waiting for a master: {error.message}")
            said = True
            time.sleep(_AGAIN)
        else:
            return answer


def _lines(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line an event: when, the entry's number, what, and why."""
    why = f" by job {entry['job']}" if entry.get("job") else ""
    for event in entry["events"]:
        if event["kind"] == "job":
            what = f"job {event['job']} {event['status']}: {event['summary']}"
            if event["event"] == "removed":
                what = f"job {event['job']} archived"
            yield f"{moment(entry['time'])} {entry['number']} {what}"
            continue
        called = event.get("name") or event["uuid"]
        what = f"{event['kind']} {called} {event['event']}{why}"
        yield f"{moment(entry['time'])} {entry['number']} {what}"


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
