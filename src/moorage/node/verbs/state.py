# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on the copies of the master's state, and on who leads."""

from functools import partial

from moorage import __version__
from moorage.model.commits import Head
from moorage.protocol import (
    AddRecords,
    ApplyCommits,
    BeginCopy,
    CheckCopy,
    DropCopy,
    GetStanding,
    HeedTerm,
    KeepKeys,
    Portion,
    ReadCopy,
    ReleaseLead,
    Report,
    SealCopy,
    Standing,
    WantLead,
)

from .context import NodeContext


async def standing(at: NodeContext, _args: GetStanding, _report: Report) -> Standing:
    """Return what the node has heard of masters; whoever asks need not lead."""
    newest = at.leaders.newest
    return Standing(
        term=at.fence.term,
        led=newest.term if newest else 0,
        leader=newest.sender.node if newest else "",
        silent=at.leaders.silent(),
        copy=await at.copies.run(at.copies.state.head),
        confirmed=at.copies.confirmed(),
        software=__version__,
        wants=at.copies.wanted(),
        released=at.copies.released,
        key=at.copies.own_key(),
    )


async def want(at: NodeContext, args: WantLead, _report: Report) -> None:
    """Note that this node is to be the next master."""
    at.copies.want(args.seconds)


async def read(at: NodeContext, args: ReadCopy, _report: Report) -> Portion:
    """Return records of the copy."""
    return await at.copies.run(partial(at.copies.state.portion, args.after))


async def release(at: NodeContext, args: ReleaseLead, _report: Report) -> None:
    """Note that the master has ended, and lets this node lead."""
    at.copies.released = args.head


async def heed(at: NodeContext, _args: HeedTerm, report: Report) -> Standing:
    """Take orders of no earlier master; the fence has noted the term by now."""
    at.copies.want(0.0)
    return await standing(at, GetStanding(), report)


async def apply(at: NodeContext, args: ApplyCommits, _report: Report) -> Head | None:
    """Make the copy follow some commits; return where it stands then."""
    state = at.copies.state
    due = args.commits[-1].head if args.commits else args.after
    there = await at.copies.run(partial(state.apply, args.commits, args.after))
    if there and there.holds(due) and not args.more:
        at.copies.confirm()
    return there


async def begin(at: NodeContext, args: BeginCopy, _report: Report) -> None:
    """Begin a new copy beside the one that counts."""
    await at.copies.run(partial(at.copies.state.begin, args.format))


async def add(at: NodeContext, args: AddRecords, _report: Report) -> None:
    """Add records to the copy that was begun."""
    await at.copies.run(partial(at.copies.state.add, args.records))


async def seal(at: NodeContext, args: SealCopy, _report: Report) -> Head:
    """Let the copy that was begun be the one that counts, if it is whole."""
    return await at.copies.run(partial(at.copies.state.seal, args.head))


async def keep(at: NodeContext, args: KeepKeys, _report: Report) -> None:
    """Keep the certificates of the authorities that signed the nodes."""
    await at.copies.run(partial(at.copies.keep_keys, args.files))


async def check(at: NodeContext, _args: CheckCopy, _report: Report) -> list[str]:
    """Read the whole copy, and return what is wrong with it, in words."""
    return await at.copies.run(at.copies.state.faults)


async def drop(at: NodeContext, args: DropCopy, _report: Report) -> None:
    """Forget the copy; and the key, if the node is no candidate any more."""
    await at.copies.run(partial(at.copies.state.drop, keep_keys=args.candidate))


VERBS = (
    GetStanding.done_by(standing),
    WantLead.done_by(want),
    ReadCopy.done_by(read),
    ReleaseLead.done_by(release),
    HeedTerm.done_by(heed),
    ApplyCommits.done_by(apply),
    BeginCopy.done_by(begin),
    AddRecords.done_by(add),
    SealCopy.done_by(seal),
    KeepKeys.done_by(keep),
    CheckCopy.done_by(check),
    DropCopy.done_by(drop),
)
"""Every verb on copies of the state."""
