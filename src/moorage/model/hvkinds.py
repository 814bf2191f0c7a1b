# SPDX-License-Identifier: BSD-2-Clause
"""The types of hypervisor parameters: ours, Ganeti's of kvm, Xen's and LXC's."""

from collections.abc import Mapping

from .hvignored import IGNORED
from .hvparams import Parameters

Kind = type[bool] | type[int] | type[str]
_NOT_OF_KVM: Mapping[str, Kind] = {
    **dict.fromkeys(("cpu_cap", "cpu_weight", "num_ttys", "startup_timeout"), int),
    **dict.fromkeys(("pae", "use_bootloader", "viridian"), bool),
    **dict.fromkeys(
        (
            *("blockdev_prefix", "bootloader_args", "bootloader_path", "cpuid"),
            *("device_model", "devices", "drop_capabilities", "extra_cgroups"),
            *("extra_config", "init_script", "pci_pass", "vif_script", "vif_type"),
            "xen_cmd",
        ),
        str,
    ),
}
"""Parameters of hypervisors that do not run here: those of Xen and of LXC."""


def _types() -> Mapping[str, Kind]:
    usual = {name: one.default for name, one in IGNORED.items()}
    for name in Parameters.__struct_fields__:
        usual[name] = getattr(Parameters(), name)
    return {**_NOT_OF_KVM, **{name: type(one) for name, one in usual.items()}}


TYPES = _types()
"""Every parameter that there is, whatever hypervisor has it, with the type of its
values."""
