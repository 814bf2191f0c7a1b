# SPDX-License-Identifier: BSD-2-Clause
"""A balancing plan that is carried out: its jobs, and how far they are.

What is done is what was looked at. Each set of steps waits for the one before, by the
jobs' own dependencies, so nobody has to look on.
"""

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from msgspec import json

from moorage.client import ENDED, MoorageError
from moorage.client.asks import new_key, resolved
from moorage.errors import BadInput, NotFound
from moorage.htools.plans.balancing import Plan
from moorage.htools.plans.plan import job_sets, opcodes
from moorage.web.jobs import named, progress_of
from moorage.web.kinds import JOB
from moorage.web.values import ROOT, address
from moorage.web.visit import Elsewhere, Page, Visit

Job = list[dict[str, Any]]
OP: Final = "OP_INSTANCE_MIGRATE"
_GOOD: Final = 900.0
"""Seconds for which a plan that was looked at can be carried out."""
_MOST: Final = 32
"""Plans that are kept: the last ones."""
_SHOWN: Final = 200
"""Jobs of one address."""
_FIELDS: Final = ("id", "status", "summary", "progress")


def jobs_of(plan: Plan) -> list[Job]:
    """Return the jobs of a plan; -1 is the job before in the list, and so on."""
    made: list[Job] = []
    before: list[int] = []
    for steps in job_sets(plan.steps):
        these = []
        for step in steps:
            at = len(made)
            depends = [[one - at, ["success"]] for one in before]
            ops = opcodes(step, plan.start.nodes)
            made.append([{**one, "depends": depends} for one in ops])
            these.append(at)
        before = these
    return made


class Line(NamedTuple):
    """A job of a plan that is carried out, as it is shown."""

    number: int
    href: str
    summary: str
    status: str
    tone: str
    progress: Any


class Mover:
    """Carries out what somebody has looked at.

    Parameters
    ----------
    clock
        The time in seconds, from anywhere.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[float, Sequence[Job]]] = {}

    def offered(self, visit: Visit, group: str, jobs: Sequence[Job]) -> dict[str, Any]:
        """Return what a plan's page needs so that it can be carried out."""
        mark = hashlib.sha256(json.encode([visit.user, group, jobs])).hexdigest()
        self._kept.pop(mark, None)
        self._kept[mark] = self._clock() + _GOOD, jobs
        while len(self._kept) > _MOST:
            del self._kept[next(iter(self._kept))]
        return {
            "looked": mark if jobs else "",
            "key": new_key(),
            "refused": visit.wish(OP).refused,
            "command": f"hbal -L -G {group} -X",
        }

    async def run(self, visit: Visit) -> Elsewhere:
        """Make the jobs of a plan; the form's own key keeps others from being made.

        Raises
        ------
        BadInput
            If it was looked at long ago, or by nobody.
        MoorageError
            If the first job is refused.
        """
        until, jobs = self._kept.get(visit.filled("looked"), (0.0, ()))
        if self._clock() > until:
            raise BadInput(
                "this plan is not known any more: nothing was done",
                hint="open the page again: it plans anew",
            )
        key, made = visit.filled("key") or new_key(), list[int | MoorageError]()
        for number, ops in enumerate(jobs):
            try:
                wanted = resolved(ops, made)
                made.append(await visit.client.submit(*wanted, key=f"{key}-{number}"))
            except MoorageError:
                if not made:
                    raise
                break  # what was made is shown, and waits for nothing that is missing
        of = f"&of={len(jobs)}" if len(made) < len(jobs) else ""
        return Elsewhere(f"{ROOT}/moves?jobs={','.join(map(str, made))}{of}")


async def moves(visit: Visit) -> Page:
    """Show how far the jobs of a plan are, and of how many steps they are.

    Raises
    ------
    NotFound
        If one is not known.
    """
    words = visit.asked("jobs").split(",")[:_SHOWN]
    if not all(one.isascii() and one.isdecimal() and len(one) < 16 for one in words):
        raise NotFound("these are no jobs")
    rows = await visit.client.jobs(list(map(int, words)), _FIELDS)
    lines = [_line(*row) for row in rows if row]
    if len(lines) < len(words):
        raise NotFound("one of these jobs is not known")
    ended = [one for one in lines if one.status in ENDED]
    failed = [one for one in ended if one.status != "success"]
    of = visit.asked("of")
    known = of.isascii() and of.isdecimal() and len(of) < 4
    refused = max(0, int(of) - len(lines)) if known else 0
    values = {
        "lines": lines,
        "refused": refused,
        "ended": len(ended),
        "failed": len(failed),
        "live": " ".join(f"job:{one.number}" for one in lines),
        "running": len(ended) < len(lines),
        "command": f"gnt-job list {' '.join(words)}",
    }
    return Page("moves", values)


def _line(number: int, status: str, summary: Sequence[str], progress: Any) -> Line:  # noqa: ANN401
    told = progress_of(progress) if status not in ENDED else None
    tone = JOB.tones.get(status, "bad")
    words = named(summary)
    return Line(number, address("job", number), words, status, tone, told)
