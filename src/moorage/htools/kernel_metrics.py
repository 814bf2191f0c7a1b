# SPDX-License-Identifier: BSD-2-Clause
"""The table of metrics as the kernel knows it: shares of columns, and their weights."""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from moorage.htools import metrics
from moorage.htools.kernel.columns import I_REAL, IW, W
from moorage.htools.metrics import SPREAD, SUM, Share

Kinds = dict[str, int]
"""Kind -> which metric of that kind is made of a share."""


class Rows(NamedTuple):
    """The kernel's rows: of nodes, which of them are online, and of who may move."""

    nodes: "array[float]"
    online: Sequence[int]
    insts: "array[float]"
    movers: int

    def node_column(self, column: int) -> tuple[float, ...]:
        """Return a column of the nodes that are online."""
        return tuple(self.nodes[place * W + column] for place in self.online)

    def mover_column(self, column: int) -> tuple[float, ...]:
        """Return a column of who may move; nothing for -1."""
        return tuple(self.insts[column : self.movers * IW : IW]) if column >= 0 else ()


class Arrays(NamedTuple):
    """What is said of these arrays in `moorage.htools.kernel.tables.Tables`."""

    active: "array[int]"
    merged: "array[float]"
    adding: "array[float]"
    weights: "array[float]"
    shares: "array[int]"


def arrays(rows: Rows, *, exclusive: bool, units: int) -> Arrays:
    """Return the metrics for the kernel.

    Parameters
    ----------
    exclusive
        Whether the nodes have exclusive storage.
    units
        How many storage units are part of the score.
    """
    shares = _shares(exclusive=exclusive)
    weighed = _weighed(shares, rows)
    if units:
        replaced = [weighed.pop(k, (0.0, 0.0))[0] for k in _by_unit(shares)]
        for at in range(units):
            weighed[len(shares) + at] = sum(replaced) / units, 0.0
    # The reserve comes first, and what is summed last.
    order = sorted(weighed, key=lambda k: (k > 0, weighed[k][1] != 0.0))
    return Arrays(
        array("i", order),
        array("d", [weighed[k][0] for k in order]),
        array("d", [weighed[k][1] for k in order]),
        array("d", [metric.weight for metric in metrics.METRICS]),
        array("i", [at for share in shares.items() for at in _columns(*share)]),
    )


def _shares(*, exclusive: bool) -> dict[Share, Kinds]:
    """Return what metrics are made of; the reserve is the first.

    Raise `ValueError` if two are the same spread, or sum, of the same: one would count.
    """
    found: dict[Share, Kinds] = {metrics.RESERVE: {}}
    for at, metric in enumerate(metrics.METRICS):
        share = (exclusive and metric.exclusive) or metric.share
        if share is not None:
            known = found.setdefault(share, {}).setdefault(metric.kind, at)
            if known != at:
                twin = metrics.METRICS[known].name
                raise ValueError(f"the metrics {twin} and {metric.name} are one")
    return found


def _by_unit(shares: dict[Share, Kinds]) -> list[int]:
    """Return the places of those that give way to storage units."""
    table = metrics.METRICS
    return [
        k for k, of in enumerate(shares.values()) if table[min(of.values())].by_unit
    ]


def _columns(share: Share, kinds: Kinds) -> list[int]:
    """Return a share as the kernel's row."""
    per, by = (*share.per, -1, -1)[:2]
    return [
        *(share.of, per, by, share.main, share.copy, share.sign, int(share.planned)),
        *(kinds.get(SPREAD, -1), kinds.get(SUM, -1)),
        int(metrics.METRICS[min(kinds.values())].by_unit),
    ]


def _weighed(shares: dict[Share, Kinds], rows: Rows) -> dict[int, tuple[float, float]]:
    """Return the shares that differ, and the weights of spread and sum with equals.

    With nothing planned and everything as recorded, those that count planned instances
    equal those that do not; without measured loads, three of the four are one.
    """
    all_real = all(rows.mover_column(I_REAL))
    weighed: dict[int, tuple[float, float]] = {}
    first: dict[object, int] = {}
    for k, (share, kinds) in enumerate(shares.items()):
        looks = (
            *(rows.node_column(share.of), share.per),
            *(rows.mover_column(share.main), share.copy, share.sign),
            *(all_real or share.planned, k in _by_unit(shares), k == 0),
        )
        twin = first.setdefault(looks, k)
        spread, added = weighed.get(twin, (0.0, 0.0))
        spread += metrics.METRICS[kinds[SPREAD]].weight if SPREAD in kinds else 0.0
        added += metrics.METRICS[kinds[SUM]].weight if SUM in kinds else 0.0
        weighed[twin] = spread, added
    return weighed
