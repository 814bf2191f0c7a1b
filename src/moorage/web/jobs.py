# SPDX-License-Identifier: BSD-2-Clause
"""Jobs: the last ones, one with its steps and its log, and what may be done to it."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from moorage.api.luxi_messages import error_from_wire
from moorage.client import ENDED
from moorage.client.aio import AsyncClient
from moorage.errors import BadInput, MoorageError, NotFound

from .kinds import JOB
from .values import address, moment, short
from .visit import Elsewhere, Page, Visit

_LAST = 8
"""Jobs that are shown as the last ones."""
_LINES = 500
"""Lines of a log that are shown: the last ones."""
_CHARACTERS = 100_000
"""Of all lines that are shown."""
_LONGEST = 2_000
"""Characters of a line."""
STEPS = 400
"""Steps of a job, or of a plan, that are shown: the first ones."""
_OPS = 10
"""Operations of a job that a line names, and of which errors are shown."""
_WORDS = 200
"""Characters of each."""
_SUMMARY = ("id", "status", "summary", "caller", "received_ts", "end_ts")
_WHOLE = (
    *_SUMMARY,
    *("start_ts", "priority", "progress", "tasks", "oplog", "opstatus", "opresult"),
)


class Brief(NamedTuple):
    """A job in a line."""

    number: int
    href: str
    status: str
    tone: str
    summary: str
    caller: str
    received: str


async def recent(client: AsyncClient, most: int = _LAST) -> list[Brief]:
    """Return the last jobs, the newest first."""
    numbers = [row[0] for row in await client.jobs(None, ["id"]) if row]
    rows = await client.jobs(sorted(numbers)[-most:], _SUMMARY)
    return [_brief(row) for row in reversed(rows) if row]


def _brief(row: Sequence[Any]) -> Brief:
    number, status, summary, caller, received, _ = row
    tone = JOB.tones.get(status, "bad")
    told = moment(received[0]) if received else ""
    return Brief(
        number, address("job", number), status, tone, named(summary),
        caller or "", told,
    )  # fmt: skip


def named(summary: Sequence[str]) -> str:
    """Return what a job does, in a line.

    >>> named(["A"] * 12)
    'A; A; A; A; A; A; A; A; A; A and 2 more'
    """
    more = f" and {len(summary) - _OPS} more" if len(summary) > _OPS else ""
    return "; ".join(short(one, _WORDS) for one in summary[:_OPS]) + more


async def shown(visit: Visit) -> Page:
    """Show a job."""
    return Page("job", await _told(visit, _number(visit)))


def _number(visit: Visit) -> int:
    text = visit.path["name"]
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise NotFound(f"job {text} is not known")
    return int(text)


async def _told(
    visit: Visit, number: int, error: MoorageError | None = None
) -> dict[str, Any]:
    (row,) = await visit.client.jobs([number], _WHOLE)
    if row is None:
        raise NotFound(f"job {number} is not known")
    job = dict(zip(_WHOLE, row, strict=True))
    running = job["status"] not in ENDED
    steps = [step for each in job["tasks"] or () for step in each]
    errors = _errors(job["opstatus"], job["opresult"])
    plans = _plans(job["opresult"]) if job["status"] == "success" else ()
    return {
        "job": _brief([job[one] for one in _SUMMARY]),
        "running": running,
        "begun": _time(job["start_ts"]),
        "ended": _time(job["end_ts"]),
        "priority": job["priority"],
        "progress": progress_of(job["progress"]) if running else None,
        "steps": steps[:STEPS],
        "unshown": len(steps[STEPS:]),
        "log": _log(job["oplog"]),
        "errors": errors[:_OPS],
        "unsaid": len(errors[_OPS:]),
        "plans": plans[:STEPS],
        "unplanned": len(plans[STEPS:]),
        "cancel": visit.refused("DELETE", f"/2/jobs/{number}"),
        "hasten": visit.refused("PUT", f"/2/jobs/{number}/priority"),
        "error": error,
        "command": f"gnt-job {'watch' if running else 'info'} {number}",
    }


def _time(stamp: Sequence[int] | None) -> str:
    return moment(stamp[0]) if stamp else ""


def progress_of(told: Any) -> Mapping[str, Any] | None:  # noqa: ANN401
    """Return how far the running task is."""
    if not told:
        return None
    names = ("done", "total", "unit", "note")
    found = told if isinstance(told, dict) else dict(zip(names, told, strict=False))
    return found if found.get("total") else None


def _log(logs: Sequence[Sequence[Any]]) -> list[tuple[str, str]]:
    """Return time and text of the last lines."""
    lines = [
        (moment(stamp[0]), _line(kind, text)[:_LONGEST])
        for log in logs or ()
        for _, stamp, kind, text in log
    ]
    sizes = accumulate(len(text) for _, text in reversed(lines[-_LINES:]))
    fits = sum(size <= _CHARACTERS for size in sizes)
    return lines[len(lines) - fits :]


def _line(kind: str, text: Any) -> str:  # noqa: ANN401
    return text if isinstance(text, str) else f"{kind}: {text}"


def _errors(states: Sequence[str], results: Sequence[Any]) -> list[MoorageError]:
    pairs = zip(states, results, strict=True)
    return [error_from_wire(one) for state, one in pairs if state == "error"]


def _plans(results: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
    """Return the steps that a look told of."""
    return [
        step
        for one in results
        if isinstance(one, list)
        for step in one
        if isinstance(step, dict) and step.keys() == {"what", "node", "final"}
    ]


async def changed(visit: Visit) -> Page | Elsewhere:
    """Cancel a job, or change its priority."""
    number = _number(visit)
    if visit.filled("step") == "cancel":
        done, sentence = await visit.client.cancel(number)
    else:
        words = visit.filled("priority")
        if words.removeprefix("-") not in map(str, range(21)):
            raise BadInput("a priority is a number from -20 to 19")
        done, sentence = await visit.client.set_priority(number, int(words))
    if done:
        return Elsewhere(address("job", number))
    return Page("job", await _told(visit, number, BadInput(sentence)), 409)
