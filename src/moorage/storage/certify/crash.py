# SPDX-License-Identifier: BSD-2-Clause
"""Scripts that are killed in the middle: the same one has to succeed afterwards.

A crash of a node or of the master asks for the step again; a provider may find what
its own script left half done.

A script begins to work when its interpreter has started, which may take most of its
time. So ``verify``, which does nothing but start and look at words, tells how long that
takes, and the kills come after it. Then more of them close in on the moment in which
the work is done: each is told from what is there afterwards.
"""

from collections.abc import Callable
from dataclasses import dataclass

from moorage.model import Disk
from moorage.units import Mib

from .bench import Bench, Broken, Doing, Remark, Seen

_SPREAD = (0.25, 0.5, 0.75)
"""When a script is killed: parts of the time that it works."""
_CLOSER = 3
"""How many more kills come nearer to the moment in which its work is done."""
_START = 0.9
"""Part of the time of ``verify`` that counts as start: no two runs take the same."""
_LEAST = 0.004
"""Seconds: a script that is killed sooner has not begun."""
_PATTERN = 0x3C

Look = Callable[[Disk], Doing[bool]]
"""Says whether the work on a disk is done, and leaves all as it is."""


@dataclass(slots=True)
class _Hunt:
    """Kills of a script, one after the other.

    Attributes
    ----------
    early, late
        Seconds: a run that was killed at the first had not done its work; at the
        second it had, or had ended.
    moments
        When it was killed, in seconds.
    """

    at: Bench
    action: str
    early: float
    late: float
    moments: list[float]

    @classmethod
    def of(cls, at: Bench, action: str, seconds: float) -> Doing["_Hunt"]:
        """Return one of a script that takes so many seconds when nobody kills it."""
        start = _START * (yield from at.script("verify", at.disk())).seconds
        return cls(at, action, start if start < seconds else 0.0, seconds, [])

    def kill(
        self, number: int, disk: Disk, *args: object, look: Look | None = None
    ) -> Doing[None]:
        """Run the script and kill it; it may be done before."""
        spread = number < len(_SPREAD)
        part = _SPREAD[number] if spread else 0.5
        moment = max(self.early + (self.late - self.early) * part, _LEAST)
        self.moments.append(moment)
        seen = yield from self.at.cut_short(moment, self.action, disk, *args)
        if not seen.ok and not seen.killed:
            raise Broken(seen.said)
        if spread or look is None:
            return  # the next run is to find what this one left, and nothing else
        if seen.ok or (yield from look(disk)):
            self.late = moment
        else:
            self.early = moment

    def told(self) -> str:
        """Return when the kills came, for the report."""
        moments = ", ".join(f"{one * 1000:.0f}" for one in sorted(self.moments))
        return f"killed after {moments} ms"


def create(at: Bench) -> Remark:
    """``create`` succeeds after one that was killed."""
    hunt = yield from _Hunt.of(at, "create", (yield from _timed(at, "create")))
    for number in range(len(_SPREAD) + _CLOSER):
        disk = at.disk(f"k{number}")
        yield from hunt.kill(number, disk, look=lambda disk: _is_there(at, disk))
        where = yield from at.made(disk)
        yield from at.expects_size(where, disk.size, "created after a kill,")
    return hunt.told()


def attach(at: Bench) -> Remark:
    """``attach`` succeeds after one that was killed."""
    disk = at.disk()
    yield from at.must("create", disk)
    seen = yield from at.must("attach", disk)
    hunt = yield from _Hunt.of(at, "attach", seen.seconds)
    for number in range(len(_SPREAD)):
        yield from at.must("detach", disk)
        yield from hunt.kill(number, disk)
        where = yield from at.attached(disk)
        yield from at.expects_size(where, disk.size, "attached after a kill,")
    return hunt.told()


def grow(at: Bench) -> Remark:
    """``grow`` succeeds after one that was killed, and keeps the data."""
    hunt = yield from _Hunt.of(at, "grow", (yield from _timed(at, "grow")))
    for number in range(len(_SPREAD)):
        disk = at.disk(f"k{number}")
        larger = Mib(2 * disk.size)
        yield from at.write((yield from at.made(disk)), _PATTERN)
        yield from hunt.kill(number, disk, larger)
        yield from at.must("grow", disk, larger)
        where = yield from at.attached(disk)
        yield from at.expects_size(where, larger, "grown after a kill,")
        yield from at.expects(where, _PATTERN, "grown after a kill,")
    return hunt.told()


def remove(at: Bench) -> Remark:
    """``remove`` succeeds after one that was killed."""
    hunt = yield from _Hunt.of(at, "remove", (yield from _timed(at, "remove")))
    for number in range(len(_SPREAD) + _CLOSER):
        disk = at.disk(f"k{number}")
        yield from at.must("create", disk)
        yield from hunt.kill(number, disk, look=lambda disk: _is_gone(at, disk))
        yield from at.must("remove", disk)
        yield from at.refuses("after remove: it is still there", "attach", disk)
    return hunt.told()


def snapshot(at: Bench) -> Remark:
    """A snapshot that was killed is whole when it is taken again."""
    at.needs("snapshot")
    hunt = yield from _Hunt.of(at, "snapshot", (yield from _timed(at, "snapshot")))

    def taken(disk: Disk) -> Doing[bool]:
        return _is_there(at, at.copy_of(disk, disk.size))

    for number in range(len(_SPREAD) + _CLOSER):
        disk = at.disk(f"k{number}")
        copy = at.copy_of(disk, disk.size)
        words = (copy.volume, copy.size)
        yield from at.write((yield from at.made(disk)), _PATTERN)
        yield from hunt.kill(number, disk, *words, look=taken)
        yield from at.must("snapshot", disk, *words)
        where = yield from at.attached(copy)
        yield from at.expects(where, _PATTERN, "a snapshot after a kill of")
        yield from at.expects_size(where, copy.size, "a snapshot after a kill of")
    return hunt.told()


def _is_there(at: Bench, disk: Disk) -> Doing[bool]:
    """Say whether a volume can be attached, and let it go again."""
    found: Seen = yield from at.script("attach", disk)
    if found.ok:
        yield from at.must("detach", disk)
    return found.ok


def _is_gone(at: Bench, disk: Disk) -> Doing[bool]:
    return not (yield from _is_there(at, disk))


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
