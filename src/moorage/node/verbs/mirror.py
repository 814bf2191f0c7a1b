# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on the copies of mirrored disks."""

import asyncio

from moorage.errors import Failed
from moorage.model import MirrorState, pair_of
from moorage.model.facts import UP_TO_DATE
from moorage.protocol import (
    AwaitSync,
    BeginMirror,
    GetMirrors,
    OnDisk,
    ReleaseCopy,
    RenewCopy,
    Report,
    RestoreCopy,
)
from moorage.storage import TEMPLATES, Mirrored, Outcome

from .context import NodeContext

_FIRST, _LONGEST = 0.05, 5.0
"""Seconds between two looks at a sync: the first, and the most there are."""


async def mirrors(
    at: NodeContext, _args: GetMirrors, _report: Report
) -> list[MirrorState]:
    """Return this node's side of all mirrored disks."""
    found: list[MirrorState] = []
    for name in TEMPLATES:
        if isinstance(template := at.template(name), Mirrored):
            found += await at.do(template.mirrors())
    return found


def _mirrored(at: NodeContext, args: OnDisk[object]) -> Mirrored:
    """Return the template of a mirrored disk; raise `NotSupported` for another disk."""
    template = at.template_of(args)
    if isinstance(template, Mirrored):
        return template
    raise template.lacks("be mirrored", args.disk)


async def await_sync(at: NodeContext, args: AwaitSync, report: Report) -> MirrorState:
    """Wait until both copies are the same.

    Raises
    ------
    Failed
        If nothing is copied, and nothing will be.
    """
    pause, met = _FIRST, False
    while True:
        found = await _side(at, args)
        if found is not None and _is_enough(args, found):
            return found
        if found is not None and found.copying:
            met = False
            _tell(args, found, report)
        elif met or found is None:
            raise _stuck(at, args, found)
        else:
            await at.do(_mirrored(at, args).meet(args.disk))
            met = True
            continue
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST)


def _is_enough(args: AwaitSync, found: MirrorState) -> bool:
    return found.in_sync or (args.alone and found.disk == UP_TO_DATE)


async def _side(at: NodeContext, args: OnDisk[MirrorState]) -> MirrorState | None:
    pair = pair_of(args.disk)
    names = [one.name for one in args.holders]
    if pair is None or at.name not in names[:2]:
        label = args.disk.label
        raise Failed(f"node {at.name} keeps no copy of disk {label}")
    minor = pair.minors[names.index(at.name)]
    found = await at.do(_mirrored(at, args).mirrors())
    return next((one for one in found if one.minor == minor), None)


def _tell(args: AwaitSync, found: MirrorState, report: Report) -> None:
    rest = "" if found.seconds is None else f", {found.seconds} s left"
    report(int(found.percent or 0), 100, "%", f"sync disk {args.disk.label}{rest}")


def _stuck(at: NodeContext, args: AwaitSync, found: MirrorState | None) -> Failed:
    state = f"{found.connection}, {found.disk}/{found.peer_disk}" if found else "down"
    return Failed(
        f"the copies of disk {args.disk.label} do not become the same: on node "
        f"{at.name} its mirror is {state}",
        hint="gnt-instance replace-disks makes one of them anew",
        disk=args.disk.uuid,
    )


async def begin(at: NodeContext, args: BeginMirror, _report: Report) -> Outcome:
    """Write new metadata."""
    return await at.do(_mirrored(at, args).initialise(args.disk))


async def renew(at: NodeContext, args: RenewCopy, _report: Report) -> Outcome:
    """Put new volumes in the place of this node's."""
    return await at.do(_mirrored(at, args).renew(args.disk))


async def restore(at: NodeContext, args: RestoreCopy, _report: Report) -> Outcome:
    """Put the old volumes back."""
    return await at.do(_mirrored(at, args).restore(args.disk))


async def release(at: NodeContext, args: ReleaseCopy, _report: Report) -> Outcome:
    """Remove the old volumes."""
    return await at.do(_mirrored(at, args).release(args.disk))


VERBS = (
    GetMirrors.done_by(mirrors),
    AwaitSync.done_by(await_sync),
    BeginMirror.done_by(begin),
    RenewCopy.done_by(renew),
    RestoreCopy.done_by(restore),
    ReleaseCopy.done_by(release),
)
"""Every verb on the copies of mirrored disks."""
