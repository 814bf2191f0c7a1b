# SPDX-License-Identifier: BSD-2-Clause
"""The address that moves with the cluster's master: Ganeti's master IP."""

import re
from ipaddress import ip_address

from msgspec import Struct

from moorage.errors import BadInput

from .objects import Cluster

_DEVICE = re.compile(r"[^\s/:]{1,15}")
"""Names that Linux gives to network devices."""


class MasterAddress(Struct, frozen=True):
    """An address that the node has whose master leads.

    Attributes
    ----------
    ip
        No node's own.
    device
        The network device that it is set on, on every node that can lead.
    bits
        Length of its mask.
    """

    ip: str
    device: str
    bits: int


def master_address(cluster: Cluster) -> MasterAddress | None:
    """Return the address that moves with a cluster's master; None if none does.

    Where there is no device, `Cluster.master_ip` is an address of the master's node.
    """
    ip, device, bits = cluster.master_ip, cluster.master_netdev, cluster.master_netmask
    return MasterAddress(ip, device, bits) if device else None


def held_address(cluster: Cluster) -> MasterAddress | None:
    """Return the address that the master's node is to have now; None for none."""
    return master_address(cluster) if cluster.master_ip_active else None


def checked(ip: str, device: str, bits: int = 0) -> MasterAddress:
    """Return an address that can move with a master.

    Parameters
    ----------
    bits
        0 for all that the address has.

    Raises
    ------
    BadInput
        If it is none that others could reach, or no mask, or no name of a device.
    """
    try:
        found = ip_address(ip)
    except ValueError:
        raise BadInput(f"the master's address is one of IP, not '{ip[:80]}'") from None
    apart = found.is_unspecified or found.is_multicast or found.is_loopback
    if apart or found.is_link_local or "%" in ip:
        raise BadInput(f"{ip} cannot be the master's: others do not reach a node by it")
    if not _DEVICE.fullmatch(device) or device in (".", ".."):
        raise BadInput(f"'{device[:80]}' is not the name of a network device")
    most = found.max_prefixlen
    if not 0 <= bits <= most:
        raise BadInput(f"a mask of {ip} has 1 to {most} bits, not {bits}")
    return MasterAddress(str(found), device, bits or most)
