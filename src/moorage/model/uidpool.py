# SPDX-License-Identifier: BSD-2-Clause
"""Pools of user-ids, one for each guest of a node, as Ganeti writes them. Pure."""

import re
from collections.abc import Iterable
from itertools import pairwise

from moorage.errors import BadInput, NotFound

UidPool = tuple[tuple[int, int], ...]
"""Ranges of user-ids, each with its first and its last one."""

STANDARD: UidPool = ((2_100_000_000, 2_100_009_999),)
"""Of a new cluster: ids that no distribution, container or directory service uses."""

_LARGEST = (1 << 32) - 2
_RANGE = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?", re.ASCII)


def parsed(text: str) -> UidPool:
    """Return the ranges that are written as ``1000-1019,2000``.

    Raises
    ------
    BadInput
        If one is not written so, or holds root or no user.
    """
    return checked(_range(word) for word in text.replace("\n", ",").split(",") if word)


def _range(word: str) -> tuple[int, int]:
    found = _RANGE.fullmatch(word.strip())
    if not found:
        raise BadInput(f"user-ids are written as 1000-1019,2000, not '{word}'")
    return int(found[1]), int(found[2] or found[1])


def checked(ranges: Iterable[tuple[int, int]]) -> UidPool:
    """Return the ranges in order.

    Raises
    ------
    BadInput
        If one holds root or no user, or two have users in common.
    """
    found = tuple(sorted({(first, last) for first, last in ranges}))
    for first, last in found:
        if not 0 < first <= last <= _LARGEST:
            raise BadInput(
                f"{first}-{last} is no range of user-ids between 1 and {_LARGEST}"
            )
    for (_, end), (first, last) in pairwise(found):
        if first <= end:
            raise BadInput(f"user-id {first} of {first}-{last} is in the pool already")
    return found


def added(pool: UidPool, more: UidPool) -> UidPool:
    """Return a pool with more ranges; one that it has is left alone."""
    return checked((*pool, *more))


def removed(pool: UidPool, less: UidPool) -> UidPool:
    """Return a pool without some of its ranges.

    Raises
    ------
    NotFound
        If it does not have one.
    """
    for one in less:
        if one not in pool:
            raise NotFound(
                f"the user-id pool has no range {shown((one,))}: it has "
                f"{shown(pool) or 'none'}"
            )
    return tuple(one for one in pool if one not in less)


def shown(pool: UidPool) -> str:
    """Return the ranges as :func:`parsed` takes them."""
    return ",".join(f"{a}-{b}" if a != b else str(a) for a, b in pool)
