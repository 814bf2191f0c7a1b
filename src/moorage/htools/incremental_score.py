# SPDX-License-Identifier: BSD-2-Clause
"""Running sums of the score: one node's change costs O(1)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Self

from moorage.htools.fleet import UnitName
from moorage.htools.kernel.columns import G_DOMAINS
from moorage.htools.metrics import (
    METRICS,
    SPREAD,
    SUM,
    measure,
    total,
    values,
    variance,
)
from moorage.htools.node import Node


@dataclass(frozen=True, slots=True)
class Sums:
    """Running sums of every metric, so that one node's change costs O(1).

    Attributes
    ----------
    count : int
        Online nodes.
    sums, variances : tuple of float
        Of each metric over the nodes, in their order.
    domains : dict
        The merged maps of tags over online nodes.
    units : dict
        How many nodes tell the free share of each storage unit, its sum and variance.
    """

    count: int
    sums: tuple[float, ...]
    variances: tuple[float, ...]
    domains: dict[tuple[str, str], int]
    units: dict[UnitName, tuple[int, float, float]] | None = None

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> Self:
        """Return the sums over some nodes."""
        measured = measure(nodes)
        online = [values(node) for node in nodes if not node.offline]
        columns = list(zip(*online, strict=True))
        spreads = [
            (total(columns[at]), variance(columns[at]))
            if metric.kind == SPREAD
            else (measured[at], 0.0)
            for at, metric in enumerate(METRICS)
        ]
        merged: Counter[tuple[str, str]] = Counter()
        for node in nodes:
            if not node.offline:
                merged.update(node.domains)
        return cls(
            len(online),
            tuple(s for s, _ in spreads),
            tuple(v for _, v in spreads),
            merged,
            _units([node for node in nodes if not node.offline]),
        )

    def changed(self, old: Node, new: Node) -> Self:
        """Return the sums with one node in another condition."""
        if old.offline:
            return self
        count, sums, variances = self.count, list(self.sums), list(self.variances)
        was, now = values(old), values(new)
        square = float(count * count)
        for at, metric in enumerate(METRICS):
            x, y = was[at], now[at]
            if metric.kind == SPREAD:
                change = y - x
                more = y * y - x * x
                dev = (count * more - 2 * sums[at] * change) - change * change
                sums[at] = sums[at] + change
                variances[at] = max(0.0, variances[at] + dev / square)
            elif metric.kind == SUM:
                sums[at] = sums[at] + y - x
        sums[G_DOMAINS] += self._excess(old, new)
        units = self._changed_units(old, new)
        return type(self)(count, tuple(sums), tuple(variances), self.domains, units)

    def _changed_units(
        self, old: Node, new: Node
    ) -> dict[UnitName, tuple[int, float, float]] | None:
        """Return the sums of storage units with one node in another condition."""
        if self.units is None or old.units is None or new.units is None:
            return self.units
        found = dict(self.units)
        for name in old.units.names if old.units is not new.units else ():
            x, y = old.units.share(name), new.units.share(name)
            if x is None or y is None:
                continue
            count, held, spread = found[name]
            change = y - x
            dev = (count * (y * y - x * x) - 2 * held * change) - change * change
            found[name] = count, held + change, max(0.0, spread + dev / count**2)
        return found

    def _excess(self, old: Node, new: Node) -> float:
        """Return how the excess of shared tags grows; new tags are no excess."""
        if new.domains is old.domains:
            return 0.0
        grown = sum(new.domains.values()) - sum(old.domains.values())
        return float(grown - len(new.domains.keys() - self.domains.keys()))

    def score(self) -> float:
        """Return the score of the sums."""
        result, mean = 0.0, self._unit_spread()
        for at, metric in enumerate(METRICS):
            spread = metric.kind == SPREAD
            value = sqrt(self.variances[at]) if spread else self.sums[at]
            if mean is not None and metric.by_unit:
                value = mean
            result += value * metric.weight
        return result

    def _unit_spread(self) -> float | None:
        """Return the mean spread over storage units; None where nobody tells any."""
        if self.units is None:
            return None
        spreads = [sqrt(squares) for _, _, squares in self.units.values()]
        return total(spreads) / len(spreads) if spreads else 0.0


def _units(online: Sequence[Node]) -> dict[UnitName, tuple[int, float, float]] | None:
    told = [node.units for node in online if node.units is not None]
    if not told:
        return None
    found = {}
    for name in dict.fromkeys(name for held in told for name in held.names):
        known = [held.share(name) for held in told]
        shares = [share for share in known if share is not None]
        if shares:
            found[name] = len(shares), total(shares), variance(shares)
    return found
