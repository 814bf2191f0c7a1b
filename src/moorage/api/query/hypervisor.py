# SPDX-License-Identifier: BSD-2-Clause
"""Hypervisor parameters as columns: each of Ganeti's, with its title and kind there."""

from collections.abc import Mapping

from moorage.model.hvkinds import TYPES

from . import defaults
from .field import Column, parameters

_TITLES = {
    "acpi": "ACPI",
    "boot_order": "Boot_order",
    "cdrom_image_path": "CDROM_image_path",
    "cpu_type": "cpu_type",
    "disk_type": "Disk_type",
    "initrd_path": "Initrd_path",
    "kernel_path": "Kernel_path",
    "nic_type": "NIC_type",
    "pae": "PAE",
    "pci_pass": "pci_pass",
    "vnc_bind_address": "VNC_bind_address",
}
_GLOBAL = "xen_cmd"
"""A parameter that no instance can have."""
_KINDS: Mapping[type, str] = {bool: "bool", int: "number", str: "other"}


def _columns() -> dict[str, Column]:
    return {
        name: Column(_TITLES.get(name, f"hv/{name}"), _KINDS[TYPES[name]])
        for name in sorted(TYPES.keys() - {_GLOBAL})
    }


FAMILY = parameters(
    "hv",
    _columns(),
    "Hypervisor parameter",
    lambda s, i: defaults.of_instance(s.config, i),
)
