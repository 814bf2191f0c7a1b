# SPDX-License-Identifier: BSD-2-Clause
"""Where disks and network cards sit in a guest's machine. Pure.

A q35 has a port for each disk, and others for cards. A pc has one bus, whose slots are
given as Ganeti gives them: after those that are reserved first to the disks, then to
the cards, and to what is plugged later the first that is free.
"""

from collections.abc import Collection

from moorage.errors import Failed
from moorage.model.hvparams import Parameters
from moorage.model.objects import MOST_DISKS
from moorage.node.hypervisors.base import GuestSpec

BUS = "pci.0"
"""The bus of a pc; that of a q35 is called otherwise."""


def of_disks(given: Parameters) -> range:
    """Return the numbers of the places that a disk can have."""
    if given.is_pc:
        return given.slots
    return range(MOST_DISKS)


def seats(spec: GuestSpec, given: Parameters) -> dict[str, int] | None:
    """Return the place of each card of a guest that is to be started.

    None for a guest of an older agent's, which has no ports for cards.

    Raises
    ------
    Failed
        If its machine has no slot for one of them.
    """
    if spec.waits or not given.is_pc:
        return spec.seats
    slots = of_disks(given)[len(spec.drives) :]
    if len(slots) < len(spec.cards):
        raise full(f"guest {spec.name}", given)
    return dict(zip((card.uuid for card in spec.cards), slots, strict=False))


def beside(given: Parameters, others: Collection[int]) -> Collection[int]:
    """Return which places of one kind of devices those of the other kind cannot have.

    Parameters
    ----------
    others
        The places that the one kind has.
    """
    return others if given.is_pc else ()


def address(slot: int) -> dict[str, str]:
    """Return where on a pc's bus a device is, in QEMU's words."""
    return {"bus": BUS, "addr": f"{slot:#x}"}


def full(guest: str, given: Parameters) -> Failed:
    """Return what is said of a pc without a free slot."""
    return Failed(
        f"{guest} has no free slot: as a pc it has {len(of_disks(given))} for disks "
        "and network cards",
        hint="detach a disk or remove a card; or, where its system can, "
        "-H machine_version=q35",
    )
