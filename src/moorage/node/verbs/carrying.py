# SPDX-License-Identifier: BSD-2-Clause
"""Verbs that bring an export from the node that has it to the one that imports it."""

from collections.abc import Iterable

from moorage.errors import BadInput, Failed, NotFound
from moorage.model.export import Dump
from moorage.node.host import Offer, Parcel
from moorage.protocol import Door, FetchExport, OfferExport, Report, WithdrawExport
from moorage.storage.exports import Exports, Growing

from .context import NodeContext


async def offer(at: NodeContext, args: OfferExport, _report: Report) -> Door:
    """Wait for the one node that is to have an export.

    Raises
    ------
    NotFound
        If the export is not there, or another one has taken its place.
    """
    kind = Growing if args.growing else Exports
    exports = kind(at.machine.exports_directory())
    found = await at.do(exports.read(args.name))
    if (found.uuid, found.dumps) != (args.export.uuid, args.export.dumps):
        raise NotFound(f"export {args.name} on node {at.name} is another one by now")
    parcels = _parcels(exports, args.name, found.dumps)
    door = await at.machine.offer(
        Offer(args.offer, parcels, args.address, args.port, args.rate)
    )
    if at.keys:  # the one that ordered it may have been taken back meanwhile
        at.machine.keep(at.keys.believes)
    return door


async def withdraw(at: NodeContext, args: WithdrawExport, _report: Report) -> None:
    """Wait for nobody any more, and hang up on who is being sent an export."""
    at.machine.withdraw(args.offer)


async def fetch(at: NodeContext, args: FetchExport, report: Report) -> None:
    """Fetch the dumps of another node's export into one that grows here.

    Raises
    ------
    Failed
        If others are offered than were ordered.
    """
    if args.door is None:
        raise BadInput("an export is fetched where it is offered: there is no door")
    if args.files and args.files != tuple(one.file for one in args.export.dumps):
        wanted = ", ".join(args.files)
        raise Failed(
            f"node {at.name} was to fetch {wanted}, and is offered other files"
        )
    growing = Growing(at.machine.exports_directory())
    parcels = _parcels(growing, args.name, args.export.dumps)
    await at.machine.fetch(parcels, args.address, args.door, report)


def _parcels(exports: Exports, name: str, dumps: Iterable[Dump]) -> tuple[Parcel, ...]:
    return tuple(
        Parcel(exports.dump(name, one), one.bytes, one.sha256) for one in dumps
    )


VERBS = (
    OfferExport.done_by(offer),
    WithdrawExport.done_by(withdraw),
    FetchExport.done_by(fetch),
)
"""Every verb on exports that travel."""
