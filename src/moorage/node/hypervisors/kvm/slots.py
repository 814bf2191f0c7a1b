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
FIRST = 3
"""The first slot of a pc that its chips and its screen leave free."""
SCSI = "scsi"
"""The controller of a pc's SCSI disks."""


def of_disks(given: Parameters) -> range:
    """Return the numbers of the places that a disk can have.

    On a pc they are slots, places on its IDE (two a cable), or SCSI's numbers.
    """
    if given.is_pc:
        return given.slots if given.disk_places is None else given.disk_places
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
    # in Ganeti disks on IDE leave slots empty that they would have had
    slots = given.slots if given.on_scsi else given.slots[len(spec.drives) :]
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
    return others if given.is_pc and given.disk_places is None else ()


def of_own(function: int, given: Parameters) -> str:
    """Return the address of a pc's device that is ours, or the balloon.

    They share the slot where Ganeti's balloon is, so that no other is taken: it is the
    first, or the next one where that has a SCSI controller.
    """
    slot = FIRST + given.on_scsi
    if function:
        return f"{slot:#x}.{function:#x}"
    several = given.balloon or given.on_scsi
    return f"{slot:#x}{',multifunction=on' if several else ''}"


def address(slot: int) -> dict[str, str]:
    """Return where on a pc's bus a device is, in QEMU's words."""
    return {"bus": BUS, "addr": f"{slot:#x}"}


def of_a_disk(place: int, given: Parameters) -> dict[str, str | int]:
    """Return where on a pc a disk is, in QEMU's words."""
    if given.on_ide:
        cable, unit = divmod(place, 2)
        return {"bus": f"ide.{cable}", "unit": unit}
    if given.on_scsi:
        return {"bus": f"{SCSI}.0", "channel": 0, "scsi-id": place, "lun": 0}
    return dict(address(place))


def full_of_disks(guest: str, given: Parameters) -> Failed:
    """Return what is said of a pc without a free place for a disk."""
    if given.disk_places is None:
        return full(guest, given)
    return Failed(
        f"{guest} has no free place: with disk_type={given.disk_type} it has "
        f"{len(given.disk_places)} disks",
        hint="detach a disk; or, where its system can, -H disk_type=paravirtual",
    )


def full(guest: str, given: Parameters) -> Failed:
    """Return what is said of a pc without a free slot."""
    return Failed(
        f"{guest} has no free slot: as a pc it has {len(given.slots)} for disks "
        "and network cards",
        hint="detach a disk or remove a card; or, where its system can, "
        "-H machine_version=q35",
    )
