# SPDX-License-Identifier: BSD-2-Clause
"""What an export may say without being named by whoever imports it, and what not.

An export is written by whoever can write to its directory. So it says how large a guest
is and what devices it has; what opens a file of the node, runs a program there or tells
one what to do, or where the guest is connected, says the one who imports.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from moorage.hypervisors import KVM
from moorage.model import Config, Nic, hvparams
from moorage.model.export import Dump, Exported

OPTION = "--trust-export"
"""The word that takes all of it."""
_HYPERVISOR = frozenset(
    {
        *("acpi", "boot_order", "cdrom_disk_type", "cpu_type", "disk_type"),
        *("kvm_pci_reservations", "machine_version", "nic_type"),
        *("reboot_behavior", "serial_console"),
        *(
            "scsi_controller_type",
            "serial_speed",
            "usb_devices",
            "usb_mouse",
            "use_guest_agent",
            "use_localtime",
            "vga",
            "virtio_net_queues",
        ),
    }
)
"""Devices that a guest sees: numbers, and words of lists that are known."""
_DISK = frozenset({"provider"})
"""Where a disk is put, as its template is."""
_NEVER = frozenset({"adopt", "reuse_data"})
"""Whoever restores a disk writes over it: it is a new one."""
_SHOWN = re.compile(r"[A-Za-z0-9_.-]{1,40}", re.ASCII)
_MOST = 12
"""Names that a warning shows."""


def plain(told: Exported) -> Exported:
    """Return what is taken of an instance without being named."""
    given = told.hvparams
    kept = {name: given[name] for name in given.keys() & _HYPERVISOR}
    if kept.get("boot_order") not in ("disk", "network"):
        kept.pop("boot_order", None)  # the image of a CD is a file of the node
    if given.get("vnc_bind_address") and not kept.get("vga"):
        kept["vga"] = "std"  # the screen stays, without a port
    return replace(
        told,
        hvparams=kept,
        osparams={},
        tags=(),
        nics=tuple(Nic(uuid="", mac=one.mac, name=one.name) for one in told.nics),
    )


def disk(dump: Dump, *, trusted: bool) -> dict[str, Any]:
    """Return the parameters that are taken of a disk."""
    kept = dump.params.keys() - _NEVER if trusted else dump.params.keys() & _DISK
    return {name: dump.params[name] for name in sorted(kept)}


def left(
    config: Config, told: Exported, asked: Mapping[str, Collection[str]]
) -> Iterator[str]:
    """Yield a sentence for each kind of things of an instance that are left out.

    Parameters
    ----------
    asked
        What the request names: the parameters ``hvparams`` and ``osparams``, and
        whether there are ``tags``.
    """
    usual = hvparams.filled(KVM, config.cluster.hvparams.get(KVM, {}))
    given = told.hvparams if told.hypervisor == KVM else {}
    own = plain(told).hvparams
    others = {
        name
        for name, value in given.items()
        if name in usual and value not in (usual[name], "", None)
    }
    missing = others - own.keys() - {*asked["hvparams"]}
    yield from _told("hypervisor parameters", missing, f"-H {told_by(KVM)}")
    missing = told.osparams.keys() - {*asked["osparams"]}
    yield from _told("OS parameters", missing, "-O NAME=VALUE")
    yield from _told("tags", () if asked["tags"] else told.tags, "--tags TAG,...")


def left_of_card(
    config: Config, number: int, nic: Nic, given: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a sentence on what is left out of a network card."""
    usual = config.cluster.nicparams.get("default", {})
    said = {"ip": nic.ip, "network": nic.network} if nic.network else {"ip": nic.ip}
    own = {} if nic.network else nic.nicparams
    others = {name for name, one in own.items() if one and usual.get(name) != one}
    missing = {name for name, one in said.items() if one} | others
    what = f"the connection of network card {number}:"
    yield from _told(what, missing - given.keys(), f"--net {number}:NAME=VALUE")


def left_of_disk(dump: Dump, given: Mapping[str, Any], number: int) -> Iterator[str]:
    """Yield a sentence on the parameters that are left out of a disk."""
    missing = dump.params.keys() - _DISK - _NEVER - given.keys()
    what = f"parameters of disk {number}:"
    yield from _told(what, missing, f"--disk {number}:NAME=VALUE")


def told_by(hypervisor: str) -> str:
    """Return how a hypervisor parameter is typed."""
    return f"{hypervisor}:NAME=VALUE"


def _told(what: str, names: Iterable[str], option: str) -> Iterator[str]:
    known = sorted(names)
    if not known:
        return
    shown = [one for one in known if _SHOWN.fullmatch(one)][:_MOST]
    more = len(known) - len(shown)
    text = ", ".join([*shown, *([f"{more} more"] if more else [])])
    yield (
        f"not taken from the export, which anybody may have written: {what} {text} "
        f"({option} gives them, {OPTION} takes all)"
    )
