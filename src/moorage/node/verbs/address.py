# SPDX-License-Identifier: BSD-2-Clause
"""Verbs about the address that moves with the cluster's master, on this node."""

from moorage.errors import BadInput, NotSupported
from moorage.model.master_address import MasterAddress, checked
from moorage.node.host import Addresses
from moorage.protocol import (
    AddressThere,
    DropAddress,
    HoldAddress,
    LookForAddress,
    Report,
)

from .context import NodeContext

_LONGEST = 60
"""Seconds that it is held at most without another word."""


async def look(at: NodeContext, args: LookForAddress, _report: Report) -> AddressThere:
    """Return whether the node has the address, and could have it."""
    return await addresses(at).look(_checked(args.address))


async def hold(at: NodeContext, args: HoldAddress, _report: Report) -> None:
    """Have the address for some seconds."""
    if not 0 < args.seconds <= _LONGEST:
        raise BadInput(f"an address is held for 1 to {_LONGEST} s at once")
    await addresses(at).hold(_checked(args.address), args.seconds)


async def drop(at: NodeContext, args: DropAddress, _report: Report) -> None:
    """Have the address no more."""
    await addresses(at).drop(_checked(args.address))


def _checked(address: MasterAddress) -> MasterAddress:
    return checked(address.ip, address.device, address.bits)


def addresses(at: NodeContext) -> Addresses:
    """Return the machine's addresses; raise `NotSupported` if it can have no more."""
    if at.machine.addresses is None:
        raise NotSupported(f"node {at.name} can take no address")
    return at.machine.addresses


VERBS = (
    LookForAddress.done_by(look),
    HoldAddress.done_by(hold),
    DropAddress.done_by(drop),
)
"""Every verb about this address."""
