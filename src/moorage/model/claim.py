# SPDX-License-Identifier: BSD-2-Clause
"""What jobs have chosen and not recorded yet."""

from msgspec import Struct

from moorage.units import Mib


class Claim(Struct, frozen=True, kw_only=True):
    """Room that a job has chosen: nobody else may, until the job is over.

    Attributes
    ----------
    node
        Uuid of the node that the room is on.
    instance
        Name of the instance that comes to the node; empty for disks alone.
    memory, vcpus
        What an instance gets that is new, starts, or runs with other ones than
        recorded; 0 for one that moves with those in its record.
    rooms
        Storage unit (type and key) and size of what is made or grows.
    spindles
        Physical volumes that disks get for themselves, of those in `rooms`.
    units
        The storage units of a new instance's disks, adopted ones too: they say where
        it can restart.
    templates
        Of a new instance: how its disks are stored.
    tags, spindle_use
        Of a new instance.
    peer
        Of a new instance with mirrored disks: uuid of its secondary node.
    minors, ports
        Of mirrored disks that are made: the numbers of their devices on the node, and
        where they will listen.
    addresses
        Of network cards that come: the uuid of their network, or nothing for hardware
        addresses, and the address.
    """

    node: str
    instance: str = ""
    memory: Mib = Mib(0)
    vcpus: int = 0
    rooms: tuple[tuple[tuple[str, str], int], ...] = ()
    spindles: int = 0
    units: tuple[tuple[str, str], ...] = ()
    templates: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    spindle_use: int = 1
    peer: str = ""
    minors: tuple[int, ...] = ()
    ports: tuple[int, ...] = ()
    addresses: tuple[tuple[str, str], ...] = ()
