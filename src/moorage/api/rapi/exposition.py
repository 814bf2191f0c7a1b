# SPDX-License-Identifier: BSD-2-Clause
"""How metrics are declared, and written as Prometheus reads them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .limits import Gate

Labels = Mapping[str, str]
Sample = tuple[Labels, float]


@dataclass(frozen=True)
class Seen:
    """What was told.

    Attributes
    ----------
    nodes
        As objects with the fields that are wanted.
    told
        By the master's method `QueryMetrics`.
    gate
        What the door itself counts; None for nothing.
    lost
        How many nodes cannot be lost, and when that was computed, in seconds; None
        while nobody knows.
    """

    nodes: list[dict[str, Any]] = field(default_factory=list)
    told: Mapping[str, Any] = field(default_factory=dict)
    gate: Gate | None = None
    lost: tuple[int, float] | None = None

    def of(self, *path: str) -> Any:  # noqa: ANN401
        """Return what the master told at some place; None for nothing."""
        found: Any = self.told
        for name in path:
            found = found.get(name) if found else None
        return found


Samples = Callable[[Seen], Iterable[Sample]]


@dataclass(frozen=True, slots=True)
class Metric:
    """A number, or many with labels.

    Attributes
    ----------
    name
        Without ``moorage_``.
    help
        What it says, in a sentence.
    samples
        Yields its values, each with its labels.
    kind
        ``gauge``, or ``counter`` for what only rises while a process lives.
    """

    name: str
    help: str
    samples: Samples
    kind: str = "gauge"

    def lines(self, seen: Seen) -> Iterator[str]:
        """Yield it as text."""
        yield from _head(self)
        for labels, value in self.samples(seen):
            yield _line(self.name, labels, value)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How long things took: Prometheus' ``_bucket``, ``_sum`` and ``_count``.

    Attributes
    ----------
    spreads
        Yields labels, and what was counted, as `QueryMetrics` tells it.
    """

    name: str
    help: str
    spreads: Callable[[Seen], Iterable[tuple[Labels, Mapping[str, Any]]]]
    kind: str = "histogram"

    def lines(self, seen: Seen) -> Iterator[str]:
        """Yield it as text."""
        yield from _head(self)
        for labels, spread in self.spreads(seen):
            bounds = zip(seen.of("bounds"), spread["within"], strict=True)
            for bound, number in (*bounds, ("+Inf", spread["number"])):
                inside = {**labels, "le": _number(bound)}
                yield _line(f"{self.name}_bucket", inside, number)
            yield _line(f"{self.name}_sum", labels, spread["seconds"])
            yield _line(f"{self.name}_count", labels, spread["number"])


def _number(bound: float | str) -> str:
    return bound if isinstance(bound, str) else f"{bound:g}"


def _head(metric: Metric | Histogram) -> Iterator[str]:
    yield f"# HELP moorage_{metric.name} {metric.help}"
    yield f"# TYPE moorage_{metric.name} {metric.kind}"


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(one)}"' for key, one in labels.items())
    shown = f"{{{inside}}}" if inside else ""
    return f"moorage_{name}{shown} {value:.15g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
