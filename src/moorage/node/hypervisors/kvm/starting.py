# SPDX-License-Identifier: BSD-2-Clause
"""What a guest's QEMU is started with: a user, and descriptors of all that it needs."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from socket import socket
from typing import Any

from moorage.errors import Failed
from moorage.model import hvscreen
from moorage.model.hvparams import Parameters
from moorage.node.hypervisors.base import Drive, GuestSpec
from moorage.node.machine import users
from moorage.node.machine.sockets import listener

from . import hotplug, hugepages, lines, netdev, openings, slots
from .accelerator import DEVICE, KVM
from .commandline import Launch
from .guest_dir import GUEST_AGENT, SOCKETS, Home
from .openings import Images, Opened
from .taps import Tap


@dataclass(frozen=True, slots=True)
class Outfit:
    """What a guest's QEMU is started with.

    Attributes
    ----------
    launch
        What its command line tells.
    user
        The words that start a program as the guest's user.
    keep
        Descriptors that it inherits.
    port
        Where its VNC listens, if anywhere.
    """

    launch: Launch
    user: Sequence[str]
    keep: Sequence[int]
    port: socket | None


@dataclass(frozen=True, slots=True)
class Start:
    """How a guest is started.

    Attributes
    ----------
    accel
        Value of ``-accel``.
    taps
        Of its network cards; None for one without a cable. They are not closed here.
    incoming
        Whether it waits for a migration.
    """

    accel: str
    taps: Sequence[Tap | None]
    incoming: bool


@contextmanager
def outfit(
    home: Home,
    spec: GuestSpec,
    given: Parameters,
    images: Images | None,
    start: Start,
) -> Iterator[Outfit]:
    """Yield what a guest is started with; closed again at the end.

    Raises
    ------
    Failed
        If something cannot be opened, or no user is free.
    """
    seats = slots.seats(spec, given) or {}
    ports = hotplug.assigned(spec.drives, spec.ports, given, seats.values())
    with ExitStack() as stack:
        keep = _Keep(stack)
        user = users.take(given, spec.uid_pool)
        if user.lock is not None:
            keep.add(user.lock)
        if user.gid is not None:
            home.share(user.gid)
        group = users.kvm_group(user, DEVICE) if start.accel == KVM else ()
        log = keep.add(home.log("consolelog"))
        numbers = count(2)
        found = _data(spec.drives, images, keep, numbers)
        for one in found.values():
            stack.callback(one.wipe)
        media = _media(given, images, keep, numbers)
        launch = Launch(
            accel=start.accel,
            sockets=_sockets(home, given, stack, keep),
            sets={
                1: (log, ""),
                **_sets(found),
                **{n: (f, "") for n, f in media.values()},
            },
            consolelog=1,
            ports=ports,
            data={disk: one.data for disk, one in found.items()},
            kernel=_kernel(given.kernel_path, home, keep),
            initrd=_kernel(given.initrd_path, home, keep),
            cables=_cables(spec, start, keep),
            incoming=start.incoming,
            media={name: number for name, (number, _) in media.items()},
            huge=_huge(given, spec),
        )
        lines.share_certificates(home, given)
        port = lines.port(spec, given)
        if port:
            stack.enter_context(port)
        yield Outfit(launch, user.words(*group), keep.descriptors, port)


class _Keep:
    """Descriptors that QEMU inherits, and the agent closes."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.descriptors: list[int] = []

    def add(self, descriptor: int) -> int:
        """Keep one."""
        self._stack.callback(os.close, descriptor)
        self.descriptors.append(descriptor)
        return descriptor


def _cables(spec: GuestSpec, start: Start, keep: _Keep) -> list[dict[str, Any] | None]:
    return [
        _cable(card.uuid, tap, keep) if tap else None
        for card, tap in zip(spec.cards, start.taps, strict=True)
    ]


def _cable(card: str, tap: Tap, keep: _Keep) -> dict[str, Any]:
    keep.descriptors += (*tap.queues, *tap.vhosts)
    queues, vhosts = map(str, tap.queues), map(str, tap.vhosts)
    return netdev.cable(card, list(queues), list(vhosts))


def _data(
    given: Sequence[Drive], images: Images | None, keep: _Keep, numbers: Iterator[int]
) -> dict[str, Opened]:
    found = {}
    for drive in given:
        found[drive.disk] = one = openings.opened(drive, images, numbers)
        for descriptor in one.descriptors():
            keep.add(descriptor)
    return found


def _media(
    given: Parameters, images: Images | None, keep: _Keep, numbers: Iterator[int]
) -> dict[str, tuple[int, int]]:
    """Return by parameter the number and the descriptor of each image."""
    found = {}
    for name in hvscreen.MEDIA:
        path = getattr(given, name)
        if path and images is None:
            raise Failed(f"{path} cannot be opened: no image file can, here")
        if path and images:
            found[name] = next(numbers), keep.add(images.open(path, os.O_RDONLY))
    return found


def _sets(found: Mapping[str, Opened]) -> dict[int, tuple[int, str]]:
    return {
        number: (descriptor, disk)
        for disk, one in found.items()
        for number, descriptor in one.sets.items()
    }


def _sockets(
    home: Home, given: Parameters, stack: ExitStack, keep: _Keep
) -> dict[str, int]:
    found = {}
    agent = (GUEST_AGENT,) if given.use_guest_agent else ()
    for name in (*SOCKETS, *agent):
        made = stack.enter_context(listener(home.file(name)))
        keep.descriptors.append(made.fileno())
        found[name] = made.fileno()
    return found


def _huge(given: Parameters, spec: GuestSpec) -> int:
    """Return the size of a guest's huge pages in KiB; 0 if it has none."""
    if not given.mem_path:
        return 0
    try:
        return hugepages.page_size(given.mem_path, spec.memory)
    except Failed as error:
        raise Failed(
            f"guest {spec.name} did not start: {error.message}", hint=error.hint
        ) from None


def _kernel(path: str, home: Home, keep: _Keep) -> int | None:
    try:
        return keep.add(openings.kernel(path, home.path)) if path else None
    except Failed as error:
        raise Failed(
            f"guest {home.spec().name} did not start: {error.message}"
        ) from None
