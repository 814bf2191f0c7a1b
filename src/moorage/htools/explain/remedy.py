# SPDX-License-Identifier: BSD-2-Clause
"""The smallest change that turns a no into a yes, found by trying.

First one quantity of the request alone is turned (memory, a disk, processors,
spindles, number of disks), down or, where a policy asks for more, up; then all
of them together; then, where nothing of the request helps, one node. Each
number is the least by construction: the change makes it fit, and was tried with
one unit less, too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from moorage.htools.fleet import InstanceRow
from moorage.htools.placement.requests import Allocate
from moorage.htools.policy import Policy
from moorage.htools.state import State

Fits = Callable[[State, Allocate], bool]
"""Says whether a request can be met."""


@dataclass(frozen=True, slots=True)
class Part:
    """One quantity that changes.

    Attributes
    ----------
    what : str
        ``memory``, ``disk``, ``vcpus``, ``spindles`` or ``disks`` of the request;
        ``exclusion tags``, ``restriction`` or ``capacity check`` where that must go.
        ``memory``, ``disk``, ``processors``, ``spindles``, ``online`` or a storage
        unit of a node.
    before : int or None
        What it was; None when nobody said.
    after : int
        What makes it fit. For nodes, both count from 0: what is added.
    disk : int or None
        Which disk, counted from 0; None when there is one, or none is meant.
    node : str
        The node that changes; empty for the request.
    """

    what: str
    before: int | None
    after: int
    disk: int | None = None
    node: str = ""

    @property
    def by(self) -> int:
        """How much it changes."""
        return abs(self.after - (self.before or 0))

    def words(self) -> str:
        """Return the part in words, as in ``512 MiB less memory``."""
        if self.what in _CLAIMS:
            return _CLAIMS[self.what].format(self.node)
        unit = _UNITS.get(self.what, "" if not self.node else "MiB ")
        noun = self.what[:-1] if self.by == 1 and not unit else self.what
        where = f" in disk {self.disk}" if self.disk is not None else ""
        if self.what == "disk" and self.disk is not None:
            noun, where = f"disk {self.disk}", ""
        if self.node:
            return f"{self.by} {unit}more {_FREE.get(noun, noun)} on {self.node}"
        if self.before is None:
            return f"{self.by} {noun} named{where}"
        sign = "more" if self.after > self.before else "less"
        if not unit and sign == "less":
            sign = "fewer"
        return f"{self.by} {unit}{sign} {noun}{where}"


_UNITS: Final = {
    "memory": "MiB ",
    "disk": "MiB ",
    "vcpus": "",
    "processors": "",
    "spindles": "",
    "disks": "",
}
_CLAIMS: Final = {
    "online": "{} online",
    "exclusion tags": "other exclusion tags",
    "restriction": "other nodes allowed, too",
    "capacity check": "the capacity check off (--no-capacity-checks)",
}
_FREE: Final = {"memory": "free memory", "disk": "free disk"}


@dataclass(frozen=True, slots=True)
class Change:
    """A change that turns a no into a yes; each part is needed."""

    parts: tuple[Part, ...]

    @property
    def what(self) -> str:
        """What changes first."""
        return self.parts[0].what

    @property
    def by(self) -> int:
        """How much that changes."""
        return self.parts[0].by

    def sentence(self) -> str:
        """Return the change in words."""
        return "it fits with " + " and ".join(part.words() for part in self.parts)

    def values(self) -> dict[str, Any]:
        """Return the change as JSON values."""
        parts = [
            {name: value for name, value in asdict(part).items() if value != ""}
            for part in self.parts
        ]
        return {"text": self.sentence(), "parts": parts}


@dataclass(frozen=True, slots=True)
class Dial:
    """One quantity of a request.

    Attributes
    ----------
    now : int or None
        What is asked.
    ranges : tuple of (int, int)
        What policies allow.
    put : callable
        Returns a request that asks for another amount.
    """

    what: str
    now: int | None
    ranges: tuple[tuple[int, int], ...]
    put: Callable[[Allocate, int], Allocate]
    disk: int | None = None

    @property
    def value(self) -> int:
        """What is asked, 0 when nobody said."""
        return self.now or 0

    def part(self, after: int) -> Part:
        """Return the part of a change that turns this to `after`."""
        return Part(self.what, self.now, after, self.disk)


def dials(state: State, request: Allocate) -> list[Dial]:
    """Return everything of a request that can be turned."""
    row = request.inst
    policies = list(dict.fromkeys(node.policy for node in state.seen))
    found = [Dial("memory", row.mem, _ranges(policies, "memory"), _put_memory)]
    single = len(row.disks) == 1
    for at, disk in enumerate(row.disks):
        put = _put_disk(at)
        name = None if single else at
        found.append(Dial("disk", disk.size, _ranges(policies, "disk"), put, name))
    found.append(Dial("vcpus", row.vcpus, _ranges(policies, "cpus"), _put_vcpus))
    if any(node.exclusive for node in state.seen):
        found += _disk_spindles(row, policies)
    else:
        allowed = _ranges(policies, "spindles")
        found.append(Dial("spindles", row.spindle_use, allowed, _put_spindles))
    if len(row.disks) > 1:
        found.append(Dial("disks", len(row.disks), ((1, len(row.disks)),), _put_count))
    return found


def _ranges(
    policies: Sequence[Policy], what: str, others: int = 0
) -> tuple[tuple[int, int], ...]:
    least = 0 if what == "spindles" else 1
    return tuple(
        (max(least, getattr(low, what) - others), getattr(high, what) - others)
        for policy in policies
        for low, high in policy.ranges
    )


def _disk_spindles(row: InstanceRow, policies: Sequence[Policy]) -> Iterator[Dial]:
    """Yield the spindles of each disk; the policy counts their sum."""
    whole = sum(disk.spindles or 0 for disk in row.disks)
    for at, disk in enumerate(row.disks):
        others = whole - (disk.spindles or 0)
        ranges = tuple(
            (max(1, low), high) for low, high in _ranges(policies, "spindles", others)
        )
        name = None if len(row.disks) == 1 else at
        yield Dial("spindles", disk.spindles, ranges, _put_disk_spindles(at), name)


def _put_memory(request: Allocate, amount: int) -> Allocate:
    return replace(request, inst=request.inst._replace(mem=amount))


def _put_vcpus(request: Allocate, amount: int) -> Allocate:
    return replace(request, inst=request.inst._replace(vcpus=amount))


def _put_spindles(request: Allocate, amount: int) -> Allocate:
    return replace(request, inst=request.inst._replace(spindle_use=amount))


def _put_disk(at: int) -> Callable[[Allocate, int], Allocate]:
    def put(request: Allocate, amount: int) -> Allocate:
        row, disks = request.inst, list(request.inst.disks)
        if at >= len(disks):
            return request
        more = amount - disks[at].size
        disks[at] = disks[at]._replace(size=amount)
        row = row._replace(disk=row.disk + more, disks=tuple(disks))
        return replace(request, inst=row)

    return put


def _put_disk_spindles(at: int) -> Callable[[Allocate, int], Allocate]:
    def put(request: Allocate, amount: int) -> Allocate:
        disks = list(request.inst.disks)
        if at >= len(disks):
            return request
        disks[at] = disks[at]._replace(spindles=amount)
        return replace(request, inst=request.inst._replace(disks=tuple(disks)))

    return put


def _put_count(request: Allocate, amount: int) -> Allocate:
    """Drop the last disks, with what their template adds to each."""
    row = request.inst
    kept, gone = row.disks[:amount], row.disks[amount:]
    each = (row.disk - sum(disk.size for disk in row.disks)) // max(1, len(row.disks))
    less = sum(disk.size + each for disk in gone)
    return replace(request, inst=row._replace(disk=row.disk - less, disks=kept))


def smallest_change(state: State, request: Allocate, fits: Fits) -> Change | None:
    """Return the least of the request that must change for it to fit.

    One quantity alone if that helps, the one that changes least relative to
    what was asked; else several; None when nothing of the request helps.

    Parameters
    ----------
    fits
        Says whether a request can be met; the request as it is cannot.
    """
    found = dials(state, request)
    singles = [
        (abs(after - dial.value) / max(1, dial.value), dial.part(after))
        for dial in found
        if (after := _turned(dial, _trying(state, request, dial, fits))) is not None
    ]
    if singles:
        return Change((min(singles, key=lambda one: one[0])[1],))
    return _together(state, request, found, fits)


def _trying(
    state: State, request: Allocate, dial: Dial, fits: Fits
) -> Callable[[int], bool]:
    return lambda amount: fits(state, dial.put(request, amount))


def _turned(dial: Dial, holds: Callable[[int], bool]) -> int | None:
    """Return the amount nearest to what is asked for which it fits."""
    now = dial.value
    good = (_in_range(now, low, high, holds) for low, high in dial.ranges)
    found = [value for value in good if value is not None]
    return min(found, key=lambda value: abs(value - now), default=None)


def _in_range(
    now: int, low: int, high: int, holds: Callable[[int], bool]
) -> int | None:
    """Return the amount of one range, nearest to `now`, for which it fits.

    Less never fits worse, within what one policy allows.
    """
    if now < low:
        return between(low, now, holds) if holds(low) else None
    if now > high and holds(high):
        return between(high, now, holds)
    least_helps = low < now and holds(low)
    return between(low, min(high, now), holds) if least_helps else None


def between(good: int, bad: int, holds: Callable[[int], bool]) -> int:
    """Return the amount next to one that does not do, on the way to `bad`."""
    step = 1 if bad > good else -1
    if abs(bad - good) > 1 and not holds(good + step):
        return good
    while abs(bad - good) > 1:
        middle = (good + bad) // 2
        if holds(middle):
            good = middle
        else:
            bad = middle
    return good


def _together(
    state: State, request: Allocate, found: Sequence[Dial], fits: Fits
) -> Change | None:
    """Return a change of several quantities, each as small as the others allow."""
    for at in range(len(found[0].ranges)):
        amounts = [_least(dial, at) for dial in found]
        if not fits(state, _with(request, found, amounts)):
            continue
        for place in range(len(found) - 1, -1, -1):
            amounts[place] = _given_back(state, request, found, amounts, place, fits)
        parts = [
            dial.part(amount)
            for dial, amount in zip(found, amounts, strict=True)
            if amount is not None
        ]
        return Change(tuple(parts))
    return None


def _least(dial: Dial, at: int) -> int | None:
    """Return the least that one range allows; None to leave it as it is."""
    if dial.what == "disks":
        return None
    low, _ = dial.ranges[at]
    return None if low == dial.now else low


def _with(
    request: Allocate, found: Sequence[Dial], amounts: Sequence[int | None]
) -> Allocate:
    for dial, amount in zip(found, amounts, strict=True):
        if amount is not None:
            request = dial.put(request, amount)
    return request


def _given_back(
    state: State,
    request: Allocate,
    found: Sequence[Dial],
    amounts: list[int | None],
    place: int,
    fits: Fits,
) -> int | None:
    """Return how far one quantity must change, given the others."""
    amount = amounts[place]
    if amount is None:
        return None

    def holds(value: int | None) -> bool:
        tried = [*amounts[:place], value, *amounts[place + 1 :]]
        return fits(state, _with(request, found, tried))

    if holds(None):
        return None
    return between(amount, found[place].value, holds)
