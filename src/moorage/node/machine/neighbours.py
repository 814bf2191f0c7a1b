# SPDX-License-Identifier: BSD-2-Clause
"""Neighbours on a network are asked who has an address, and told that we have it.

Of IPv4 by ARP (RFC 826, 5227), of IPv6 by an unsolicited advertisement (RFC 4861).
"""

import asyncio
import socket
import struct
import time
from ipaddress import ip_address
from pathlib import Path

from moorage.errors import Failed

_ARP, _ETHERNET, _IPV4 = 0x0806, 1, 0x0800
_REQUEST = 1
_HEADER = struct.Struct("!6s6sHHHBBH6s4s6s4s")
"""A frame of Ethernet with an ARP message: eleven numbers and addresses."""
_EVERYBODY, _NOBODY = b"\xff" * 6, bytes(6)
_UNKNOWN = bytes(4)
_PROBES, _WAIT = 3, 0.2
"""How often is asked, and the seconds that are waited each time."""
_LOOPBACK, _NO_ARP = 0x8, 0x80
"""Flags of devices."""
_ADVERTISEMENT, _OVERRIDES, _OWN_ADDRESS = 136, 0x2000_0000, 2
_ALL_NODES = "ff02::1"
_HOPS = 255
_DEVICES = Path("/sys/class/net")


async def answering(device: str, ip: str) -> str:
    """Return the hardware address that answers for an IPv4 address; empty for none.

    Raises
    ------
    Failed
        If the device cannot ask.
    """
    if not _asks(device):
        return ""
    wanted = ip_address(ip).packed
    with _opened(device) as line:
        line.setblocking(False)
        own: bytes = line.getsockname()[4]
        for _ in range(_PROBES):
            _send(line, device, _message(own, _UNKNOWN, _NOBODY, wanted))
            until = time.monotonic() + _WAIT
            while (left := until - time.monotonic()) > 0:
                found = await _heard(line, left)
                if found and found[1] == wanted and found[0] != own:
                    return found[0].hex(":")
    return ""


def announce(device: str, ip: str) -> None:
    """Tell the neighbours that an address is here; one that is down tells nobody."""
    if not _asks(device):
        return
    if ip_address(ip).version > 4:
        _advertise(device, ip)
        return
    packed = ip_address(ip).packed
    with _opened(device) as line:
        own: bytes = line.getsockname()[4]
        _send(line, device, _message(own, packed, _EVERYBODY, packed))


def _asks(device: str) -> bool:
    """Whether there are neighbours to ask on a device."""
    try:
        flags = int((_DEVICES / device / "flags").read_text(), 16)
    except OSError:
        return False
    return not flags & (_LOOPBACK | _NO_ARP)


def _opened(device: str) -> socket.socket:
    try:
        line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ARP))
        line.bind((device, _ARP))
    except OSError as error:
        raise Failed(f"{device} takes no messages of ARP: {error.strerror}") from None
    return line


def _message(own: bytes, sender: bytes, target: bytes, wanted: bytes) -> bytes:
    lengths = (_ETHERNET, _IPV4, 6, 4, _REQUEST)
    return _HEADER.pack(_EVERYBODY, own, _ARP, *lengths, own, sender, target, wanted)


def _send(line: socket.socket, device: str, frame: bytes) -> None:
    try:
        line.send(frame)
    except OSError as error:
        raise Failed(f"nothing can be sent on {device}: {error.strerror}") from None


async def _heard(line: socket.socket, within: float) -> tuple[bytes, bytes] | None:
    """Return whose the next message is: hardware address, and address; None if none."""
    try:
        async with asyncio.timeout(within):
            frame = await asyncio.get_running_loop().sock_recv(line, 2048)
    except TimeoutError:
        return None
    if len(frame) < _HEADER.size:
        return None
    told = _HEADER.unpack(frame[: _HEADER.size])
    return told[8], told[9]


def _advertise(device: str, ip: str) -> None:
    hardware = bytes.fromhex(
        (_DEVICES / device / "address").read_text().strip().replace(":", "")
    )
    number = socket.if_nametoindex(device)
    message = struct.pack("!BBHI", _ADVERTISEMENT, 0, 0, _OVERRIDES)
    message += ip_address(ip).packed + bytes((_OWN_ADDRESS, 1)) + hardware
    try:
        with socket.socket(
            socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6
        ) as line:
            line.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, _HOPS)
            line.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, number)
            line.sendto(message, (_ALL_NODES, 0, 0, number))
    except OSError as error:
        raise Failed(f"nothing can be sent on {device}: {error.strerror}") from None
