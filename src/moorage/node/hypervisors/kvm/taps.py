# SPDX-License-Identifier: BSD-2-Clause
"""Network cards' ends on a node: taps that the agent makes and puts into a bridge.

A tap goes when its last descriptor is closed: with the guest.
"""

import fcntl
import os
import socket
import struct

from moorage.errors import Failed

_TUN = "/dev/net/tun"
_TUNSETIFF = 0x400454CA
_TAP, _NO_HEADER, _OFFLOADS = 0x0002, 0x1000, 0x4000
_SIOCGIFINDEX, _SIOCBRADDIF = 0x8933, 0x89A2
_SIOCGIFMTU, _SIOCSIFMTU = 0x8921, 0x8922
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _UP = 0x8913, 0x8914, 0x1
_NAME = 16
_REQUEST = 40
_PATTERN = "tap%d"


def tap(bridge: str) -> int:
    """Return the descriptor of a new tap in a bridge.

    Raises
    ------
    Failed
        If there is no such bridge, or the tap cannot be made.
    """
    try:
        found = os.open(_TUN, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise _cannot(bridge, f"{_TUN}: {error.strerror}") from None
    try:
        flags = struct.pack("H", _TAP | _NO_HEADER | _OFFLOADS)
        name = _ask(found, _TUNSETIFF, _PATTERN.encode(), flags)[:_NAME]
        _join(name, bridge.encode())
    except OSError as error:
        os.close(found)
        raise _cannot(bridge, error.strerror or str(error)) from None
    return found


def _cannot(bridge: str, why: str) -> Failed:
    return Failed(
        f"a network card cannot be put into bridge {bridge}: {why}",
        hint=f"ip link show type bridge {bridge}",
        bridge=bridge,
    )


def _join(name: bytes, bridge: bytes) -> None:
    """Put an interface into a bridge, with its MTU, and bring it up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        index = _ask(control.fileno(), _SIOCGIFINDEX, name)[_NAME : _NAME + 4]
        mtu = _ask(control.fileno(), _SIOCGIFMTU, bridge)[_NAME : _NAME + 4]
        _ask(control.fileno(), _SIOCSIFMTU, name, mtu)
        _ask(control.fileno(), _SIOCBRADDIF, bridge, index)
        (now,) = struct.unpack_from(
            "H", _ask(control.fileno(), _SIOCGIFFLAGS, name), 16
        )
        _ask(control.fileno(), _SIOCSIFFLAGS, name, struct.pack("H", now | _UP))


def _ask(descriptor: int, request: int, name: bytes, value: bytes = b"") -> bytes:
    """Return the answer to a request about an interface: its name, then the value."""
    given = (name[:_NAME].ljust(_NAME, b"\0") + value).ljust(_REQUEST, b"\0")
    return fcntl.ioctl(descriptor, request, given)
