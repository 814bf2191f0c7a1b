# SPDX-License-Identifier: BSD-2-Clause
"""The two copies of a disk that the cluster itself mirrors: who keeps them, and how.

Its ``logical_id`` is Ganeti's: both nodes, a port, a minor number on each, a secret.
The first node is the one whose data counted when the pair was made.
"""

from dataclasses import dataclass
from typing import Any

from moorage.disk_templates import FACTS, Mirror

from .objects import Disk

PORTS = range(11000, 15000)
"""Where mirrors listen, as in Ganeti; no two disks of a cluster share one."""
HIDDEN = "hidden"
"""What is shown in the place of a secret."""

_VOLUME: tuple[type, ...] = (str, str)
_PAIR: tuple[type, ...] = (str, str, int, int, int, str)

Reserved = tuple[str, int]
"""A node's uuid and a minor number there; or an empty word and a port."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two nodes that keep a copy each.

    Attributes
    ----------
    nodes
        Uuids.
    port
        Where both listen for each other.
    minors
        The number of the device on each, in the order of `nodes`.
    secret
        What each shows the other.
    """

    nodes: tuple[str, str]
    port: int
    minors: tuple[int, int]
    secret: str

    @property
    def logical_id(self) -> tuple[Any, ...]:
        """How a disk keeps it."""
        return (*self.nodes, self.port, *self.minors, self.secret)

    def minor(self, node: str) -> int:
        """Return the number of the device on a node."""
        return self.minors[self.nodes.index(node)]

    def other(self, node: str) -> str:
        """Return the uuid of the other node."""
        return self.nodes[1 - self.nodes.index(node)]

    def reserved(self) -> tuple[Reserved, ...]:
        """Return what no other disk may have."""
        return (*zip(self.nodes, self.minors, strict=True), ("", self.port))


def _is_paired(disk: Disk) -> bool:
    facts = FACTS.get(disk.dev_type)
    return facts is not None and facts.mirror is Mirror.INTERNAL


def id_parts(disk: Disk) -> tuple[type, ...]:
    """Return what the ``logical_id`` of such a disk consists of."""
    return _PAIR if _is_paired(disk) else _VOLUME


def pair_of(disk: Disk) -> Pair | None:
    """Return the pair that keeps a disk; None where the cluster mirrors nothing."""
    if not _is_paired(disk):
        return None
    one, other, port, minor, other_minor, secret = disk.logical_id
    return Pair((one, other), int(port), (int(minor), int(other_minor)), str(secret))


def shown_id(disk: Disk) -> list[Any]:
    """Return a disk's ``logical_id`` as anybody may see it: a mirror's secret is none.

    Who knows it and reaches the node's port could take the place of the other copy.
    """
    pair = pair_of(disk)
    told = disk.logical_id if pair is None else (*pair.logical_id[:-1], HIDDEN)
    return list(told)
