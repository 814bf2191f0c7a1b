# SPDX-License-Identifier: BSD-2-Clause
"""The command line of a guest's QEMU. Pure.

PCI addresses are fixed, because a live migration needs the same ones on both nodes.
Sockets are handed over as open descriptors: QEMU never sees their paths, so these may
be longer than a socket address.
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from moorage.model.hvparams import Parameters
from moorage.node.hypervisors.base import Card, Drive, GuestSpec

from . import blocks

PORTS = 16
"""Drives that a guest can have: as many as Ganeti allows."""
CHANNEL = "moorage"
"""Name of the guest's channel port."""

_SERIAL_ADDRESS, _FIRST_PORT_ADDRESS, _FIRST_CARD_ADDRESS = 0x3, 0x4, 0x10
_FUNCTIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a guest is started, besides what it is.

    Attributes
    ----------
    accel
        Value of ``-accel``.
    sockets
        Descriptors of the listening sockets ``monitor``, ``console``, ``channel``.
    files
        Paths of ``pid``, ``log`` (QEMU's) and ``consolelog``.
    ports
        Port of each disk.
    caches
        Cache options of each disk.
    incoming
        Whether it waits for a migration.
    """

    accel: str
    sockets: Mapping[str, int]
    files: Mapping[str, str]
    ports: Mapping[str, int]
    caches: Mapping[str, dict[str, bool]]
    incoming: bool = False


def arguments(spec: GuestSpec, given: Parameters, launch: Launch) -> list[str]:
    """Return QEMU's arguments, without the program."""
    return [
        *_machine(spec, given, launch),
        *_sandbox(given),
        *_chardevs(given, launch),
        *_ports(),
        *_boot(given),
        *(word for drive in spec.drives for word in _drive(drive, given, launch)),
        *(word for n, card in enumerate(spec.cards) for word in _card(n, card)),
        *(("-incoming", "defer") if launch.incoming else ()),
        *shlex.split(given.kvm_extra),
    ]


def _machine(spec: GuestSpec, given: Parameters, launch: Launch) -> list[str]:
    acpi = "" if given.acpi else ",acpi=off"
    clock = "localtime" if given.use_localtime else "utc"
    cpu = given.cpu_type or ("host" if launch.accel.startswith("kvm") else "max")
    return [
        *("-name", _value(spec.name)),
        *(("-uuid", spec.uuid) if _is_uuid(spec.uuid) else ()),
        *("-machine", f"{given.machine},usb=off,vmport=off{acpi}"),
        *("-accel", launch.accel, "-cpu", cpu),
        *("-m", f"{spec.memory}M", "-smp", str(spec.vcpus), "-rtc", f"base={clock}"),
        *(("-no-reboot",) if given.reboot_behavior == "exit" else ()),
        *("-nodefaults", "-no-user-config", "-display", "none", "-daemonize"),
        *("-pidfile", launch.files["pid"], "-D", launch.files["log"]),
    ]


def _sandbox(given: Parameters) -> Iterator[str]:
    """Yield what QEMU may not do; arguments that name a sandbox choose their own.

    It may fork and start programs: it makes a daemon of itself, a bridge has a helper.
    """
    if "-sandbox" not in shlex.split(given.kvm_extra):
        yield from ("-sandbox", "on,obsolete=deny,resourcecontrol=deny")


def _is_uuid(text: str) -> bool:
    try:
        return bool(UUID(text))
    except ValueError:
        return False


def _value(text: str) -> str:
    """Return `text` as a value between QEMU's commas."""
    return text.replace(",", ",,")


def _chardevs(given: Parameters, launch: Launch) -> Iterator[str]:
    for name, fd in launch.sockets.items():
        # appended to, so that the agent can cut it while QEMU writes
        log = f",logfile={_value(launch.files['consolelog'])},logappend=on"
        extra = log if name == "console" else ""
        yield "-chardev"
        yield f"socket,id={name},fd={fd},server=on,wait=off{extra}"
    yield from ("-mon", "chardev=monitor,mode=control")
    if given.serial_console:
        yield from ("-serial", "chardev:console")
    yield from ("-device", f"virtio-serial-pci,id=serial,addr={_SERIAL_ADDRESS:#x}")
    yield from ("-device", f"virtserialport,chardev=channel,name={CHANNEL}")


def _ports() -> Iterator[str]:
    """Yield empty ports: on q35 a device can only be plugged into one of these."""
    for port in range(PORTS):
        slot, function = divmod(port, _FUNCTIONS)
        address = f"addr={_FIRST_PORT_ADDRESS + slot:#x}.{function},multifunction=on"
        name = f"id={blocks.port_name(port)},chassis={port + 1},slot={port + 1}"
        # without io-reserve, 16 ports would use up all I/O ports that there are
        yield from ("-device", f"pcie-root-port,{name},io-reserve=0,{address}")


def _boot(given: Parameters) -> Iterator[str]:
    if not given.kernel_path:
        return
    yield from ("-kernel", given.kernel_path, "-append", kernel_arguments(given))
    if given.initrd_path:
        yield from ("-initrd", given.initrd_path)


def kernel_arguments(given: Parameters) -> str:
    """Return the kernel's command line."""
    words = [f"root={given.root_path}"] if given.root_path else []
    words += [given.kernel_args] if given.kernel_args else []
    if given.serial_console and "console=" not in given.kernel_args:
        words.append(f"console=ttyS0,{given.serial_speed}")
    return " ".join(words)


def _drive(drive: Drive, given: Parameters, launch: Launch) -> Iterator[str]:
    cache = launch.caches[drive.disk]
    name = blocks.lower_names(drive.disk)[0]
    device = blocks.device(drive, launch.ports[drive.disk], given)
    if drive.slot == 0 and given.boot_order == "disk" and not given.kernel_path:
        device["bootindex"] = 1
    yield from ("-blockdev", json.dumps(blocks.lower_node(drive, name, cache)))
    yield from ("-blockdev", json.dumps(blocks.upper_node(drive, name, cache)))
    yield from ("-device", json.dumps(device))


def _card(number: int, card: Card) -> Iterator[str]:
    backend = f"bridge,br={_value(card.link)}" if card.link else "user"
    yield from ("-netdev", f"{backend},id=net{number}")
    device = {
        "driver": "virtio-net-pci",
        "id": f"card{number}",
        "netdev": f"net{number}",
        "mac": card.mac,
        "addr": f"{_FIRST_CARD_ADDRESS + number:#x}",
    }
    yield from ("-device", json.dumps(device))
