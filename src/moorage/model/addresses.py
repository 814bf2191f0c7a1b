# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of machines, as text."""

from ipaddress import IPv6Address, ip_address


def is_v6(address: str) -> bool:
    """Whether an address is one of IPv6; a name is none."""
    try:
        return isinstance(ip_address(address), IPv6Address)
    except ValueError:
        return False


def place(address: str, port: int) -> str:
    """Return where something listens, as URLs and people write it.

    >>> place("192.0.2.7", 1811), place("2001:db8::7", 1811)
    ('192.0.2.7:1811', '[2001:db8::7]:1811')
    """
    return f"[{address}]:{port}" if is_v6(address) else f"{address}:{port}"
