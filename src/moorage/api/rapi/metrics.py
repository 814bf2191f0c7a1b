# SPDX-License-Identifier: BSD-2-Clause
"""Metrics as Prometheus reads them: each is declared once, with its words.

Names and units are that ecosystem's: ``moorage_``, base units (bytes, seconds), a label
only for what a cluster has few of.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .looking import rows
from .route import Asked, Handler

_MIB = 1024 * 1024
_WAITING = ("queued", "waiting")
Labels = Mapping[str, str]
Sample = tuple[Labels, float]


@dataclass(frozen=True)
class Seen:
    """What queries told, as objects with the fields that are wanted.

    Attributes
    ----------
    now
        The time in seconds.
    """

    nodes: list[dict[str, Any]] = field(default_factory=list)
    disks: list[dict[str, Any]] = field(default_factory=list)
    instances: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class Metric:
    """A gauge.

    Attributes
    ----------
    name
        Without ``moorage_``.
    help
        What it says, in a sentence.
    samples
        Yields its values, each with its labels.
    """

    name: str
    help: str
    samples: Callable[[Seen], Iterable[Sample]]

    def lines(self, seen: Seen) -> Iterator[str]:
        """Yield it as text."""
        yield f"# HELP moorage_{self.name} {self.help}"
        yield f"# TYPE moorage_{self.name} gauge"
        for labels, value in self.samples(seen):
            inside = ",".join(f'{key}="{_escaped(one)}"' for key, one in labels.items())
            shown = f"{{{inside}}}" if inside else ""
            yield f"moorage_{self.name}{shown} {value:.15g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _counted(label: str, words: Iterable[str]) -> list[Sample]:
    return [({label: word}, count) for word, count in sorted(Counter(words).items())]


def _node_state(node: Mapping[str, Any]) -> str:
    if node["offline"]:
        return "offline"
    return "drained" if node["drained"] else "online"


def _of_nodes(name: str, times: int = 1) -> Callable[[Seen], Iterator[Sample]]:
    """Return what yields a number of each node that told it."""

    def samples(seen: Seen) -> Iterator[Sample]:
        for node in seen.nodes:
            if isinstance(node[name], int | float):
                yield {"node": node["name"]}, node[name] * times

    return samples


def _of_units(name: str) -> Callable[[Seen], Iterator[Sample]]:
    """Return what yields an amount of each storage unit that is known, in bytes."""

    def samples(seen: Seen) -> Iterator[Sample]:
        for node in seen.nodes:
            for unit in node["storage"] or ():
                if unit[name] is not None:
                    kind, key, *_ = unit["sunit"]
                    labels = {"node": node["name"], "type": kind, "unit": key}
                    yield labels, unit[name] * _MIB

    return samples


def _copies(seen: Seen) -> Iterator[Sample]:
    for node in seen.nodes:
        if node["master_candidate"] and node["copy"]:
            yield {"node": node["name"]}, float(node["copy"] == "current")


def _waiting(seen: Seen) -> Iterator[Sample]:
    """Yield how long the job has waited that waits longest; 0 where none does."""
    since = [one["received_ts"] for one in seen.jobs if one["status"] in _WAITING]
    oldest = min((stamp[0] for stamp in since if stamp), default=seen.now)
    yield {}, max(0.0, seen.now - oldest)


METRICS = (
    Metric(
        "nodes",
        "Nodes, by what their administrator says of them.",
        lambda seen: _counted("state", map(_node_state, seen.nodes)),
    ),
    Metric("node_memory_bytes", "Memory of a node.", _of_nodes("mtotal", _MIB)),
    Metric(
        "node_memory_free_bytes", "Free memory of a node.", _of_nodes("mfree", _MIB)
    ),
    Metric(
        "node_certificate_end_seconds",
        "When a node's certificate is over, since the epoch.",
        _of_nodes("certificate_ends"),
    ),
    Metric(
        "candidate_copy_current",
        "Whether a candidate's copy of the state is whole (1) or behind (0).",
        _copies,
    ),
    Metric("storage_unit_bytes", "Size of a storage unit.", _of_units("total")),
    Metric("storage_unit_free_bytes", "Room in a storage unit.", _of_units("free")),
    Metric(
        "instances",
        "Instances, by the state that they are to be in.",
        lambda seen: _counted("state", (one["admin_state"] for one in seen.instances)),
    ),
    Metric(
        "disks",
        "Disks, by whether an instance has them.",
        lambda seen: _counted(
            "state",
            ("attached" if one["instance"] else "detached" for one in seen.disks),
        ),
    ),
    Metric(
        "disks_quarantined",
        "Disks that nobody can use until somebody has looked.",
        lambda seen: [({}, sum(bool(one["quarantine"]) for one in seen.disks))],
    ),
    Metric(
        "jobs",
        "Jobs in the queue, by status.",
        lambda seen: _counted("status", (one["status"] for one in seen.jobs)),
    ),
    Metric(
        "job_wait_seconds", "How long the job has waited that waits longest.", _waiting
    ),
)
_FIELDS = {
    "node": (
        *("name", "offline", "drained", "master_candidate", "copy"),
        *("mtotal", "mfree", "certificate_ends", "storage"),
    ),
    "disk": ("instance", "quarantine"),
    "instance": ("admin_state",),
    "job": ("status", "received_ts"),
}


def text(seen: Seen) -> str:
    """Return all metrics, in the text format of Prometheus."""
    return "".join(f"{line}\n" for one in METRICS for line in one.lines(seen))


class Metrics(Handler):
    """Tells them."""

    answer = str
    media = "text/plain; version=0.0.4; charset=utf-8"

    async def __call__(self, asked: Asked) -> str:
        """Ask the master, and return what it told."""
        found = {}
        for what, fields in _FIELDS.items():
            told = await rows(asked, what, fields)
            found[f"{what}s"] = [dict(zip(fields, row, strict=True)) for row in told]
        return text(Seen(**found, now=time.time()))
