# SPDX-License-Identifier: BSD-2-Clause
"""What a guest is seen to do, from its process and from its monitor."""

import asyncio
from pathlib import Path

from msgspec.structs import replace

from moorage.errors import BadInput, Failed
from moorage.model import GuestState, hvdisks, hvparams
from moorage.model.standstill import NO_ANSWER
from moorage.node.hypervisors.base import GuestSpec

from . import ballooning, cards, guest_state, hotplug, screen
from .commandline import AGENTS_PORT
from .guest_dir import Home, homes
from .monitor import conversation

_LOOK = 8.0
"""Seconds that a guest may take to say how it is. The others are told of with it, and
whoever asked must hear of all before it gives up: a master that does would take the
node for one without power, and start elsewhere what runs there."""
_STEP = 30.0
"""Seconds that it may take where a step hangs on what it says."""

_ARRANGED = ("cpu_sockets", "cpu_cores", "cpu_threads")


async def guests(run_dir: Path) -> list[GuestState]:
    """Return the guests of a run directory that have a process."""
    found = await asyncio.gather(*map(find, homes(run_dir)))
    return [replace(guest, machine={}) for guest in found if guest]


async def find(home: Home, patience: float | None = None) -> GuestState | None:
    """Return one guest; None if it has no process.

    One whose monitor gives no answer counts as paused.

    Parameters
    ----------
    patience
        Seconds that it may take to say how it is; None for those of a look.
    """
    if not home.has_process():
        return None
    spec = home.spec()
    state, cause, ports = "paused", NO_ANSWER, dict[str, int]()
    seats, now = spec.seats, None
    try:
        async with asyncio.timeout(patience or _LOOK), conversation(home) as monitor:
            state, cause = await guest_state.with_cause(monitor)
            now = await ballooning.held(monitor, spec.memory)
            if not home.is_adopted():
                ports = await hotplug.layout(monitor)
                seats = await cards.layout(monitor)
    except (Failed, TimeoutError):
        state, cause = "paused", NO_ANSWER
        if not home.has_process():
            return None
    found = GuestState(
        uuid=home.uuid,
        name=spec.name,
        state=state,
        cause=cause,
        memory=spec.memory,
        now=now,
        vcpus=spec.vcpus,
        disks=tuple(sorted(ports, key=ports.__getitem__)),
        ports=ports,
        cards=seats,
        machine=_machine(home, spec),
    )
    return _as_adopted(found, spec) if home.is_adopted() else found


def _as_adopted(guest: GuestState, spec: GuestSpec) -> GuestState:
    """Return a guest with the disks that it was found to have when it was taken over.

    Nothing can be plugged into it, and its machine is not one of ours.
    """
    disks = tuple(drive.disk for drive in spec.drives)
    return replace(guest, disks=disks, cards=None, machine={}, origin="adopted")


def _machine(home: Home, spec: GuestSpec) -> dict[str, bool | int | str]:
    """Return what a guest's machine is made of; nothing where it is not understood."""
    try:
        told = hvparams.of_machine(spec.hvparams)
    except BadInput:  # a guest of an earlier version's
        return {}
    pid = home.pid()
    told["use_guest_agent"] = told["use_guest_agent"] and has_agents_port(pid)
    if not _was_told(pid, hvdisks.DRIVERS[str(told["disk_type"])]) and spec.drives:
        told["disk_type"] = hvdisks.PARAVIRTUAL
    told["balloon"] = told["balloon"] and _was_told(pid, ballooning.DEVICE)
    told["usb_devices"] = told["usb_devices"] if _was_told(pid, screen.ON_USB) else ""
    return told if is_arranged(pid) else told | dict.fromkeys(_ARRANGED, 0)


def devices(home: Home) -> dict[str, bool | int | str]:
    """Return what a guest's machine has of the devices that not every agent makes."""
    told = _machine(home, home.spec())
    return {name: told.get(name, no) for name, no in hvparams.ABSENT.items()}


def has_agents_port(pid: int | None) -> bool:
    """Whether a QEMU was told to have a port for its guest agent."""
    return _was_told(pid, AGENTS_PORT)


def _was_told(pid: int | None, word: str) -> bool:
    """Whether a word stands in the command line of a QEMU.

    An earlier version kept parameters with a guest, too, and told QEMU nothing of them.
    One that is gone is as on record.
    """
    try:
        return word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True


def is_arranged(pid: int | None) -> bool:
    """Whether a QEMU was told how processors are arranged.

    An earlier version kept the parameters with a guest, and did not tell QEMU: such a
    guest goes to no machine that has them.
    """
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b"=" in words[words.index(b"-smp") + 1]
    except (OSError, ValueError, IndexError):
        return True


async def only(home: Home, state: str, verb: str) -> bool:
    """Whether the guest has a process; it must be in a state, or `Failed`."""
    found = await find(home, _STEP)
    if found and found.state != state:
        raise Failed(
            f"guest {found.name} is {found.state} here, so it cannot be {verb}",
            guest=home.uuid,
            state=found.state,
        )
    return found is not None
