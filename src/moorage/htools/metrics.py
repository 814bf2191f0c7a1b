# SPDX-License-Identifier: BSD-2-Clause
"""The cluster score: twenty metrics with their weights, 0 is best.

The score is the sum of weight times value over `METRICS`, in that order. A
*spread* is the population standard deviation over the online nodes (divide by
n), computed in two passes from the first node to the last; a *sum* runs over
the online or over the offline nodes. The order of the additions is part of the
definition: the last digits decide between moves that are equally good.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

from moorage.htools.constants import ratio
from moorage.htools.fleet import UnitName
from moorage.htools.node import Node

SPREAD, SUM, OFFLINE, DOMAINS = "spread", "sum", "offline", "domains"


@dataclass(frozen=True, slots=True)
class Metric:
    """One part of the score.

    Attributes
    ----------
    name : str
        As printed.
    weight : float
        What one unit of it costs.
    kind : str
        ``spread`` or ``sum`` over online nodes, ``offline`` (a sum over
        offline nodes), or ``domains`` (merged maps of tags).
    meaning : str
        What it says, in words; "planned" are forthcoming instances.
    """

    name: str
    weight: float
    kind: str
    meaning: str


METRICS: Final = (
    Metric("free_mem_cv", 0.5, SPREAD, "spread of free memory"),
    Metric("free_disk_cv", 0.5, SPREAD, "spread of free disk"),
    Metric("n1_cnt", 1.0, SUM, "instances where N+1 fails"),
    Metric("reserved_mem_cv", 1.0, SPREAD, "spread of memory kept for failover"),
    Metric("offline_all_cnt", 4.0, OFFLINE, "instances on offline nodes"),
    Metric("offline_pri_cnt", 16.0, OFFLINE, "primaries on offline nodes"),
    Metric("vcpu_ratio_cv", 0.5, SPREAD, "spread of virtual CPUs per CPU"),
    Metric("cpu_load_cv", 1.0, SPREAD, "spread of CPU load"),
    Metric("mem_load_cv", 1.0, SPREAD, "spread of memory load"),
    Metric("disk_load_cv", 1.0, SPREAD, "spread of disk load"),
    Metric("net_load_cv", 1.0, SPREAD, "spread of network load"),
    Metric("pri_tags_score", 2.0, SUM, "exclusion tags that meet on a node"),
    Metric("spindles_cv", 0.5, SPREAD, "spread of spindle use"),
    Metric("free_mem_cv_forth", 0.5, SPREAD, "spread of free memory, with planned"),
    Metric("free_disk_cv_forth", 0.5, SPREAD, "spread of free disk, with planned"),
    Metric("vcpu_ratio_cv_forth", 0.5, SPREAD, "spread of virtual CPUs, with planned"),
    Metric("spindles_cv_forth", 0.5, SPREAD, "spread of spindle use, with planned"),
    Metric("location_score", 1.0, SUM, "locations shared or missed"),
    Metric(
        "location_exclusion_score",
        1.0,
        DOMAINS,
        "exclusion tags that meet in a location",
    ),
    Metric("reserved_mem_rtotal", 0.25, SUM, "memory kept for failover"),
)

FREE_DISK: Final = (1, 14)
"""Places of the metrics that storage units replace."""
RESERVED_WEIGHT: Final = METRICS[-1].weight


def values(node: Node) -> tuple[float, ...]:
    """Return a node's share in each metric, shape (20,)."""
    row = node.row
    if row is None:
        row = node.row = _values(node)
    return row


def _values(node: Node) -> tuple[float, ...]:
    mem = node.mem_total
    reserved = ratio(node.reserved, mem)
    primaries = len(node.primaries)
    everyone = primaries + len(node.secondaries)
    load = node.load
    return (
        ratio(node.unallocated, mem),
        node.disk_share,
        float(everyone) if node.fails_n1 else 0.0,
        reserved,
        float(everyone),
        float(primaries),
        ratio(ratio(node.cpu_used, node.cpus), node.cpu_speed),
        load[0],
        load[1],
        load[2],
        load[3],
        float(node.conflicts),
        ratio(node.spindles_used, node.spindle_limit),
        ratio(node.mem_free_all, mem),
        node.disk_share_all,
        ratio(ratio(node.cpu_used_all, node.cpus), node.cpu_speed),
        ratio(node.spindles_used_all, node.spindle_limit),
        float(node.location),
        0.0,
        reserved,
    )


def total(column: Iterable[float]) -> float:
    """Return the sum from the first to the last, starting at 0.

    >>> total([0.1, 0.2, 0.3])
    0.6000000000000001
    """
    # The built-in sum compensates rounding from Python 3.12 on; this must not.
    result = 0.0
    for value in column:
        result += value
    return result


def variance(column: Sequence[float]) -> float:
    """Return the population variance, in two passes; 0 for no value."""
    count = len(column)
    if not count:
        return 0.0
    mean = total(column) / count
    squares = 0.0
    for value in column:
        off = value - mean
        squares += off * off
    return squares / count


def spread(column: Sequence[float]) -> float:
    """Return the population standard deviation.

    >>> spread([1.0, 3.0])
    1.0
    """
    return sqrt(variance(column)) if column else 0.0


def unit_spread(nodes: Sequence[Node], names: Sequence[UnitName]) -> float:
    """Return the mean over storage units of the spread of their free share.

    Only the nodes that have a unit count for it, so that a scarce unit is not
    drowned by the nodes that never had one. With one unit a node this is the
    classic free-disk metric.
    """
    spreads = []
    for name in names:
        shares = [node.units.share(name) for node in nodes if node.units is not None]
        spreads.append(spread([share for share in shares if share is not None]))
    return total(spreads) / len(spreads) if spreads else 0.0


def merged_domains(nodes: Iterable[Node]) -> float:
    """Return how many instances share location and exclusion tags, less the tags."""
    counts: dict[tuple[str, str], int] = {}
    for node in nodes:
        for key, count in node.domains.items():
            counts[key] = counts.get(key, 0) + count
    return float(sum(counts.values()) - len(counts))


def measure(nodes: Sequence[Node]) -> list[float]:
    """Return the value of each metric, shape (20,); nothing with nobody online."""
    online = [node for node in nodes if not node.offline]
    if not online:
        return []
    gone = [values(node) for node in nodes if node.offline]
    columns = list(zip(*(values(node) for node in online), strict=True))
    result = []
    for at, metric in enumerate(METRICS):
        if metric.kind == SPREAD:
            result.append(spread(columns[at]))
        elif metric.kind == SUM:
            result.append(total(columns[at]))
        elif metric.kind == OFFLINE:
            result.append(total(row[at] for row in gone))
        else:
            result.append(merged_domains(online))
    _measure_units(result, online)
    return result


def _measure_units(result: list[float], online: Sequence[Node]) -> None:
    """Replace the free-disk metrics where nodes report storage units."""
    units = [node.units for node in online if node.units is not None]
    if not units:
        return
    names = tuple(dict.fromkeys(name for held in units for name in held.names))
    for at in FREE_DISK:
        result[at] = unit_spread(online, names)


def weigh(measured: Sequence[float]) -> float:
    """Return the score of measured metrics.

    >>> weigh([1.0] * 20)
    34.25
    """
    return total(
        value * metric.weight for value, metric in zip(measured, METRICS, strict=False)
    )


def score(nodes: Sequence[Node]) -> float:
    """Return the cluster score; 0 is perfect."""
    return weigh(measure(nodes))


def least_score(nodes: Sequence[Node]) -> float:
    """Return a bound below which no placement can come.

    Memory reserved for failover cannot vanish: spread evenly, it is the
    difference of sharing it over all nodes but the largest and over all nodes.
    """
    mem = [node.mem_total for node in nodes]
    whole = total(mem)
    if len(mem) < 2 or whole - max(mem) <= 0:
        return 0.0
    kept = sum(sum(node.peers.values()) for node in nodes)
    return RESERVED_WEIGHT * (kept / (whole - max(mem)) - kept / whole)
