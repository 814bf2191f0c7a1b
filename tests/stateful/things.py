# SPDX-License-Identifier: BSD-2-Clause
"""What is on the page: disks, network cards and instances."""

from dataclasses import dataclass, field

MEMORY = 128
"""MiB of an instance that nobody gave others."""


@dataclass
class Disk:
    """A disk.

    Attributes
    ----------
    size
        MiB.
    roomy
        Whether its volume may be larger: a growth failed, and nobody can tell when.
    pool
        Name of the storage pool, if it is in one.
    moves
        How often it came to an instance or went with one; its epoch is no less.
    writes
        What was written to it since the last quiet moment, and what was there then.
        The last entry is what must be read.
    copied
        Whether it was made of another one since then, at any of the writes.
    """

    name: str | None
    size: int
    template: str
    pool: str | None = None
    roomy: bool = False
    moves: int = 0
    tags: set[str] = field(default_factory=set)
    writes: list[str] = field(default_factory=list)
    copied: bool = False


@dataclass
class Card:
    """A network card.

    Attributes
    ----------
    network
        Name of the network that it is in, if it is in one.
    ip
        Its address; ``pool`` stands for any of its network.
    """

    network: str | None = None
    ip: str | None = None


@dataclass
class Instance:
    """An instance.

    Attributes
    ----------
    up
        Whether it should run.
    disks
        Their uuids, by slot.
    asleep
        Whether it should run and does not: its node lost power, or it powered off.
    cards
        Its network cards, by number; None where nobody can tell.
    memory
        MiB.
    """

    node: str
    up: bool
    disks: list[str] = field(default_factory=list)
    asleep: bool = False
    cards: list[Card] | None = field(default_factory=list)
    memory: int = MEMORY
    tags: set[str] = field(default_factory=set)
