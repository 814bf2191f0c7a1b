# SPDX-License-Identifier: BSD-2-Clause
"""What is left of a certification is taken away, whatever state it is in."""

from collections.abc import Iterable

from msgspec.structs import replace

from moorage.model import Disk

from .bench import Bench, Doing

_LAST = 1000
"""An epoch that no check has: whoever tidies up comes after them all."""


def let_go(at: Bench, disks: Iterable[Disk]) -> Doing[None]:
    """Close and detach volumes here; those that are not there do no harm."""
    for disk in disks:
        last = replace(disk, epoch=_LAST)
        if "close" in at.provider.optional:
            yield from at.script("close", last)
        yield from at.script("detach", last)


def removed(at: Bench, disks: Iterable[Disk]) -> Doing[tuple[str, ...]]:
    """Remove volumes that this node finds; return the names of those that stay."""
    left = []
    for disk in disks:
        last = replace(disk, epoch=_LAST)
        found = yield from at.script("attach", last)
        if found.ok:
            yield from at.script("detach", last)
        seen = yield from at.script("remove", last)
        if found.ok and not seen.ok:
            left.append(disk.volume)
    return tuple(left)
