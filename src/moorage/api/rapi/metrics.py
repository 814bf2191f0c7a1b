# SPDX-License-Identifier: BSD-2-Clause
"""Metrics as Prometheus reads them: each is declared once, with its words.

Names and units are that ecosystem's: ``moorage_``, base units (bytes, seconds), a label
only for what a cluster has few of.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from .exposition import Histogram, Labels, Metric, Sample, Samples, Seen
from .looking import rows
from .route import Asked, Handler

_MIB = 1024 * 1024


# -- nodes ---------------------------------------------------------------------------


def _node_state(node: Mapping[str, Any]) -> str:
    if node["offline"]:
        return "offline"
    return "drained" if node["drained"] else "online"


def _nodes(seen: Seen) -> Iterator[Sample]:
    for state, number in sorted(Counter(map(_node_state, seen.nodes)).items()):
        yield {"state": state}, number


def _answers(seen: Seen) -> Iterator[Sample]:
    for node in seen.nodes:
        if not node["offline"]:
            yield {"node": node["name"]}, float(_is_number(node["mtotal"]))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _of_nodes(name: str, times: int = 1) -> Samples:
    """Return what yields a number of each node that told it."""

    def samples(seen: Seen) -> Iterator[Sample]:
        for node in seen.nodes:
            if _is_number(node[name]):
                yield {"node": node["name"]}, node[name] * times

    return samples


def _of_units(name: str) -> Samples:
    """Return what yields an amount of each storage unit that is known, in bytes."""

    def samples(seen: Seen) -> Iterator[Sample]:
        for node in seen.nodes:
            for unit in node["storage"] or ():
                if unit[name] is not None:
                    kind, key, *_ = unit["sunit"]
                    labels = {"node": node["name"], "type": kind, "unit": key}
                    yield labels, unit[name] * _MIB

    return samples


# -- what the master counts ------------------------------------------------------------


def _one(*path: str) -> Samples:
    """Return what yields a number that the master told, if it did."""

    def samples(seen: Seen) -> Iterator[Sample]:
        found = seen.of(*path)
        if found is not None:
            yield {}, found

    return samples


def _each(label: str, *path: str) -> Samples:
    """Return what yields numbers that the master told by a word."""

    def samples(seen: Seen) -> Iterator[Sample]:
        for word, number in sorted((seen.of(*path) or {}).items()):
            yield {label: word}, number

    return samples


def _waiting(seen: Seen) -> Iterator[Sample]:
    ages = seen.of("ages") or {}
    yield {}, max(ages.get("queued", 0.0), ages.get("waiting", 0.0))


def _copies(name: str) -> Samples:
    def samples(seen: Seen) -> Iterator[Sample]:
        for one in seen.of("copies") or ():
            if one[name] is not None:
                yield {"node": one["node"]}, float(one[name])

    return samples


def _members(name: str) -> Samples:
    """Return what yields a number of each member of the store, where it is known."""

    def samples(seen: Seen) -> Iterator[Sample]:
        for one in seen.of("store", "members") or ():
            if one[name] is not None:
                yield {"member": one["name"]}, float(one[name])

    return samples


def _problems(seen: Seen) -> Iterator[Sample]:
    found = seen.of("store", "troubles")
    if found is not None:
        urgent = sum(one["urgent"] for one in found)
        yield {"severity": "critical"}, urgent
        yield {"severity": "warning"}, len(found) - urgent


def _leads(seen: Seen) -> Iterator[Sample]:
    since = seen.of("store", "since")
    if since:
        yield {"node": seen.of("store", "master")}, since


def _failed(seen: Seen) -> Iterator[Sample]:
    for name, spread in (seen.of("verbs") or {}).items():
        yield {"verb": name}, spread["failed"]


def _verbs(seen: Seen) -> Iterator[tuple[Labels, Mapping[str, Any]]]:
    for name, spread in (seen.of("verbs") or {}).items():
        yield {"verb": name}, spread


def _lock_waits(seen: Seen) -> Iterator[tuple[Labels, Mapping[str, Any]]]:
    found = seen.of("locks", "waits")
    if found:
        yield {}, found


# -- what the door counts --------------------------------------------------------------


def _requests(seen: Seen) -> Iterator[Sample]:
    if seen.gate:
        for status, number in sorted(seen.gate.answered.items()):
            yield {"code": str(status)}, number


def _of_door(name: str, seen: Seen) -> Iterator[Sample]:
    if seen.gate:
        yield {}, getattr(seen.gate, name)


def _lost(at: int, seen: Seen) -> Iterator[Sample]:
    if seen.lost:
        yield {}, seen.lost[at]


METRICS: tuple[Metric | Histogram, ...] = (
    Metric("nodes", "Nodes, by what their administrator says of them.", _nodes),
    Metric("node_up", "Whether a node that is not offline answered (1).", _answers),
    Metric("node_memory_bytes", "Memory of a node.", _of_nodes("mtotal", _MIB)),
    Metric(
        "node_memory_free_bytes", "Free memory of a node.", _of_nodes("mfree", _MIB)
    ),
    Metric(
        "node_certificate_end_timestamp_seconds",
        "When a node's certificate is over, since the epoch.",
        _of_nodes("certificate_ends"),
    ),
    Metric(
        "rapi_certificate_end_timestamp_seconds",
        "When the door's certificate is over, since the epoch.",
        partial(_of_door, "certificate_end"),
    ),
    Metric(
        "nodes_not_survivable",
        "Nodes whose loss would leave an instance without a place.",
        partial(_lost, 0),
    ),
    Metric(
        "nodes_not_survivable_computed_timestamp_seconds",
        "When that was computed, since the epoch: at most every ten minutes.",
        partial(_lost, 1),
    ),
    Metric(
        "candidate_copy_current",
        "Whether a candidate's copy of the state is whole (1) or behind (0).",
        _copies("current"),
    ),
    Metric(
        "candidate_copy_behind_commits",
        "Commits that a candidate's copy lacks, where that is known.",
        _copies("behind"),
    ),
    Metric(
        "store_problems",
        "What needs somebody where the state is kept; critical: no more writes.",
        _problems,
    ),
    Metric(
        "store_member_up",
        "Whether a member of the etcd with the state answered (1).",
        _members("up"),
    ),
    Metric(
        "store_member_database_bytes",
        "Size of the database of a member of etcd.",
        _members("size"),
    ),
    Metric(
        "store_member_quota_bytes",
        "Size that the database of a member of etcd may have.",
        _members("quota"),
    ),
    Metric("storage_unit_bytes", "Size of a storage unit.", _of_units("total")),
    Metric("storage_unit_free_bytes", "Room in a storage unit.", _of_units("free")),
    Metric(
        "instances",
        "Instances, by the state that they are to be in.",
        _each("state", "objects", "instances"),
    ),
    Metric(
        "disks",
        "Disks, by whether an instance has them.",
        _each("state", "objects", "disks"),
    ),
    Metric(
        "disk_attachments",
        "Disks of instances, by whether their nodes hold them ready (active).",
        _each("state", "objects", "attachments"),
    ),
    Metric(
        "disks_quarantined",
        "Disks that nobody can use until somebody has looked.",
        _one("objects", "quarantined"),
    ),
    Metric(
        "disks_behind",
        "Mirrored disks of which one copy may lack what was written last.",
        _one("objects", "behind"),
    ),
    Metric("jobs", "Jobs in the queue, by status.", _each("status", "jobs")),
    Metric(
        "job_oldest_seconds",
        "Age of the oldest job of each status that has not ended.",
        _each("status", "ages"),
    ),
    Metric(
        "job_wait_seconds", "How long the job has waited that waits longest.", _waiting
    ),
    Metric(
        "jobs_waiting_for_locks", "Jobs that wait for locks.", _one("locks", "waiting")
    ),
    Metric(
        "lock_longest_wait_seconds",
        "How long the job has waited for locks that waits longest.",
        _one("locks", "longest"),
    ),
    Histogram(
        "lock_wait_seconds", "How long operations waited for their locks.", _lock_waits
    ),
    Histogram(
        "verb_duration_seconds",
        "How long nodes took for what jobs had them do, by kind.",
        _verbs,
    ),
    Metric(
        "verb_failures_total",
        "How much of what jobs had nodes do has failed, by kind.",
        _failed,
        "counter",
    ),
    Metric(
        "master_term",
        "Number of the lead: each start and each change of master counts on.",
        _one("master", "term"),
    ),
    Metric(
        "master_lead_start_timestamp_seconds",
        "Since when the master is on its node, since the epoch; where on record.",
        _leads,
    ),
    Metric(
        "audit_entries_total",
        "Entries that the audit log has had.",
        _one("master", "audit"),
        "counter",
    ),
    Metric(
        "rapi_requests_total",
        "Requests that the door has answered, by status.",
        _requests,
        "counter",
    ),
    Metric(
        "rapi_request_seconds_total",
        "Seconds that the door took for all of them.",
        partial(_of_door, "seconds"),
        "counter",
    ),
    Metric(
        "rapi_logins_failed_total",
        "Logins at the door that failed.",
        partial(_of_door, "failures"),
        "counter",
    ),
)
_FIELDS = (
    *("name", "offline", "drained"),
    *("mtotal", "mfree", "certificate_ends", "storage"),
)


def text(seen: Seen) -> str:
    """Return all metrics, in the text format of Prometheus."""
    return "".join(f"{line}\n" for one in METRICS for line in one.lines(seen))


class Metrics(Handler):
    """Tells them."""

    answer = str
    media = "text/plain; version=0.0.4; charset=utf-8"

    async def __call__(self, asked: Asked) -> str:
        """Ask the master, and return what it told."""
        found = await rows(asked, "node", _FIELDS)
        nodes = [dict(zip(_FIELDS, row, strict=True)) for row in found]
        told = await asked.luxi.call("QueryMetrics")
        lost = asked.survival.lost(asked.luxi) if asked.survival else None
        return text(Seen(nodes=nodes, told=told, gate=asked.gate, lost=lost))
