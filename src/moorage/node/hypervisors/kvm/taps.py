# SPDX-License-Identifier: BSD-2-Clause
"""Network cards' ends on a node: taps that the agent makes, and hands to QEMU.

A tap goes when its last descriptor is closed: with the guest.
"""

import fcntl
import os
import struct
from contextlib import suppress
from dataclasses import dataclass

from moorage.errors import Failed
from moorage.model.hvparams import Parameters

_TUN, _VHOST = "/dev/net/tun", "/dev/vhost-net"
_TUNSETIFF = 0x400454CA
_TAP, _NO_HEADER, _OFFLOADS, _QUEUES = 0x0002, 0x1000, 0x4000, 0x0100
_NAME = 16
_REQUEST = 40
_PATTERN = b"tap%d"


@dataclass(frozen=True, slots=True)
class Tap:
    """A tap.

    Attributes
    ----------
    name
        Of the interface.
    queues
        A descriptor each.
    vhosts
        Likewise of the kernel's, which carries the packets; none if QEMU does.
    """

    name: str
    queues: tuple[int, ...]
    vhosts: tuple[int, ...] = ()

    def close(self) -> None:
        """Close the descriptors: QEMU has its own by now, or the tap goes."""
        for descriptor in (*self.queues, *self.vhosts):
            with suppress(OSError):
                os.close(descriptor)


def tap(given: Parameters) -> Tap:
    """Return a new tap, connected to nothing.

    Raises
    ------
    Failed
        If it cannot be made, or the kernel is to carry packets and cannot.
    """
    opened: list[int] = []
    virtual = given.nic_type == "paravirtual"
    count = given.virtio_net_queues if virtual else 1
    try:
        name = _PATTERN
        for _ in range(count):
            opened.append(_opened(_TUN))
            name = _attached(opened[-1], name, _flags(given, count))
        kernels = count if given.vhost_net and virtual else 0
        opened.extend(_opened(_VHOST) for _ in range(kernels))
    except BaseException:
        for descriptor in opened:
            os.close(descriptor)
        raise
    queues, vhosts = tuple(opened[:count]), tuple(opened[count:])
    return Tap(name.rstrip(b"\0").decode(), queues, vhosts)


def _flags(given: Parameters, count: int) -> int:
    offloads = _OFFLOADS if given.vnet_hdr else 0
    return _TAP | _NO_HEADER | offloads | (_QUEUES if count > 1 else 0)


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise _cannot(f"{path}: {error.strerror}", path) from None


def _attached(descriptor: int, name: bytes, flags: int) -> bytes:
    """Make a queue of a tap; return the tap's name."""
    request = (name[:_NAME].ljust(_NAME, b"\0") + struct.pack("H", flags)).ljust(
        _REQUEST, b"\0"
    )
    try:
        answer = fcntl.ioctl(descriptor, _TUNSETIFF, request)
    except OSError as error:
        raise _cannot(error.strerror or str(error), _TUN) from None
    return bytes(answer[:_NAME])


def _cannot(why: str, path: str) -> Failed:
    hints = {
        _TUN: "the agent makes taps as root, with the kernel's module tun",
        _VHOST: "modprobe vhost_net, or -H kvm:vhost_net=false",
    }
    return Failed(f"no network card can be connected here: {why}", hint=hints[path])
