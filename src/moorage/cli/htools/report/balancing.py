# SPDX-License-Identifier: BSD-2-Clause
"""The picture of a balancing plan: why, from where to where, step by step."""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Final

from moorage.cli.htools.report.bars import COMES, GOES
from moorage.cli.htools.report.charts import early, evenness, score_chart
from moorage.cli.htools.report.html import Markup, el, joined
from moorage.cli.htools.report.nodes import NodeTable
from moorage.cli.htools.report.page import facts, headings, page, scrolled, section
from moorage.cli.htools.report.pools import pool_table
from moorage.cli.htools.report.provenance import Origin
from moorage.cli.htools.report.scenes import Scene
from moorage.cli.htools.report.scoring import metric_table
from moorage.htools.constants import fixed
from moorage.htools.plans.balancing import Plan, Step
from moorage.htools.plans.cost import total_cost
from moorage.htools.plans.plan import commands, job_sets, place
from moorage.units import format_size

MOST_STEPS: Final = 1000
ARROW: Final = "\u2192"


def balancing_page(plan: Plan, origin: Origin) -> str:
    """Return the picture of a plan as one HTML document."""
    sets = job_sets(plan.steps)
    scenes = _scenes(plan)
    table = NodeTable(scenes)
    return page(
        f"Balancing plan: {origin.name}",
        origin.header("Balancing plan", _lead(plan, sets)),
        "\n",
        _facts(plan, sets, table),
        "\n",
        _why(plan),
        section("How even the nodes are", el("div", *evenness(scenes), class_="four")),
        section("Nodes", table.legend(), scrolled(table.markup(), "Nodes")),
        pool_table(plan.start),
        _steps(plan, sets),
        table.details(),
    )


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


def _facts(plan: Plan, sets: Sequence[Sequence[Step]], table: NodeTable) -> Markup:
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
    return facts(pairs)


def _why(plan: Plan) -> Markup:
    parts = metric_table(plan.start.seen, plan.end.seen)
    scores = [plan.first_score, *(step.score for step in plan.steps)]
    if not plan.steps or not all(map(isfinite, scores)):
        return section("What the score is made of", parts)
    chart = el("figure", score_chart(scores), el("figcaption", early(scores)))
    left = section("What changes the score", parts)
    right = section("Score after each step", chart)
    return el("div", left, right, class_="sides")


def _steps(plan: Plan, sets: Sequence[Sequence[Step]]) -> Markup | None:
    if not plan.steps:
        return None
    heads = ("Set", "Step", "Instance", "From", "To", "Score", "Commands")
    table = el(
        "table",
        el("caption", _caption(plan)),
        headings(heads, right=("Set", "Step", "Score")),
        *_bodies(plan, sets),
        class_="steps",
    )
    return section("Steps", scrolled(table, "Steps"))


def _caption(plan: Plan) -> str:
    said = (
        "A place is primary:secondary. Job sets run one after the other, the steps of "
        "one set at the same time. Each command follows gnt-instance."
    )
    more = len(plan.steps) - MOST_STEPS
    if more <= 0:
        return said
    return f"{said} {many(more, 'later step')} left out here; -C prints all."


def _bodies(plan: Plan, sets: Sequence[Sequence[Step]]) -> Iterator[Markup]:
    number = 0
    for at, steps in enumerate(sets, 1):
        shown = steps[: max(0, MOST_STEPS - number)]
        if not shown:
            return
        rows = (
            el("tr", *_step(plan, step, at, number + k))
            for k, step in enumerate(shown, 1)
        )
        yield el("tbody", joined(rows, "\n"), "\n")
        number += len(shown)


def _step(plan: Plan, step: Step, at: int, number: int) -> Iterator[Markup]:
    nodes = plan.start.nodes
    new = step.moved.inst
    yield el("td", str(at), class_="right")
    yield el("td", str(number), class_="right")
    yield el("th", step.before.alias, scope="row")
    yield el("td", place(step.before.p, step.before.s, nodes))
    yield el("td", place(new.p, new.s, nodes))
    yield el("td", fixed(step.score, 4), class_="right")
    yield el("td", "; ".join(commands(step, nodes)), class_="code")
