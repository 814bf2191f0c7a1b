# SPDX-License-Identifier: BSD-2-Clause
"""Where a master can die in a request, and which deaths leave the same behind.

All that outlives a master is its store and the nodes. Two deaths between which neither
got any further are one: the next master finds the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moorage.model.commits import Head, Key, Write
from moorage.store import Stored
from moorage.testing.cluster import Crash, SimCluster

Remains = tuple[int, int, int, int]
"""What tells apart what deaths leave, in one course of a request."""


@dataclass(frozen=True, slots=True)
class Death:
    """A place where a master dies.

    Attributes
    ----------
    number
        Of the point that it passes, or of its write to the store.
    durable
        Whether that write is done; None at a point.
    """

    number: int
    durable: bool | None = None

    def await_in(self, cluster: SimCluster) -> None:
        """Let the master of a cluster die there."""
        if self.durable is None:
            cluster.crash_at = self.number
        else:
            Watch(cluster, self)


class Watch:
    """Watches a master from now on: it notes what each death would leave.

    It stands before the cluster's store until the next master opens that itself.

    Parameters
    ----------
    dies
        The write where the master dies.

    Attributes
    ----------
    deaths
        The first one for all that can be left.
    """

    def __init__(self, cluster: SimCluster, dies: Death | None = None) -> None:
        self._cluster = cluster
        self._dies = dies
        self._written = 0
        self.deaths: dict[Remains, Death] = {}
        cluster.config_store._store = self
        cluster.extra_point = self._point

    async def _point(self, _name: str) -> None:
        self._note(Death(len(self._cluster.points)))

    async def commit(self, writes: Sequence[Write], *, expected: int) -> int:
        """Pass a write on, unless the master dies first."""
        self._write(durable=False)
        version = await self._cluster.store.commit(writes, expected=expected)
        self._write(durable=True)
        self._written += 1
        return version

    def _write(self, *, durable: bool) -> None:
        here = Death(self._written, durable)
        self._note(here)
        if here == self._dies:
            self._cluster.die()
            raise Crash

    def _note(self, here: Death) -> None:
        self.deaths.setdefault(_remains(self._cluster), here)

    async def lead(self) -> int:
        """Become the only writer."""
        return await self._cluster.store.lead()

    @property
    def head(self) -> Head:
        """What the last commit made."""
        return self._cluster.store.head

    async def whole(self) -> tuple[Head, Mapping[Key, bytes]]:
        """Return all records, and their head."""
        return await self._cluster.store.whole()

    async def load(self) -> Stored:
        """Return all records."""
        return await self._cluster.store.load()

    async def read(self, kind: str, prefix: str) -> Mapping[str, bytes]:
        """Return some records."""
        return await self._cluster.store.read(kind, prefix)

    async def close(self) -> None:
        """Keep everything."""


def different_points(cluster: SimCluster) -> dict[Remains, int]:
    """Note from now on at which points a death leaves what none before it does.

    Returns
    -------
    dict
        The number of the first point by what is left; it grows while the cluster runs.
    """
    found: dict[Remains, int] = {}

    async def note(_name: str) -> None:
        found.setdefault(_remains(cluster), len(cluster.points))

    cluster.extra_point = note
    return found


def _remains(cluster: SimCluster) -> Remains:
    nodes = cluster.nodes
    ran = sum(len(node.machine.ran) for node in nodes.nodes.values())
    return cluster.store.version, len(nodes.calls), len(nodes.under_way), ran
