# SPDX-License-Identifier: BSD-2-Clause
"""Networks and cards of a file of Ganeti's, held to what requests could make."""

import re
from ipaddress import ip_address

from msgspec.structs import replace

from moorage.errors import BadInput
from moorage.model import Network, Nic, nicparams
from moorage.model.networks import checked_subnet, in_order, outside, subnet

from .document import Part

_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")


def network(found: Network, part: Part) -> Network:
    """Return a network as it is kept here, from how the file has it.

    Raises
    ------
    BadInput
        For what no request could make.
    """
    checked_subnet(found.network)  # a larger one has too many addresses to be told
    if found.mac_prefix:
        nicparams.checked_prefix(found.mac_prefix)
    never = _addresses(found, part.get("ext_reservations") or "")
    return replace(found, reserved=in_order(never - outside(found)))


def check_card(nic: Nic) -> None:
    """Raise `BadInput` for what scripts and hints would say, and no card can have."""
    nicparams.checked(nic.nicparams)
    if not _MAC.fullmatch(nic.mac):
        raise BadInput(f"{nic.mac[:80]!r} is no MAC address")
    if nic.ip:
        try:
            ip_address(nic.ip)
        except ValueError:
            raise BadInput(f"{nic.ip[:80]!r} is no address") from None


def _addresses(found: Network, bits: str) -> set[str]:
    hosts = subnet(found)
    return {str(one) for one, bit in zip(hosts, bits, strict=False) if bit == "1"}
