# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk story``: everything that ever happened to a disk."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from moorage.cli.command import Call, Command
from moorage.cli.options import DEBUG, JSON
from moorage.cli.table import moment, plain
from moorage.units import format_size

from .options import DISK


def _story(call: Call) -> None:
    (disk,) = call.words
    told = call.client.story(disk)
    call.show(told, _lines(told))


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    gone = "" if told["exists"] else ", which is gone"
    yield f"Disk {told['name'] or '(no name)'} ({told['uuid']}){gone}"
    events = told["events"]
    if not events or events[0].get("kind", "changed") != "made":
        yield "  (what happened before was not kept)"
    for number, event in enumerate(events):
        yield f"{moment(event.get('time'))}  {_headline(event)}"
        yield from (f"    {line}" for line in _details(event))
        if number == 0 and told["left_out"]:
            yield f"  ({told['left_out']} events are not kept any more)"


def _headline(event: Mapping[str, Any]) -> str:
    """Return what happened, in the words of the step and with the changes behind."""
    job = f"job {event['job']} {event.get('op', '')}" if event.get("job") else ""
    words = f'"{event["words"]}"' if event.get("words") else ""
    what = event.get("what") or event.get("kind", "changed")
    about = " · ".join(filter(None, (job, event.get("by", ""), words)))
    return f"{what}  ({about})" if about else what


def _details(event: Mapping[str, Any]) -> Iterator[str]:
    kind = event.get("kind", "changed")
    for name, (old, new) in event.get("changed", {}).items():
        show = _SHOWN.get(name, plain)
        if kind == "made":
            yield f"{name}: {show(new)}"
        elif kind == "changed":
            yield f"{name}: {_or_none(show, old)} -> {_or_none(show, new)}"


def _volume(child: Mapping[str, Any]) -> str:
    """Return how a volume is called that a mirrored disk is made of."""
    return "/".join(map(str, child.get("logical_id", ())))


def _or_none(show: Callable[[Any], str], value: Any) -> str:  # noqa: ANN401
    return "(none)" if value is None else show(value)


_SHOWN: Mapping[str, Callable[[Any], str]] = {
    "size": format_size,
    "logical_id": lambda value: "/".join(map(str, value)),
    "children": lambda value: (
        ", ".join(_volume(one) for one in value or ()) or "(none)"
    ),
}


COMMANDS = (
    Command(
        "story",
        _story,
        (DISK,),
        (JSON, DEBUG),
        examples={"gnt-disk story data1": "who made it, had it, changed it"},
    ),
)
