# SPDX-License-Identifier: BSD-2-Clause
"""The command line of a guest's QEMU. Pure.

PCI addresses are fixed, because a live migration needs the same ones on both nodes.
Files and sockets are handed over as open descriptors: QEMU may open none, and their
paths may be longer than a socket address.
"""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from moorage.model.hvparams import Parameters
from moorage.model.objects import MOST_DISKS
from moorage.node.hypervisors.base import Drive, GuestSpec
from moorage.node.machine import proc

from . import ballooning, blockdev, ending, netdev, screen, slots
from .guest_dir import GUEST_AGENT

CHANNEL = "moorage"
"""Name of the guest's channel port."""
AGENTS_PORT = "org.qemu.guest_agent.0"
"""Name of the port at which QEMU's guest agent listens."""

_SERIAL_ADDRESS, _FIRST_PORT_ADDRESS = "0x3", 0x4
_BALLOON_ADDRESS = "0x1a"
_FUNCTIONS = 8
_WITHOUT = "usb=off,vmport=off,sata=off,smbus=off"
"""What the machine would have, and no guest needs."""
_RUNS_ON_ARRIVAL = "migration.store-global-state=off"
"""A guest that stands still when it is sent does not say so to its destination, which
lets it run as soon as it is whole. Only guests that run are sent."""
_RAM = "pc.ram"
"""QEMU's name for the memory of its machines."""
_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a guest is started, besides what it is.

    Attributes
    ----------
    accel
        Value of ``-accel``.
    sockets
        Descriptors of the listening sockets ``monitor``, ``console``, ``channel``, and
        of ``agent`` where the guest has one.
    sets
        Descriptors of files and devices, by the numbers that nodes name them by, each
        with the disk that it belongs to.
    consolelog
        Number of the set of the console's log.
    kernel, initrd
        Descriptors of the node's kernel and its initramfs, if the guest boots one.
    cables
        QEMU's ends of the cards' cables; None for a card without one.
    ports
        Port of each disk, or its slot in a pc.
    data
        How the data of each disk are reached.
    incoming
        Whether it waits for a migration.
    media
        By parameter, the set that an image of a CD or floppy is open as.
    huge
        Size of the pages that its memory is in, in KiB; 0 for the usual ones.
    """

    accel: str
    sockets: Mapping[str, int]
    sets: Mapping[int, tuple[int, str]]
    consolelog: int
    ports: Mapping[str, int]
    data: Mapping[str, blockdev.Data]
    kernel: int | None = None
    initrd: int | None = None
    cables: Sequence[Mapping[str, Any] | None] = ()
    incoming: bool = False
    media: Mapping[str, int] = field(default_factory=dict)
    huge: int = 0


def arguments(spec: GuestSpec, given: Parameters, launch: Launch) -> list[str]:
    """Return QEMU's arguments, without the program."""
    return [
        *_machine(spec, given, launch),
        *_sandbox(given),
        *_sets(launch),
        *_controller(given),
        *_balloon(given),
        *_chardevs(given, launch),
        *(() if given.is_pc else _ports(spec)),
        *_boot(given, launch),
        *screen.screen(given),
        *screen.usb(given),
        *screen.media(given, launch.media),
        *(word for drive in spec.drives for word in _drive(drive, given, launch)),
        *_cards(spec, given, launch),
        *("-global", _RUNS_ON_ARRIVAL),
        *(("-incoming", "defer") if launch.incoming else ()),
        *(("-S",) if spec.paused else ()),
        *shlex.split(given.kvm_extra),
    ]


def _machine(spec: GuestSpec, given: Parameters, launch: Launch) -> list[str]:
    acpi = "" if given.acpi else ",acpi=off"
    clock = "localtime" if given.use_localtime else "utc"
    cpu = given.cpu_type or ("host" if launch.accel.startswith("kvm") else "max")
    return [
        *("-name", _value(spec.name)),
        *(("-uuid", spec.uuid) if _is_uuid(spec.uuid) else ()),
        *_memory(spec, launch),
        *("-machine", f"{given.machine},{_WITHOUT}{acpi}{_backed(launch)}"),
        *("-accel", launch.accel, "-cpu", cpu),
        *("-m", f"{spec.memory}M", "-smp", _processors(spec, given)),
        *("-rtc", f"base={clock}"),
        *(("-no-reboot",) if given.reboot_behavior == "exit" else ()),
        *("-nodefaults", "-no-user-config", "-display", "none"),
        *(word for event in ending.TRACED for word in ("-trace", event)),
    ]


def _backed(launch: Launch) -> str:
    return f",memory-backend={_RAM}" if launch.huge else ""


def _memory(spec: GuestSpec, launch: Launch) -> Iterator[str]:
    """Yield the memory of a guest that has it in huge pages.

    It has the name of any other guest's, so that one goes to where it is the other.
    """
    if launch.huge:
        size = f"size={spec.memory}M,prealloc=on,share=off"
        pages = f"hugetlb=on,hugetlbsize={launch.huge}K"
        name = f"id={_RAM},x-use-canonical-path-for-ramblock-id=off"
        yield from ("-object", f"memory-backend-memfd,{name},{size},{pages}")


def _processors(spec: GuestSpec, given: Parameters) -> str:
    told = [f"{name}={number}" for name, number in given.topology.items()]
    return ",".join([str(spec.vcpus), *told])


def _sandbox(given: Parameters) -> Iterator[str]:
    """Yield what QEMU may not do; arguments that name a sandbox choose their own."""
    if "-sandbox" not in shlex.split(given.kvm_extra):
        yield from ("-sandbox", _SANDBOX)


def _sets(launch: Launch) -> Iterator[str]:
    for number, (descriptor, disk) in launch.sets.items():
        opaque = f",opaque={_value(disk)}" if disk else ""
        yield from ("-add-fd", f"fd={descriptor},set={number}{opaque}")


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
        log = f",logfile=/dev/fdset/{launch.consolelog},logappend=on"
        extra = log if name == "console" else ""
        yield "-chardev"
        yield f"socket,id={name},fd={fd},server=on,wait=off{extra}"
    yield from ("-mon", "chardev=monitor,mode=control")
    if given.serial_console:
        yield from ("-serial", "chardev:console")
    place = _SERIAL_ADDRESS
    if given.is_pc:
        place = slots.of_own(1 if given.balloon else 0, given)
    yield from ("-device", f"virtio-serial-pci,id=serial,addr={place}")
    yield from ("-device", f"virtserialport,chardev=channel,name={CHANNEL}")
    if given.use_guest_agent:
        yield from _agent(given)


def _controller(given: Parameters) -> Iterator[str]:
    """Yield what a pc's SCSI disks are on, where Ganeti's QEMU has it: before all."""
    if given.on_scsi:
        word = given.scsi_controller_type
        yield from ("-device", f"{word},id={slots.SCSI},addr={slots.FIRST:#x}")


def _balloon(given: Parameters) -> Iterator[str]:
    if given.balloon:
        place = _BALLOON_ADDRESS
        if given.is_pc:
            place = slots.of_own(0, given)
        yield from ("-device", f"{ballooning.DEVICE},id=balloon,addr={place}")


def _agent(given: Parameters) -> Iterator[str]:
    """Yield the port of a guest agent; on a pc on a card of its own, as in Ganeti."""
    bus = "serial"
    if given.is_pc:
        bus, at = "agent", given.kvm_pci_reservations
        yield from ("-device", f"virtio-serial-pci,id={bus},addr={at:#x}")
    port = f"virtserialport,bus={bus}.0,chardev={GUEST_AGENT},name={AGENTS_PORT}"
    yield from ("-device", port)


def _ports(spec: GuestSpec) -> Iterator[str]:
    """Yield empty ports: on q35 a device can only be plugged into one of these."""
    for port in range(MOST_DISKS):
        slot, function = divmod(port, _FUNCTIONS)
        address = f"addr={_FIRST_PORT_ADDRESS + slot:#x}.{function},multifunction=on"
        name = f"id={blockdev.port_name(port)},chassis={port + 1},slot={port + 1}"
        # without io-reserve, 16 ports would use up all I/O ports that there are
        yield from ("-device", f"pcie-root-port,{name},io-reserve=0,{address}")
    for device in netdev.ports() if spec.seats is not None else ():
        yield from ("-device", device)


def _boot(given: Parameters, launch: Launch) -> Iterator[str]:
    if launch.kernel is None:
        return
    yield from ("-kernel", proc.descriptor(launch.kernel))
    yield from ("-append", kernel_arguments(given))
    if launch.initrd is not None:
        yield from ("-initrd", proc.descriptor(launch.initrd))


def kernel_arguments(given: Parameters) -> str:
    """Return the kernel's command line."""
    words = [f"root={given.root_path}"] if given.root_path else []
    words += [given.kernel_args] if given.kernel_args else []
    if given.serial_console and "console=" not in given.kernel_args:
        words.append(f"console=ttyS0,{given.serial_speed}")
    return " ".join(words)


def _drive(drive: Drive, given: Parameters, launch: Launch) -> Iterator[str]:
    data = launch.data[drive.disk]
    stack = blockdev.stacks(drive.disk)[0]
    name = stack.lowers[0]
    device = blockdev.device(drive, launch.ports[drive.disk], given)
    turn = screen.disk_index(given)
    if drive.slot == 0 and turn is not None:
        device["bootindex"] = turn
    yield from ("-blockdev", json.dumps(blockdev.lower_node(drive, data, name, given)))
    upper = blockdev.upper_node(drive, data, stack.upper, name, given)
    yield from ("-blockdev", json.dumps(upper))
    yield from ("-device", json.dumps(device))


def _cards(spec: GuestSpec, given: Parameters, launch: Launch) -> Iterator[str]:
    seats = slots.seats(spec, given)
    for card, cable in zip(spec.cards, launch.cables, strict=True):
        seat = None if seats is None else seats[card.uuid]
        if cable:
            yield from ("-netdev", netdev.typed(cable))
        device = netdev.device(card, seat, given, cabled=cable is not None)
        yield from ("-device", json.dumps(device))
