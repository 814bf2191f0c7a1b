# SPDX-License-Identifier: BSD-2-Clause
"""The parameters of kvm that are about screens and removable media: what they take.

A guest has a screen where `vga` or `vnc_bind_address` asks for one. It is reached
through the agent, as the serial console is; an address opens a port besides.
"""

import re
from collections.abc import Collection
from ipaddress import ip_address
from typing import Protocol

from moorage.errors import BadInput

CARDS = {
    "": "VGA",
    "std": "VGA",
    "cirrus": "cirrus-vga",
    "virtio": "virtio-vga",
    "vmware": "vmware-svga",
}
"""QEMU's device by Ganeti's word for a graphics card."""
NO_CARD = "none"
POINTERS = {"": "usb-tablet", "tablet": "usb-tablet", "mouse": "usb-mouse"}
"""QEMU's device by Ganeti's word for a pointer; the tablet needs no grabbing."""
USB = {
    "keyboard": "usb-kbd",
    "mouse": "usb-mouse",
    "tablet": "usb-tablet",
    "wacom-tablet": "usb-wacom-tablet",
}
"""QEMU's device by Ganeti's word for one on USB; those of the node would keep a guest
there, and root would open them."""
MOST_USB = 8
"""On QEMU's hub of one level; a pc's controller has two ports."""
DRIVES = {"": "ide", "ide": "ide", "ioemu": "ide", "scsi": "scsi", "scsi-cd": "scsi"}
"""The bus of a CD drive by Ganeti's word for it."""
BOOTS = frozenset({"disk", "network", "cdrom", "floppy"})
MEDIA = ("cdrom_image_path", "cdrom2_image_path", "floppy_image_path")
_KEYMAP = re.compile(r"([a-z]{2}(-[a-z]{2})?|bepo)?")
_PATHS = (*MEDIA, "vnc_password_file", "vnc_x509_path")


class Screen(Protocol):
    """The parameters that these rules look at."""

    @property
    def keymap(self) -> str:
        """The keyboard that a viewer has."""

    @property
    def vga(self) -> str:
        """The graphics card."""

    @property
    def usb_mouse(self) -> str:
        """The pointer."""

    @property
    def usb(self) -> tuple[str, ...]:
        """What is on USB besides."""

    @property
    def cdrom_disk_type(self) -> str:
        """What CD drives are."""

    @property
    def vnc_bind_address(self) -> str:
        """Where VNC listens."""

    @property
    def vnc_password_file(self) -> str:
        """The file that holds the password."""


def check(given: Screen) -> None:
    """Raise `BadInput` for a value that no screen or drive has."""
    one_of("vga", given.vga, [*CARDS, NO_CARD])
    one_of("usb_mouse", given.usb_mouse, POINTERS)
    for word in given.usb:
        one_of("usb_devices", word, USB)
    if len(given.usb) > MOST_USB:
        raise BadInput(f"usb_devices names at most {MOST_USB} devices")
    one_of("cdrom_disk_type", given.cdrom_disk_type, DRIVES)
    for name in _PATHS:
        value = getattr(given, name)
        if value and value[0] != "/":
            raise BadInput(f"{name} is an absolute path, not '{value}'", parameter=name)
    if not _KEYMAP.fullmatch(given.keymap):
        raise BadInput(
            f"keymap '{given.keymap}' is none of QEMU's, such as de or en-us",
            parameter="keymap",
        )
    port_address(given)


def port_address(given: Screen) -> str:
    """Return the address where a guest's VNC has a port; empty for none.

    A path stands for no port, as in Ganeti, where it is the directory of a socket.

    Raises
    ------
    BadInput
        If it is neither.
    """
    word = given.vnc_bind_address
    if not word or word[0] == "/":
        return ""
    try:
        return str(ip_address(word))
    except ValueError:
        raise BadInput(
            f"vnc_bind_address is an IP address of the node, or a path for a screen "
            f"without a port, not '{word}'",
            parameter="vnc_bind_address",
        ) from None


def is_open(given: Screen) -> bool:
    """Whether strangers reach a guest's screen without a password."""
    address = port_address(given)
    if not address or given.vnc_password_file:
        return False
    return not ip_address(address).is_loopback


def check_open(given: Screen) -> None:
    """Raise `BadInput` for a port that strangers reach, and no password."""
    if is_open(given):
        raise BadInput(
            f"vnc_bind_address={given.vnc_bind_address} lets everybody who reaches the "
            "node see the guest and type: it needs vnc_password_file",
            hint="vnc_bind_address=127.0.0.1, or vga=std and gnt-instance console "
            "--vnc",
            parameter="vnc_bind_address",
        )


def one_of(name: str, value: object, known: Collection[object]) -> None:
    """Raise `BadInput` for a value that is none of those that a parameter takes."""
    if value not in known:
        offered = ", ".join(str(one) for one in sorted(known, key=str) if one != "")
        raise BadInput(
            f"{name} '{value}' is none of {offered}", parameter=name, value=value
        )
