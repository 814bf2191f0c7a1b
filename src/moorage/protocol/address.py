# SPDX-License-Identifier: BSD-2-Clause
"""Verbs about the address that moves with the cluster's master."""

from msgspec import Struct

from moorage.model.master_address import MasterAddress

from .verb import Reading, Verb


class AddressThere(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a node has of an address.

    Attributes
    ----------
    device
        Where it is set; empty for nowhere.
    lasting
        Whether somebody else has set it, for good.
    problem
        Why it cannot be set as it is wanted; empty if it can.
    """

    device: str = ""
    lasting: bool = False
    problem: str = ""


class LookForAddress(
    Reading[AddressThere], frozen=True, kw_only=True, tag="address.look"
):
    """Return whether the node has an address, and could have it."""

    address: MasterAddress


class HoldAddress(Verb[None], frozen=True, kw_only=True, tag="address.hold"):
    """Have an address for some seconds from now on, and let the neighbours know.

    The kernel takes it away when they are over, whoever lives then. It is not set where
    another machine answers for it.

    Attributes
    ----------
    seconds
        From 1 to 60.
    """

    address: MasterAddress
    seconds: int


class DropAddress(Verb[None], frozen=True, kw_only=True, tag="address.drop"):
    """Have an address no more; one that somebody else has set for good stays."""

    address: MasterAddress
