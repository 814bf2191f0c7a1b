# SPDX-License-Identifier: BSD-2-Clause
"""Hypervisor parameters, under Ganeti's names: those that kvm honours.

Known to master and nodes alike, so that a slip is refused where it is made, and not
when the guest is to start. The others are in :mod:`moorage.model.hvignored`.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins

from moorage.errors import BadInput
from moorage.hypervisors import KVM

from . import cpumask, hvdisks, hvscreen
from .hvignored import IGNORED, check_ignored, unheeded
from .misfit import misfit

_MACHINE = re.compile(r"pc|q35|pc-(i440fx|q35)-[0-9]+(\.[0-9]+)*")
_CPU = re.compile(r"[A-Za-z0-9_.-]*(,[+-][\w.-]+|,[\w.-]+=(on|off))*", re.ASCII)
"""A model, and features: what QEMU takes besides could name files."""
_USER = re.compile(r"([a-z_][a-z0-9_-]{0,30}[$]?)?", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SPEEDS = frozenset({9600, 19200, 38400, 57600, 115200})
PCI_SLOTS = 32
"""Slots of a pc's bus, those of its own devices among them."""
_SWITCHES = {"": "", "enabled": "kvm", "disabled": "tcg"}
NIC_TYPES = {
    "paravirtual": "virtio-net-pci",
    "e1000": "e1000",
    "e1000-82540em": "e1000-82540em",
    "e1000-82544gc": "e1000-82544gc",
    "e1000-82545em": "e1000-82545em",
    "i82551": "i82551",
    "i82557b": "i82557b",
    "i82559er": "i82559er",
    "ne2k_pci": "ne2k_pci",
    "pcnet": "pcnet",
    "rtl8139": "rtl8139",
}
"""Ganeti's kinds of network cards, and QEMU's devices."""
_RANGES = {
    "cpu_cores": (0, 255),
    "cpu_sockets": (0, 255),
    "cpu_threads": (0, 255),
    "kvm_pci_reservations": (5, 31),
    "virtio_net_queues": (1, 8),
    "migration_bandwidth": (1, 1 << 20),
    "migration_downtime": (1, 2_000_000),
    "migration_port": (1, 65535),
}

MACHINE = frozenset(
    (
        *("accel", "acpi", "balloon", "cdrom_disk_type", "cpu_type", "kvm_flag"),
        *("disk_type", "scsi_controller_type"),
        *("cpu_cores", "cpu_sockets", "cpu_threads"),
        *("kvm_pci_reservations", "machine_version", "nic_type"),
        *("reboot_behavior", "serial_console"),
        *(
            "usb_devices",
            "usb_mouse",
            "use_guest_agent",
            "use_localtime",
            "vga",
            "vhost_net",
            "virtio_net_queues",
        ),
        "vnet_hdr",
    )
)
"""Parameters that make up a guest's machine, and that a node may tell: none of them
names a file, an address or a user, or holds arguments of somebody's."""


NOT_EARLIER: dict[str, bool | str] = {
    "balloon": False,
    "disk_type": hvdisks.PARAVIRTUAL,
    "usb_devices": "",
}
"""What an agent of the version before does not make, whatever it is told."""
ABSENT = NOT_EARLIER | {"use_guest_agent": False}
"""Those of a guest whose node says nothing of them."""


class Parameters(Struct, frozen=True, kw_only=True):
    """What a guest is started with; other parameters of Ganeti's are passed over.

    Attributes
    ----------
    accel
        ``auto`` takes KVM where it boots a kernel, else emulates; ``kvm`` or ``tcg``.
    balloon
        Whether the guest can give memory back while it runs.
    boot_order
        ``disk``, ``cdrom``, ``floppy`` or ``network``: what is tried first, where no
        kernel of the node's is booted. After a CD or floppy comes the first disk.
    cdrom_image_path, cdrom2_image_path, floppy_image_path
        Image files of the node, where it allows such; read only.
    cdrom_disk_type
        ``ide`` (which is SATA here) or ``scsi`` (virtio).
    cpu_cores, cpu_sockets, cpu_threads
        How the guest's processors are arranged: cores of a socket, sockets, threads of
        a core; 0 leaves it to QEMU.
    cpu_mask
        Which of the node's processors they run on: one entry for each of them, or one
        for the whole guest (see :mod:`moorage.model.cpumask`).
    cpu_type
        A model of QEMU's, with features (``,+ssse3``, ``,avx=off``); empty for all
        that the accelerator offers.
    disk_aio
        How QEMU reads and writes local disks: ``threads``, or the kernel's ``native``
        or ``io_uring``. ``native`` needs a `disk_cache` that bypasses the node's.
    disk_discard
        ``unmap`` gives back to the storage what a guest discards, which is the
        default; ``ignore`` keeps it.
    disk_type
        What disks are: ``paravirtual`` (virtio), or on a pc ``ide`` or ``scsi-hd``.
    scsi_controller_type
        What SCSI disks are on: ``lsi``, ``megasas`` or ``virtio-scsi-pci``.
    disk_cache
        ``default`` bypasses the node's cache where the file system can, which a live
        migration relies on; or Ganeti's none, directsync, writeback, writethrough
        and (QEMU's) unsafe.
    mem_path
        A directory of the node where huge pages are mounted, which the guest's memory
        is in; empty for the usual ones.
    keymap
        The keyboard of those who look at the screen, such as ``de``; empty for
        viewers that send keys, not letters.
    kernel_path, initrd_path, root_path, kernel_args
        A kernel of the node's; without one the guest boots from its first disk.
    kvm_extra
        More arguments for QEMU, in shell syntax.
    kvm_flag
        ``enabled`` or ``disabled``: Ganeti's way to say kvm or tcg.
    kvm_pci_reservations
        How many of a pc's slots are not for disks and network cards; a q35 has ports.
    machine_version
        ``q35``, which is the default, or ``pc``, which Ganeti's guests have by default;
        or a version of one of them, such as ``pc-i440fx-7.2``.
    migration_bandwidth
        In MiB a second.
    migration_downtime
        The pause that a live migration aims at, in milliseconds.
    migration_port
        First TCP port that an incoming guest tries.
    nic_type
        What network cards are: ``paravirtual``, or one of `NIC_TYPES`.
    reboot_behavior
        ``reboot``, or ``exit``: the guest's own reboot powers it off.
    security_model
        Whom QEMU runs as: ``pool`` for a user of the cluster's pool that no other guest
        has, ``user`` for the one that `security_domain` names, ``none`` for the
        agent's. It has no capabilities in any case.
    security_domain
        A user of the node.
    serial_speed
        Of the console, in baud.
    usb_devices
        What is on USB besides, separated by commas: ``keyboard``, ``mouse``,
        ``tablet`` or ``wacom-tablet``, none of which is the node's.
    usb_mouse
        ``tablet`` or ``mouse``, of a guest with a screen.
    user_shutdown
        Whether the guest may power itself off for good, where the cluster allows it.
    use_guest_agent
        Whether the guest has a port for QEMU's guest agent.
    use_localtime
        Whether the guest's clock shows the node's local time instead of UTC.
    vhost_net
        Whether the kernel carries the packets of paravirtual network cards, not QEMU.
    virtio_net_queues
        Queues of a paravirtual network card.
    vnet_hdr
        Whether packets on a network card's cable say what is left to be done to them.
    vga
        The graphics card: ``std``, ``cirrus``, ``virtio``, ``vmware`` or ``none``;
        empty for ``std`` where the guest has a screen. A pc has one unless it is none.
    vnc_bind_address
        An IP address of the node: VNC has a port there. A path: a screen without one.
    vnc_password_file
        A file of the node whose first line is VNC's password; 8 characters count.
    vnc_tls, vnc_x509_path, vnc_x509_verify
        Whether VNC is TLS, with the ``ca-cert.pem``, ``server-cert.pem`` and
        ``server-key.pem`` in that directory, and asks viewers for certificates.
    """

    accel: str = "auto"
    acpi: bool = True
    balloon: bool = True
    boot_order: str = "disk"
    cdrom2_image_path: str = ""
    cdrom_disk_type: str = ""
    cdrom_image_path: str = ""
    cpu_cores: int = 0
    cpu_mask: str = "all"
    cpu_sockets: int = 0
    cpu_threads: int = 0
    cpu_type: str = ""
    disk_aio: str = "threads"
    disk_cache: str = "default"
    disk_discard: str = "unmap"
    disk_type: str = hvdisks.PARAVIRTUAL
    floppy_image_path: str = ""
    initrd_path: str = ""
    kernel_args: str = "ro"
    kernel_path: str = ""
    keymap: str = ""
    kvm_extra: str = ""
    kvm_flag: str = ""
    kvm_pci_reservations: int = 12
    machine_version: str = ""
    mem_path: str = ""
    migration_bandwidth: int = 1024
    migration_downtime: int = 300
    migration_port: int = 8102
    nic_type: str = "paravirtual"
    reboot_behavior: str = "reboot"
    root_path: str = ""
    scsi_controller_type: str = "lsi"
    security_domain: str = ""
    security_model: str = "pool"
    serial_console: bool = True
    serial_speed: int = 38400
    usb_devices: str = ""
    usb_mouse: str = ""
    use_guest_agent: bool = False
    use_localtime: bool = False
    user_shutdown: bool = False
    vhost_net: bool = False
    virtio_net_queues: int = 1
    vnet_hdr: bool = True
    vga: str = ""
    vnc_bind_address: str = ""
    vnc_password_file: str = ""
    vnc_tls: bool = False
    vnc_x509_path: str = ""
    vnc_x509_verify: bool = False

    @property
    def machine(self) -> str:
        """QEMU's machine type."""
        return self.machine_version or "q35"

    @property
    def is_pc(self) -> bool:
        """Whether the machine is a pc: disks and cards sit in the slots of one bus."""
        return "q35" not in self.machine

    @property
    def slots(self) -> range:
        """Those of a pc for disks and network cards; a guest agent's is before."""
        return range(self.kvm_pci_reservations + self.use_guest_agent, PCI_SLOTS)

    @property
    def on_ide(self) -> bool:
        """Whether disks are on a pc's IDE, where nothing can be plugged."""
        return self.is_pc and self.disk_type == "ide"

    @property
    def on_scsi(self) -> bool:
        """Whether disks are on a SCSI controller of a pc's."""
        return self.is_pc and self.disk_type == "scsi-hd"

    @property
    def disk_places(self) -> range | None:
        """The numbers on a bus of their own that a pc's disks can have.

        None where they have slots of its PCI bus.
        """
        if self.on_scsi:
            return range(hvdisks.CONTROLLERS[self.scsi_controller_type])
        if self.on_ide:
            return range(self._discs_on_ide, hvdisks.IDE_DISKS)
        return None

    @property
    def _discs_on_ide(self) -> int:
        """How many CD drives come before the disks on a pc's IDE."""
        if hvscreen.DRIVES[self.cdrom_disk_type] != "ide":
            return 0
        return sum(map(bool, (self.cdrom_image_path, self.cdrom2_image_path)))

    @property
    def topology(self) -> dict[str, int]:
        """How processors are arranged, by QEMU's names; what is left to it is not."""
        told = {
            "sockets": self.cpu_sockets,
            "cores": self.cpu_cores,
            "threads": self.cpu_threads,
        }
        return {name: number for name, number in told.items() if number}

    @property
    def screen(self) -> bool:
        """Whether the guest has a screen; a pc has one unasked, as in Ganeti."""
        unasked = () if self.is_pc else ("",)
        return bool(
            self.vnc_bind_address or self.vga not in (*unasked, hvscreen.NO_CARD)
        )

    @property
    def usb(self) -> tuple[str, ...]:
        """What the guest has on USB besides a pointer."""
        return tuple(filter(None, self.usb_devices.split(",")))

    @property
    def accelerator(self) -> str:
        """The accelerator that is wanted: auto, kvm or tcg."""
        told = _SWITCHES[self.kvm_flag] or "auto"
        return told if self.accel == "auto" else self.accel

    @property
    def discard(self) -> str:
        """QEMU's word for what becomes of what a guest discards."""
        return hvdisks.DISCARDS[self.disk_discard]

    @property
    def writes_through(self) -> bool:
        """Whether each write reaches the storage before the guest goes on."""
        return self.disk_cache in hvdisks.THROUGH

    def cache(self, *, direct: bool) -> dict[str, bool]:
        """Return the cache options of a local drive.

        Parameters
        ----------
        direct
            Whether the file system can bypass the node's cache.
        """
        default = {"direct": direct, "no-flush": False}
        return hvdisks.CACHES.get(self.disk_cache, default)


KNOWN = tuple(sorted({*Parameters.__struct_fields__, *IGNORED}))
"""Every parameter of kvm's that can be given, with an effect or without."""


def check(hypervisor: str, given: Mapping[str, Any]) -> None:
    """Raise `BadInput` for parameters that a hypervisor does not know or cannot honour.

    The value ``default`` stands for the one of the cluster.
    """
    if hypervisor != KVM:
        return
    own = {name: value for name, value in given.items() if value != "default"}
    for name in sorted(own.keys() - {*KNOWN}):
        close = get_close_matches(name, KNOWN, n=1)
        raise BadInput(
            f"kvm has no hypervisor parameter '{name}'",
            hint=f"did you mean {close[0]}?" if close else "",
        )
    for name, value in own.items():
        _check_text(name, value)
    check_ignored(own)
    parameters({name: own[name] for name in own.keys() - IGNORED.keys()})


def warnings(hypervisor: str, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each parameter that is kept and will have no effect."""
    if hypervisor == KVM:
        yield from unheeded(given)


def filled(hypervisor: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of a hypervisor, those that are not given by default."""
    if hypervisor != KVM:
        return dict(given)
    known: dict[str, Any] = to_builtins(Parameters())
    return known | {name: one for name, one in given.items() if one is not None}


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


def of_machine(hvparams: Mapping[str, Any]) -> dict[str, bool | int | str]:
    """Return what a guest's machine is made of: all of `MACHINE`.

    >>> of_machine({"cpu_type": "qemu64", "keymap": "de"})["cpu_type"]
    'qemu64'
    """
    read = parameters(hvparams)
    return {name: getattr(read, name) for name in sorted(MACHINE)}


def _check(read: Parameters) -> None:
    for name in read.__struct_fields__:
        _check_text(name, getattr(read, name))
    for name, (least, most) in _RANGES.items():
        if not least <= getattr(read, name) <= most:
            raise BadInput(
                f"{name} is {least} to {most}, not {getattr(read, name)}",
                parameter=name,
            )
    if not _MACHINE.fullmatch(read.machine):
        raise BadInput(
            f"machine_version '{read.machine}' is not a version of pc or q35, such "
            "as pc-i440fx-7.2",
            machine_version=read.machine,
        )
    if not _CPU.fullmatch(read.cpu_type):
        raise BadInput(
            f"cpu_type '{read.cpu_type}' is not a model of QEMU's with features, such "
            "as host or Nehalem,+aes",
            cpu_type=read.cpu_type,
        )
    cpumask.parsed(read.cpu_mask)
    if not _USER.fullmatch(read.security_domain):
        raise BadInput(f"security_domain '{read.security_domain}' is no user's name")
    hvscreen.one_of("accel", read.accel, {"auto", "kvm", "tcg"})
    hvscreen.one_of("boot_order", read.boot_order, hvscreen.BOOTS)
    hvdisks.check(read)
    hvscreen.one_of("nic_type", read.nic_type, NIC_TYPES)
    hvscreen.one_of("kvm_flag", read.kvm_flag, _SWITCHES)
    hvscreen.one_of("reboot_behavior", read.reboot_behavior, {"reboot", "exit"})
    hvscreen.one_of("security_model", read.security_model, {"none", "user", "pool"})
    hvscreen.one_of("serial_speed", read.serial_speed, _SPEEDS)
    hvscreen.check(read)


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        return
    if _CONTROL.search(value):
        raise BadInput(f"{name} holds a control character: {value!r}", parameter=name)
    if name in ("kernel_path", "initrd_path", "mem_path") and value and value[0] != "/":
        raise BadInput(f"{name} is an absolute path, not '{value}'", parameter=name)
    if name == "kvm_extra":
        try:
            shlex.split(value)
        except ValueError as error:
            raise BadInput(
                f"kvm_extra holds arguments in shell syntax, not {value!r}: "
                f"{str(error).lower()}",
                parameter=name,
            ) from None
