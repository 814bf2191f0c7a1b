# SPDX-License-Identifier: BSD-2-Clause
"""A guest's screen and removable media on QEMU's command line. Pure.

The screen's VNC listens nowhere: connections are handed over by the agent, and so is
the port, where one is asked for.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.model.hvparams import Parameters
from moorage.model.hvscreen import CARDS, DRIVES, MEDIA, NO_CARD, POINTERS, USB

from . import slots

X509 = ("ca-cert.pem", "server-cert.pem", "server-key.pem")
"""What QEMU looks for in the directory of its certificates."""
ON_USB = "on-usb"
"""How the names of devices on USB begin, but for the pointer's."""
_TLS = "vnc-tls"
_CARD_ADDRESS, _USB_ADDRESS, _CD_ADDRESS = "0x2", "0x18", "0x19"
_PC_USB_ADDRESS, _PC_CD_ADDRESS = "0x1.0x2", "0x4"
"""The first is a function of the pc's own chip, as where Ganeti says ``-usb``."""
_FIRST, _SECOND = 1, 2


def screen(given: Parameters) -> Iterator[str]:
    """Yield what gives a guest a screen, a pointer and VNC, where it has them."""
    if not given.screen:
        return
    if given.vga != NO_CARD:
        yield from _device(driver=CARDS[given.vga], id="screen", addr=_CARD_ADDRESS)
    secured = f",tls-creds={_TLS}" if given.vnc_tls else ""
    if given.vnc_tls:
        verify = "on" if given.vnc_x509_verify else "off"
        words = f"tls-creds-x509,id={_TLS},dir=.,endpoint=server,verify-peer={verify}"
        yield from ("-object", words)
    yield from ("-vnc", f"none,password=on{secured}")
    if given.keymap:
        yield from ("-k", given.keymap)


def usb(given: Parameters) -> Iterator[str]:
    """Yield a guest's USB: a pointer where it has a screen, and what it has besides."""
    pointer = [POINTERS[given.usb_mouse]] if given.screen else []
    others = [USB[name] for name in given.usb]
    if not (pointer or others):
        return
    if given.is_pc:
        yield from _device(driver="piix3-usb-uhci", id="usb", addr=_PC_USB_ADDRESS)
    else:
        yield from _device(driver="qemu-xhci", id="usb", addr=_USB_ADDRESS)
    for driver in pointer:
        yield from _device(driver=driver, id="pointer", bus="usb.0")
    for number, driver in enumerate(others):
        yield from _device(driver=driver, id=f"{ON_USB}{number}", bus="usb.0")


def media(given: Parameters, sets: Mapping[str, int]) -> Iterator[str]:
    """Yield a guest's CD drives and its floppy.

    Parameters
    ----------
    sets
        By parameter, the number of the set that its image is open as.
    """
    bus = DRIVES[given.cdrom_disk_type]
    discs = [name for name in MEDIA[:2] if name in sets]
    own = given.is_pc and bus == "ide"  # a pc has its IDE controller
    if discs and not own:
        kind = "ich9-ahci" if bus == "ide" else "virtio-scsi-pci"
        at = _PC_CD_ADDRESS if given.is_pc else _CD_ADDRESS
        at = slots.of_own(2, given) if given.on_scsi else at
        yield from _device(driver=kind, id="cd", addr=at)
    for number, name in enumerate(discs):
        yield from _image(name, sets[name])
        device: dict[str, Any] = {"driver": f"{bus}-cd", "id": f"cd{number}"}
        device |= {"drive": name, "bus": f"cd.{number if bus == 'ide' else 0}"}
        if own:
            device |= {"bus": "ide.0", "unit": number}
        first = {"bootindex": _FIRST} if given.boot_order == "cdrom" else {}
        yield from _device(**device, **(first if number == 0 else {}))
    if MEDIA[2] in sets:
        yield from _image(MEDIA[2], sets[MEDIA[2]])
        yield from _device(driver="isa-fdc", id="fdc")
        first = {"bootindex": _FIRST} if given.boot_order == "floppy" else {}
        yield from _device(driver="floppy", drive=MEDIA[2], id="floppy", **first)


def disk_index(given: Parameters) -> int | None:
    """Return the turn of the first disk when a guest looks for a system."""
    if given.kernel_path:
        return None
    return {"disk": _FIRST, "network": None}.get(given.boot_order, _SECOND)


def _image(name: str, number: int) -> Iterator[str]:
    file = {"driver": "file", "filename": f"/dev/fdset/{number}", "read-only": True}
    node = {"driver": "raw", "node-name": name, "read-only": True, "file": file}
    yield from ("-blockdev", json.dumps(node))


def _device(**options: Any) -> Iterator[str]:  # noqa: ANN401
    yield from ("-device", json.dumps(options))
