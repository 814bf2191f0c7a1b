# SPDX-License-Identifier: BSD-2-Clause
"""The picture of a cluster filled up: what fits, and what stops the next one."""

from collections.abc import Sequence
from typing import Final

from moorage.cli.htools.report.balancing import many
from moorage.cli.htools.report.bars import COMES
from moorage.cli.htools.report.charts import evenness
from moorage.cli.htools.report.html import Markup, el, num
from moorage.cli.htools.report.nodes import NodeTable
from moorage.cli.htools.report.page import facts, headings, page, scrolled, section
from moorage.cli.htools.report.pools import pool_table
from moorage.cli.htools.report.provenance import Origin
from moorage.cli.htools.report.scenes import Scene
from moorage.htools.cluster_stats import Totals
from moorage.htools.constants import Fail, fixed
from moorage.htools.placement.space import Filled, Size
from moorage.htools.state import State
from moorage.units import format_size

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


def filling_page(
    start: State, tiered: Filled, standard: Filled, size: Size, origin: Origin
) -> str:
    """Return the picture of two fillings as one HTML document.

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
    legend = table.legend(goes=None, comes="new instance")
    return page(
        f"Room for instances: {origin.name}",
        origin.header("Room for new instances", _lead(start, tiered, standard, size)),
        "\n",
        _facts(start, tiered, standard),
        "\n",
        el(
            "div",
            _fits("Tiered", tiered, _tiered_about(tiered)),
            _fits("Standard", standard, f"Always {_spec(size)}."),
            class_="sides",
        ),
        section("How even the nodes are", el("div", *evenness(scenes), class_="four")),
        section("Nodes", legend, scrolled(table.markup(whole=True), "Nodes")),
        pool_table(start),
        table.details(),
    )


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


def _facts(start: State, tiered: Filled, standard: Filled) -> Markup:
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
    return facts(pairs)


def _tiered_about(tiered: Filled) -> str:
    if not tiered.new:
        return "From the largest size down, shrunk by what is scarce."
    first, last = tiered.sizes[0][0], tiered.sizes[-1][0]
    return f"From {_spec(first)} down to {_spec(last)}."


def _fits(title: str, filled: Filled, about: str) -> Markup:
    return section(
        f"{title}: {many(len(filled.new), 'instance')}",
        el("p", about, class_="small"),
        _sizes(filled) if filled.new else None,
        _stops(filled),
    )


def _sizes(filled: Filled) -> Markup:
    runs = filled.sizes
    most = max(count for _, count in runs)
    heads = ("Instances", "Memory", "Disk", "CPUs", "")
    shown, rest = runs[:_MOST_SIZES], runs[_MOST_SIZES:]
    return el(
        "table",
        headings(heads, right=heads),
        el("tbody", *(_size(size, count, most) for size, count in shown), _rest(rest)),
        class_="metrics",
    )


def _cell(words: str) -> Markup:
    return el("td", words, class_="right")


def _size(size: Size, count: int, most: int) -> Markup:
    words = (f"{count:,}", format_size(size.mem), format_size(size.disk), f"{size.cpu}")
    cells = (_cell(word) for word in words)
    return el("tr", *cells, el("td", _bar(count / most)))


def _rest(runs: Sequence[tuple[Size, int]]) -> Markup | None:
    """Return the row that stands for the sizes left out."""
    if not runs:
        return None
    whole = f"{sum(count for _, count in runs):,}"
    words = f"in {many(len(runs), 'smaller size')}"
    return el("tr", _cell(whole), el("td", words, colspan=4))


def _bar(share: float) -> Markup:
    width = num(max(1.0, share * _WIDTH))
    return el(
        "svg",
        el("rect", width=width, height=9, class_="comes"),
        viewBox=f"0 0 {_WIDTH} 9",
        aria_hidden="true",
    )


def _stops(filled: Filled) -> Markup | None:
    """Return what stopped the last attempt, the most frequent reason first."""
    if _untried(filled):
        return el("p", "With --accept-existing-errors it is tried all the same.")
    found = [(fail, count) for fail, count in filled.reasons if count]
    if not found:
        return el("p", "Nothing stops the next one: -l ended it.")
    heads = ("What stops the next one", "", "Places")
    return el(
        "table",
        headings(heads, right=("Places",)),
        el("tbody", *(_reason(fail, count) for fail, count in found)),
        class_="stops",
    )


def _reason(fail: Fail, count: int) -> Markup:
    return el(
        "tr",
        el("td", REASONS[fail]),
        el("td", fail.value, class_="code"),
        _cell(f"{count:,}"),
    )
