# SPDX-License-Identifier: BSD-2-Clause
"""How much fits of ever smaller sizes.

From the largest size on, whatever failed most often is shrunk, until nothing fits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from moorage.htools.constants import Fail
from moorage.htools.inst import Inst
from moorage.htools.placement.allocate import tally
from moorage.htools.placement.allocation import DEFAULT_ASKING, FAILS
from moorage.htools.placement.shrinking import Shrinkings, shrunk
from moorage.htools.placement.space import (
    Filled,
    Filling,
    fill_on,
    less,
    numbered,
    try_next,
)
from moorage.htools.policy import Policy
from moorage.htools.state import State


def fill_tiered(state: State, sizes: Sequence[Inst], how: Filling) -> Filled:
    """Place ever smaller instances, starting from each of some sizes in turn."""
    result = Filled({}, state)
    for inst in sizes:
        left = None if how.limit is None else how.limit - len(result.new)
        if how.limit is not None and how.limit <= len(result.new):
            break
        result = _tiered(result, inst, replace(how, limit=left))
    return result


@dataclass(frozen=True, slots=True)
class _Level:
    """Sizes at which nothing fitted, most often for the same reason.

    Attributes
    ----------
    inst : Inst
        The first of them.
    count : int
        How many they are, each a step smaller than the one before.
    done : Filled
        What trying the first looked like.
    """

    inst: Inst
    count: int
    done: Filled
    how: Filling

    @property
    def fail(self) -> Fail:
        """What they are short of."""
        return _causes(self.done.failures)[0]

    @property
    def next(self) -> Inst | None:
        """The first size after them."""
        return shrunk(self.inst, self.fail, self.count)


def _tiered(start: Filled, first: Inst, how: Filling) -> Filled:
    """Fill; shrink what failed most often; fill again.

    When shrinking step by step ends without a place, go back up and look, from
    the smallest size to the largest, whether shrinking one resource alone helps.
    """
    levels: list[_Level] = []
    inst: Inst | None = first
    while inst is not None:
        done = fill_on(start, inst, how)
        stopped = how.limit is not None and how.limit <= len(done.new)
        if len(done.new) > len(start.new):
            if stopped:
                return done
            levels.clear()
        if stopped and not levels:
            return done
        how = less(how, len(done.new))
        if not stopped:
            levels.append(_Level(inst, _alike(inst, done, how), done, how))
        start, inst = done, None if stopped else levels[-1].next
        if inst is None:
            inst, how = _big_step(levels, how)
            levels[1:] = []
    return levels[0].done


def _alike(inst: Inst, done: Filled, how: Filling) -> int:
    """Return how many sizes, from one at which nothing fits, are short of the same.

    They are those that need not be filled one by one: nothing fits there.
    """
    fail = _causes(done.failures)[0]
    chain = Shrinkings(inst, fail)
    # With a limit, each size takes off it what was placed so far.
    if done.failures[Fail.N1] or (how.limit is not None and done.new) or not chain:
        return 1

    def likewise(smaller: Inst) -> bool:
        counts = _tally(done.state, smaller, how)
        return not counts[0] and _causes(_failures(counts))[0] is fail

    found = chain.first(likewise, _policies(done.state, how), above=1)
    return max(1, len(chain)) if found is None else found


def _big_step(levels: Sequence[_Level], how: Filling) -> tuple[Inst | None, Filling]:
    """Return a size at which something fits, shrunk in one resource alone.

    What a size was short of was tried at the next one, which is smaller in it.
    """
    tried: Fail | None = None
    for level in reversed(levels):
        for steps in range(level.count - 1, -1, -1):
            inst = shrunk(level.inst, level.fail, steps) if steps else level.inst
            assert inst is not None  # noqa: S101 - it was tried
            found = _bigger_step(level, inst, tried and level.fail)
            if found is not None:
                return found, level.how
            tried = level.fail
    return None, how


def _bigger_step(level: _Level, inst: Inst, tried: Fail | None) -> Inst | None:
    """Return a size shrunk in one resource, but not in the one that was tried."""
    state, how = level.done.state, level.how
    failures = level.done.failures
    if inst is not level.inst:
        failures = _failures(_tally(state, inst, how))
    ways = (
        _shrunk_enough(state, inst, fail, how)
        for fail in _causes(failures)
        if fail is not tried and failures[fail]
    )
    return next((found for found in ways if found is not None), None)


def _causes(failures: dict[Fail, int]) -> list[Fail]:
    """Return the reasons, most frequent first; of equals the last one first."""
    often = sorted(failures.items(), key=lambda pair: pair[1])
    return [fail for fail, _ in reversed(often)]


def _shrunk_enough(state: State, inst: Inst, fail: Fail, how: Filling) -> Inst | None:
    """Return the first shrinking that fits, if each one before fails for `fail`."""

    def fails(smaller: Inst) -> bool:
        counts = _tally(state, smaller, how)
        if counts[0] and (how.safe is None or _fits(state, smaller, how)):
            return False
        return counts[FAILS.index(fail, 1)] > 0

    chain = Shrinkings(inst, fail)
    at = chain.first(fails, _policies(state, how)) if len(chain) else None
    return chain[at] if at is not None and _fits(state, chain[at], how) else None


def _fits(state: State, inst: Inst, how: Filling) -> bool:
    return try_next(state, inst, 0, how).best is not None


def _tally(state: State, inst: Inst, how: Filling) -> list[int]:
    """Return how many places would do, safe or not, and how many fail for what."""
    new = numbered(state, inst, 0)
    return tally(state, new, how.places, DEFAULT_ASKING, how.shelf)


def _failures(counts: Sequence[int]) -> dict[Fail, int]:
    return dict(zip(FAILS[1:], counts[1:], strict=True))


def _policies(state: State, how: Filling) -> list[Policy]:
    policies = (state.nodes[at].policy for at, _ in how.places)
    return list({id(policy): policy for policy in policies}.values())
