# SPDX-License-Identifier: BSD-2-Clause
"""The picture of a cluster filled up: what fits, and what stops the next one."""

from typing import Final

from moorage.htools.cluster_stats import Totals
from moorage.htools.constants import Fail, fixed
from moorage.htools.placement.space import Filled, Size
from moorage.htools.state import State
from moorage.units import format_size

from .balancing import many
from .bars import COMES
from .charts import evenness
from .ink import Picture, drawn
from .nodes import NodeTable
from .scenes import Scene
from .shared import pool_table

_MOST_SIZES: Final = 12
_WIDTH: Final = 200

REASONS: Final = {
    Fail.MEMORY: "too little memory that no failover needs",
    Fail.DISK: "too little disk, or not such a disk",
    Fail.CPU: "too few virtual CPUs left",
    Fail.N1: "a node could no longer be lost",
    Fail.TAGS: "an exclusion tag is there already",
    Fail.MIGRATION: "migration tags forbid it",
    Fail.DISK_COUNT: "the policy wants another number of disks",
    Fail.SPINDLES: "too few spindles",
    Fail.INTERNAL: "internal error",
}


def filling(start: State, tiered: Filled, standard: Filled, size: Size) -> Picture:
    """Return the picture of two fillings.

    Parameters
    ----------
    size
        What the standard filling places.
    """
    scenes = [
        Scene("now", start),
        Scene("tiered", tiered.state, start, COMES, word="new"),
        Scene("standard", standard.state, start, COMES, word="new"),
    ]
    table = NodeTable(scenes)
    body = drawn(
        "filling.html",
        facts=_facts(start, tiered, standard),
        fillings=[
            _fits("Tiered", tiered, _tiered_about(tiered)),
            _fits("Standard", standard, f"Always {_spec(size)}."),
        ],
        width=_WIDTH,
        evenness=evenness(scenes),
        legend=table.legend(goes=None, comes="new instance"),
        nodes=table.markup(whole=True),
        pools=pool_table(start),
        numbers=table.details(),
    )
    lead = _lead(start, tiered, standard, size)
    return Picture("Room for new instances", lead, body)


def _spec(size: Size) -> str:
    return (
        f"{format_size(size.mem)} memory, {format_size(size.disk)} disk, "
        f"{many(size.cpu, 'CPU')}"
    )


def _lead(start: State, tiered: Filled, standard: Filled, size: Size) -> str:
    if _untried(standard):
        bad = many(len(start.failing), "node")
        return f"Nothing was tried: N+1 fails already on {bad}."
    if not tiered.new and not standard.new:
        return "Nothing fits."
    return (
        f"{many(len(standard.new), 'instance')} of {_spec(size)} fit; or, starting "
        f"large, {len(tiered.new):,} in {many(len(tiered.sizes), 'size')}."
    )


def _untried(filled: Filled) -> bool:
    """Say whether the cluster was in no state to place anything."""
    return set(filled.failures) == {Fail.N1}


def _facts(start: State, tiered: Filled, standard: Filled) -> dict[str, str]:
    pairs = {
        "Nodes": f"{len(start.view):,}",
        "Instances now": f"{len(start.insts):,}",
        "Tiered: more": f"{len(tiered.new):,}",
        "Standard: more": f"{len(standard.new):,}",
    }
    states = (start, tiered.state, standard.state)
    totals = [Totals.of(state.nodes) for state in states]
    pairs["Score now, tiered, standard"] = ", ".join(
        fixed(one.score, 4) for one in totals
    )
    return pairs


def _tiered_about(tiered: Filled) -> str:
    if not tiered.new:
        return "From the largest size down, shrunk by what is scarce."
    first, last = tiered.sizes[0][0], tiered.sizes[-1][0]
    return f"From {_spec(first)} down to {_spec(last)}."


def _fits(title: str, filled: Filled, about: str) -> dict[str, object]:
    """Return what fits, and what stopped the last attempt, most frequent first."""
    runs = filled.sizes
    rest = runs[_MOST_SIZES:]
    most = max((count for _, count in runs), default=1)
    return {
        "title": f"{title}: {many(len(filled.new), 'instance')}",
        "about": about,
        "sizes": [_size(size, count, most) for size, count in runs[:_MOST_SIZES]],
        "left_out": f"{sum(count for _, count in rest):,}" if rest else "",
        "left_words": f"in {many(len(rest), 'smaller size')}",
        "untried": _untried(filled),
        "stops": [
            (REASONS[fail], fail.value, f"{count:,}")
            for fail, count in filled.reasons
            if count
        ],
    }


def _size(size: Size, count: int, most: int) -> dict[str, object]:
    words = (f"{count:,}", format_size(size.mem), format_size(size.disk), f"{size.cpu}")
    return {"words": words, "width": max(1.0, count / most * _WIDTH)}
