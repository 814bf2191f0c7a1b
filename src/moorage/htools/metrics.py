# SPDX-License-Identifier: BSD-2-Clause
"""The cluster score: metrics with their weights, 0 is best.

The score is the sum of weight times value over `METRICS`, in that order. A
*spread* is the population standard deviation over the online nodes (divide by
n), computed in two passes from the first node to the last; a *sum* runs over
the online or over the offline nodes. The order of the additions is part of the
definition: the last digits decide between moves that are equally good.
"""

from collections.abc import Callable, Iterable, Sequence
from math import sqrt
from typing import Final, NamedTuple

from moorage.htools.constants import ratio
from moorage.htools.fleet import UnitName
from moorage.htools.kernel import columns as col
from moorage.htools.node import Node

SPREAD, SUM, OFFLINE, DOMAINS = "spread", "sum", "offline", "domains"


class Share(NamedTuple):
    """What the value of a metric is on the kernel's rows: a column, divided by others.

    Attributes
    ----------
    of : int
        Column of the node that changes as instances come and go.
    per : tuple of int
        Columns of the node by which it is divided, at most two; 1 where one is 0.
    main, copy : int
        Columns of an instance that it changes by where that runs, and where that has
        its second copy; -1 for no change.
    sign : int
        -1 where it shrinks as instances come.
    planned : bool
        Whether instances that are only planned count.
    """

    of: int
    per: tuple[int, ...]
    main: int = -1
    copy: int = -1
    sign: int = 1
    planned: bool = False


class Metric(NamedTuple):
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
    value : callable
        Returns a node's share in it.
    share : Share or None
        The same on rows, without which the kernel has to be taught what it is.
    exclusive : Share or None
        What takes the place of `share` under exclusive storage.
    by_unit : bool
        Whether the mean over storage units stands in for it, where nodes report any.
    """

    name: str
    weight: float
    kind: str
    meaning: str
    value: Callable[[Node], float]
    share: Share | None = None
    exclusive: Share | None = None
    by_unit: bool = False


def _instances(node: Node) -> float:
    return float(len(node.primaries) + len(node.secondaries))


def _load(name: str, meaning: str, at: int, copy: int = -1) -> Metric:
    """Return the metric of one kind of dynamic load."""
    share = Share(col.LOAD + at, (), col.I_LOAD + at, copy)
    return Metric(name, 1.0, SPREAD, meaning, lambda node: node.load[at], share)


RESERVE: Final = Share(col.KEPT, (col.MEM,))
"""The one that is no multiple of what comes and goes: the kernel computes it."""

METRICS: Final = (
    Metric(
        "free_mem_cv",
        0.5,
        SPREAD,
        "spread of free memory",
        lambda node: ratio(node.unallocated, node.mem_total),
        Share(col.FREE, (col.MEM,), col.I_RUNS, sign=-1),
    ),
    Metric(
        "free_disk_cv",
        0.5,
        SPREAD,
        "spread of free disk",
        lambda node: node.disk_share,
        Share(col.DISK, (col.DISKS,), col.I_DISK, col.I_DISK, sign=-1),
        Share(col.WHOLE, (col.WHOLES,), col.I_WHOLE, col.I_WHOLE, sign=-1),
        by_unit=True,
    ),
    Metric(
        "n1_cnt",
        1.0,
        SUM,
        "instances where N+1 fails",
        lambda node: _instances(node) if node.fails_n1 else 0.0,
    ),
    Metric(
        "reserved_mem_cv",
        1.0,
        SPREAD,
        "spread of memory kept for failover",
        lambda node: ratio(node.reserved, node.mem_total),
        RESERVE,
    ),
    Metric("offline_all_cnt", 4.0, OFFLINE, "instances on offline nodes", _instances),
    Metric(
        "offline_pri_cnt",
        16.0,
        OFFLINE,
        "primaries on offline nodes",
        lambda node: float(len(node.primaries)),
    ),
    Metric(
        "vcpu_ratio_cv",
        0.5,
        SPREAD,
        "spread of virtual CPUs per CPU",
        lambda node: ratio(ratio(node.cpu_used, node.cpus), node.cpu_speed),
        Share(col.CPU, (col.CPUS, col.SPEED), col.I_CPU),
    ),
    _load("cpu_load_cv", "spread of CPU load", 0),
    _load("mem_load_cv", "spread of memory load", 1),
    _load("disk_load_cv", "spread of disk load", 2, col.I_LOAD + 2),
    _load("net_load_cv", "spread of network load", 3),
    Metric(
        "pri_tags_score",
        2.0,
        SUM,
        "exclusion tags that meet on a node",
        lambda node: float(node.conflicts),
    ),
    Metric(
        "spindles_cv",
        0.5,
        SPREAD,
        "spread of spindle use",
        lambda node: ratio(node.spindles_used, node.spindle_limit),
        Share(col.SPINDLES, (col.SPINDLE_LIMIT,), col.I_SPINDLES, col.I_SPINDLES),
        Share(col.SPINDLES, (col.SPINDLE_LIMIT,)),
    ),
    Metric(
        "free_mem_cv_forth",
        0.5,
        SPREAD,
        "spread of free memory, with planned",
        lambda node: ratio(node.mem_free_all, node.mem_total),
        Share(col.FREE_ALL, (col.MEM,), col.I_MEM, sign=-1, planned=True),
    ),
    Metric(
        "free_disk_cv_forth",
        0.5,
        SPREAD,
        "spread of free disk, with planned",
        lambda node: node.disk_share_all,
        Share(
            col.DISK_ALL, (col.DISKS,), col.I_DISK, col.I_DISK, sign=-1, planned=True
        ),
        Share(
            col.WHOLE_ALL,
            (col.WHOLES,),
            col.I_WHOLE,
            col.I_WHOLE,
            sign=-1,
            planned=True,
        ),
        by_unit=True,
    ),
    Metric(
        "vcpu_ratio_cv_forth",
        0.5,
        SPREAD,
        "spread of virtual CPUs, with planned",
        lambda node: ratio(ratio(node.cpu_used_all, node.cpus), node.cpu_speed),
        Share(col.CPU_ALL, (col.CPUS, col.SPEED), col.I_CPU, planned=True),
    ),
    Metric(
        "spindles_cv_forth",
        0.5,
        SPREAD,
        "spread of spindle use, with planned",
        lambda node: ratio(node.spindles_used_all, node.spindle_limit),
        Share(
            col.SPINDLES_ALL,
            (col.SPINDLE_LIMIT,),
            col.I_SPINDLES,
            col.I_SPINDLES,
            planned=True,
        ),
        Share(col.SPINDLES_ALL, (col.SPINDLE_LIMIT,)),
    ),
    Metric(
        "location_score",
        1.0,
        SUM,
        "locations shared or missed",
        lambda node: float(node.location),
    ),
    Metric(
        "location_exclusion_score",
        1.0,
        DOMAINS,
        "exclusion tags that meet in a location",
        lambda _: 0.0,
    ),
    Metric(
        "reserved_mem_rtotal",
        0.25,
        SUM,
        "memory kept for failover",
        lambda node: ratio(node.reserved, node.mem_total),
        RESERVE,
    ),
)

RESERVED_WEIGHT: Final = METRICS[col.G_RESERVED].weight


def values(node: Node) -> tuple[float, ...]:
    """Return a node's share in each metric, in their order."""
    row = node.row
    if row is None:
        row = node.row = tuple([metric.value(node) for metric in METRICS])
    return row


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
    drowned by the nodes that never had one. A unit whose room nobody knows is no part
    of it: unknown is not even. With one unit a node this is the classic free-disk
    metric.
    """
    spreads = []
    for name in names:
        told = [node.units.share(name) for node in nodes if node.units is not None]
        shares = [share for share in told if share is not None]
        if shares:
            spreads.append(spread(shares))
    return total(spreads) / len(spreads) if spreads else 0.0


def merged_domains(nodes: Iterable[Node]) -> float:
    """Return how many instances share location and exclusion tags, less the tags."""
    counts: dict[tuple[str, str], int] = {}
    for node in nodes:
        for key, count in node.domains.items():
            counts[key] = counts.get(key, 0) + count
    return float(sum(counts.values()) - len(counts))


def measure(nodes: Sequence[Node]) -> list[float]:
    """Return the value of each metric; nothing with nobody online."""
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
    mean = unit_spread(online, names)
    for at, metric in enumerate(METRICS):
        if metric.by_unit:
            result[at] = mean


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
