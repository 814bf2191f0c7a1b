# SPDX-License-Identifier: BSD-2-Clause
"""Scripts that are killed in the middle: the same one has to succeed afterwards.

A crash of a node or of the master asks for the step again; a provider may find what
its own script left half done.
"""

from collections.abc import Callable

from moorage.model import Disk
from moorage.units import Mib

from .bench import Bench, Broken, Doing, Remark, Seen

_MOMENTS = (0.25, 0.5, 0.75)
"""When a script is killed: parts of the time that it took before."""
_LEAST = 0.004
"""Seconds: a script that is killed sooner has not begun."""
_PATTERN = 0x3C

Run = Callable[[Disk], Doing[Seen]]


def create(at: Bench) -> Remark:
    """``create`` succeeds after one that was killed."""
    seconds = yield from _timed(at, "create")
    for number, moment in enumerate(_MOMENTS):
        disk = at.disk(f"k{number}")
        yield from _killed(at, seconds * moment, "create", disk)
        where = yield from at.made(disk)
        yield from at.expects_size(where, disk.size, "created after a kill,")
    return _after(seconds)


def attach(at: Bench) -> Remark:
    """``attach`` succeeds after one that was killed."""
    disk = at.disk()
    yield from at.must("create", disk)
    seen = yield from at.must("attach", disk)
    for moment in _MOMENTS:
        yield from at.must("detach", disk)
        yield from _killed(at, seen.seconds * moment, "attach", disk)
        where = yield from at.attached(disk)
        yield from at.expects_size(where, disk.size, "attached after a kill,")
    return _after(seen.seconds)


def grow(at: Bench) -> Remark:
    """``grow`` succeeds after one that was killed, and keeps the data."""
    seconds = yield from _timed(at, "grow")
    for number, moment in enumerate(_MOMENTS):
        disk = at.disk(f"k{number}")
        larger = Mib(2 * disk.size)
        yield from at.write((yield from at.made(disk)), _PATTERN)
        yield from _killed(at, seconds * moment, "grow", disk, larger)
        yield from at.must("grow", disk, larger)
        where = yield from at.attached(disk)
        yield from at.expects_size(where, larger, "grown after a kill,")
        yield from at.expects(where, _PATTERN, "grown after a kill,")
    return _after(seconds)


def remove(at: Bench) -> Remark:
    """``remove`` succeeds after one that was killed."""
    seconds = yield from _timed(at, "remove")
    for number, moment in enumerate(_MOMENTS):
        disk = at.disk(f"k{number}")
        yield from at.must("create", disk)
        yield from _killed(at, seconds * moment, "remove", disk)
        yield from at.must("remove", disk)
        yield from at.refuses("after remove: it is still there", "attach", disk)
    return _after(seconds)


def snapshot(at: Bench) -> Remark:
    """A snapshot that was killed is whole when it is taken again."""
    at.needs("snapshot")
    seconds = yield from _timed(at, "snapshot")
    for number, moment in enumerate(_MOMENTS):
        disk = at.disk(f"k{number}")
        copy = at.copy_of(disk, disk.size)
        words = (copy.volume, copy.size)
        yield from at.write((yield from at.made(disk)), _PATTERN)
        yield from _killed(at, seconds * moment, "snapshot", disk, *words)
        yield from at.must("snapshot", disk, *words)
        where = yield from at.attached(copy)
        yield from at.expects(where, _PATTERN, "a snapshot after a kill of")
        yield from at.expects_size(where, copy.size, "a snapshot after a kill of")
    return _after(seconds)


def _timed(at: Bench, action: str) -> Doing[float]:
    """Return how long a script takes that nobody kills."""
    disk = at.disk()
    args: dict[str, tuple[object, ...]] = {
        "grow": (Mib(2 * disk.size),),
        "snapshot": (at.copy_of(disk, disk.size).volume, disk.size),
    }
    if action != "create":
        yield from at.must("create", disk)
    seen = yield from at.must(action, disk, *args.get(action, ()))
    return seen.seconds


def _killed(
    at: Bench, seconds: float, action: str, disk: Disk, *args: object
) -> Doing[None]:
    """Run a script that is killed in the middle; it may be done before."""
    moment = max(seconds, _LEAST)
    seen = yield from at.cut_short(moment, action, disk, *args)
    if not seen.ok and not seen.killed:
        raise Broken(seen.said)


def _after(seconds: float) -> str:
    """Return when the kills came, for the report."""
    moments = ", ".join(
        f"{max(seconds * part, _LEAST) * 1000:.0f}" for part in _MOMENTS
    )
    return f"killed after {moments} ms"
