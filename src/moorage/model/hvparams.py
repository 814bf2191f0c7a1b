# SPDX-License-Identifier: BSD-2-Clause
"""Hypervisor parameters, under Ganeti's names: what kvm honours, and what it ignores.

Known to master and nodes alike, so that a slip is refused where it is made, and not
when the guest is to start.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from msgspec import Struct, ValidationError, convert

from moorage.errors import BadInput

from .misfit import misfit

_PASSED_OVER = frozenset(
    [
        "cdrom2_image_path",
        "cdrom_disk_type",
        "cdrom_image_path",
        "cpu_cores",
        "cpu_mask",
        "cpu_sockets",
        "cpu_threads",
        "disk_aio",
        "disk_discard",
        "disk_type",
        "floppy_image_path",
        "keymap",
        "kvm_flag",
        "kvm_path",
        "kvm_pci_reservations",
        "mem_path",
        "migration_caps",
        "migration_mode",
        "nic_type",
        "reboot_behavior",
        "scsi_controller_type",
        "security_domain",
        "security_model",
        "serial_speed",
        "soundhw",
        "spice_bind",
        "spice_image_compression",
        "spice_ip_version",
        "spice_jpeg_wan_compression",
        "spice_password_file",
        "spice_playback_compression",
        "spice_streaming_video",
        "spice_tls_ciphers",
        "spice_use_tls",
        "spice_use_vdagent",
        "spice_zlib_glz_wan_compression",
        "usb_devices",
        "usb_mouse",
        "use_chroot",
        "use_localtime",
        "user_shutdown",
        "vga",
        "vhost_net",
        "virtio_net_queues",
        "vnc_bind_address",
        "vnc_password_file",
        "vnc_tls",
        "vnc_x509_path",
        "vnc_x509_verify",
        "vif_type",
    ]
)
"""Ganeti's parameters that mean nothing here: accepted, so that requests still work."""
KVM = "kvm"
_CACHES: dict[str, dict[str, bool]] = {
    "none": {"direct": True, "no-flush": False},
    "directsync": {"direct": True, "no-flush": False},
    "writeback": {"direct": False, "no-flush": False},
    "writethrough": {"direct": False, "no-flush": False},
    "unsafe": {"direct": False, "no-flush": True},
}
_THROUGH = {"directsync", "writethrough"}


class Parameters(Struct, frozen=True, kw_only=True):
    """What a guest is started with; other parameters of Ganeti's are passed over.

    Attributes
    ----------
    accel
        ``auto`` takes KVM where it works, else emulates; ``kvm``, ``tcg``, or what
        QEMU's ``-accel`` takes.
    boot_order
        ``disk`` or ``network``.
    cpu_type
        A model of QEMU's; empty for all that the accelerator offers.
    disk_cache
        ``default`` bypasses the node's cache where the file system can, which a live
        migration relies on; or Ganeti's none, directsync, writeback, writethrough
        and (QEMU's) unsafe.
    kernel_path, initrd_path, root_path, kernel_args
        A kernel of the node's; without one the guest boots from its first disk.
    kvm_extra
        More arguments for QEMU, in shell syntax.
    machine_version
        A version of QEMU's q35 machine.
    migration_bandwidth
        In MiB a second.
    migration_downtime
        The pause that a live migration aims at, in milliseconds.
    migration_port
        First TCP port that an incoming guest tries.
    """

    accel: str = "auto"
    acpi: bool = True
    boot_order: str = "disk"
    cpu_type: str = ""
    disk_cache: str = "default"
    initrd_path: str = ""
    kernel_args: str = "ro"
    kernel_path: str = ""
    kvm_extra: str = ""
    machine_version: str = ""
    migration_bandwidth: int = 1024
    migration_downtime: int = 300
    migration_port: int = 8102
    root_path: str = ""
    serial_console: bool = True

    @property
    def machine(self) -> str:
        """QEMU's machine type."""
        return self.machine_version or "q35"

    @property
    def writes_through(self) -> bool:
        """Whether each write reaches the storage before the guest goes on."""
        return self.disk_cache in _THROUGH

    def cache(self, *, direct: bool) -> dict[str, bool]:
        """Return the cache options of a local drive.

        Parameters
        ----------
        direct
            Whether the file system can bypass the node's cache.
        """
        default = {"direct": direct, "no-flush": False}
        return _CACHES.get(self.disk_cache, default)


def check(hypervisor: str, given: Mapping[str, Any]) -> None:
    """Raise `BadInput` for parameters that a hypervisor does not know or cannot honour.

    The value ``default`` stands for the one of the cluster.
    """
    if hypervisor != KVM:
        return
    own = {name: value for name, value in given.items() if value != "default"}
    known = sorted({*Parameters.__struct_fields__, *_PASSED_OVER})
    for name in sorted(own.keys() - {*known}):
        close = get_close_matches(name, known, n=1)
        raise BadInput(
            f"kvm has no hypervisor parameter '{name}'",
            hint=f"did you mean {close[0]}?" if close else "",
        )
    parameters({name: own[name] for name in own.keys() - _PASSED_OVER})


def parameters(hvparams: Mapping[str, Any]) -> Parameters:
    """Return the parameters that `hvparams` hold; what is None counts as not given.

    Raises
    ------
    BadInput
        If one of them has a value that kvm cannot honour.
    """
    given = {name: value for name, value in hvparams.items() if value is not None}
    try:
        read = convert(given, Parameters, strict=False)
    except ValidationError as error:
        raise BadInput(f"hypervisor parameters of kvm: {misfit(error)}") from None
    _check(read)
    return read


def _check(read: Parameters) -> None:
    if "q35" not in read.machine:
        raise BadInput(
            f"machine_version '{read.machine}' is not a version of q35, the machine "
            "whose disks kvm can plug",
            machine_version=read.machine,
        )
    _one_of("boot_order", read.boot_order, {"disk", "network"})
    _one_of("disk_cache", read.disk_cache, {"default", *_CACHES})


def _one_of(name: str, value: str, known: set[str]) -> None:
    if value not in known:
        offered = ", ".join(sorted(known))
        raise BadInput(f"{name} '{value}' is none of {offered}", **{name: value})
