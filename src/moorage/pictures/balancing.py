# SPDX-License-Identifier: BSD-2-Clause
"""The picture of a balancing plan: why, from where to where, step by step."""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Final, NamedTuple

from moorage.htools.constants import fixed
from moorage.htools.plans.balancing import Plan, Step
from moorage.htools.plans.cost import total_cost
from moorage.htools.plans.plan import commands, job_sets, place
from moorage.units import format_size

from .bars import COMES, GOES
from .charts import early, evenness, score_chart
from .ink import Picture, drawn
from .nodes import NodeTable
from .scenes import Scene
from .scoring import metric_table
from .shared import pool_table

MOST_STEPS: Final = 1000
ARROW: Final = "\u2192"


class _Row(NamedTuple):
    """A step in the table of steps, as text."""

    job_set: int
    step: int
    instance: str
    source: str
    target: str
    score: str
    commands: str


def balancing(plan: Plan) -> Picture:
    """Return the picture of a plan: the score, the nodes, and the steps in order."""
    sets = job_sets(plan.steps)
    scenes = _scenes(plan)
    table = NodeTable(scenes)
    scores = [plan.first_score, *(step.score for step in plan.steps)]
    has_chart = bool(plan.steps) and all(map(isfinite, scores))
    body = drawn(
        "balancing.html",
        facts=_facts(plan, sets, table),
        metrics=metric_table(plan.start.seen, plan.end.seen),
        chart=score_chart(scores) if has_chart else "",
        early=early(scores) if has_chart else "",
        evenness=evenness(scenes),
        legend=table.legend(),
        nodes=table.markup(),
        pools=pool_table(plan.start),
        caption=_caption(plan),
        sets=list(_sets(plan, sets)),
        numbers=table.details(),
    )
    return Picture("Balancing plan", _lead(plan, sets), body)


def _scenes(plan: Plan) -> list[Scene]:
    first: dict[int, str] = {}
    last: dict[int, str] = {}
    for number, step in enumerate(plan.steps, 1):
        first.setdefault(step.before.idx, str(number))
        last[step.before.idx] = str(number)
    return [
        Scene("before", plan.start, plan.end, GOES, first, "leaves in step"),
        Scene("after", plan.end, plan.start, COMES, last, "arrives in step"),
    ]


def many(count: int, word: str) -> str:
    """Return a number of things.

    >>> many(1, "step"), many(1200, "step")
    ('1 step', '1,200 steps')
    """
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def _lead(plan: Plan, sets: Sequence[Sequence[Step]]) -> str:
    if not plan.steps:
        return f"Nothing to do: the score is {fixed(plan.first_score, 4)}."
    return (
        f"{many(len(plan.steps), 'step')} in {many(len(sets), 'job set')} take the "
        f"score from {fixed(plan.first_score, 4)} to {fixed(plan.last_score, 4)}; "
        "0 is perfect."
    )


def change(before: object, after: object) -> str:
    """Return two values with an arrow between, or one if they are equal."""
    return f"{before}" if before == after else f"{before} {ARROW} {after}"


def _facts(
    plan: Plan, sets: Sequence[Sequence[Step]], table: NodeTable
) -> dict[str, str]:
    movers = {step.before.idx for step in plan.steps}
    state = plan.start
    cost = total_cost(plan.steps, state.nodes)
    pairs = {
        "Score": change(fixed(plan.first_score, 4), fixed(plan.last_score, 4)),
        "Steps": f"{len(plan.steps):,}",
        "Job sets": f"{len(sets):,}",
        "Instances that move": f"{len(movers):,} of {len(state.members):,}",
        "Copied: disk, memory": f"{format_size(cost.disk)}, {format_size(cost.memory)}",
        "Nodes": f"{len(state.view):,}",
    }
    pairs["Nodes failing N+1"] = change(len(state.failing), len(plan.end.failing))
    if table.fragile:
        losses = [len(some) for some in table.fragile]
        pairs["Nodes that cannot be lost"] = change(*losses)
    return pairs


def _caption(plan: Plan) -> str:
    said = (
        "A place is primary:secondary. Job sets run one after the other, the steps of "
        "one set at the same time. Each command follows gnt-instance."
    )
    more = len(plan.steps) - MOST_STEPS
    if more <= 0:
        return said
    return f"{said} {many(more, 'later step')} left out here; -C prints all."


def _sets(plan: Plan, sets: Sequence[Sequence[Step]]) -> Iterator[list[_Row]]:
    """Yield the rows of each job set, up to a number of steps."""
    number = 0
    for at, steps in enumerate(sets, 1):
        shown = steps[: max(0, MOST_STEPS - number)]
        if not shown:
            return
        yield [_row(plan, step, at, number + k) for k, step in enumerate(shown, 1)]
        number += len(shown)


def _row(plan: Plan, step: Step, at: int, number: int) -> _Row:
    nodes, new = plan.start.nodes, step.moved.inst
    return _Row(
        job_set=at,
        step=number,
        instance=step.before.alias,
        source=place(step.before.p, step.before.s, nodes),
        target=place(new.p, new.s, nodes),
        score=fixed(step.score, 4),
        commands="; ".join(commands(step, nodes)),
    )
