# SPDX-License-Identifier: BSD-2-Clause
"""Hypervisor parameters as columns: each of Ganeti's, with its title and kind there."""

from collections.abc import Mapping

from moorage.model.hvignored import IGNORED
from moorage.model.hvparams import Parameters

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
_NOT_OF_KVM = {
    **dict.fromkeys(("cpu_cap", "cpu_weight", "num_ttys", "startup_timeout"), "number"),
    **dict.fromkeys(("pae", "use_bootloader", "viridian"), "bool"),
    **dict.fromkeys(
        (
            *("blockdev_prefix", "bootloader_args", "bootloader_path", "cpuid"),
            *("device_model", "devices", "drop_capabilities", "extra_cgroups"),
            *("extra_config", "init_script", "pci_pass", "vif_script", "vif_type"),
        ),
        "other",
    ),
}
"""Parameters of hypervisors that do not run here: those of Xen and of LXC."""
_KINDS: Mapping[type, str] = {bool: "bool", int: "number", str: "other"}


def _columns() -> dict[str, Column]:
    usual = {name: one.default for name, one in IGNORED.items()}
    for name in Parameters.__struct_fields__:
        usual[name] = getattr(Parameters(), name)
    kinds = {name: _KINDS[type(one)] for name, one in usual.items()} | _NOT_OF_KVM
    return {
        name: Column(_TITLES.get(name, f"hv/{name}"), kinds[name])
        for name in sorted(kinds)
    }


FAMILY = parameters(
    "hv",
    _columns(),
    "Hypervisor parameter",
    lambda s, i: defaults.of_instance(s.config, i),
)
