# SPDX-License-Identifier: BSD-2-Clause
"""The survival certificate: what becomes of everybody after each single loss.

Losses are those of a node, of a storage unit on one node, and of a pool that
nodes share. The certificate can be checked without trusting who wrote it: it
says for each instance where it restarts, in which order, and what is left there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from moorage.htools.constants import Mirror
from moorage.htools.constraints.violation import Violation
from moorage.htools.inst import Inst
from moorage.htools.state import State
from moorage.htools.survival.explain_loss import Homes, Loss, lose, lose_unit
from moorage.htools.survival.kernel_losses import is_shared
from moorage.htools.survival.n1 import Restart
from moorage.htools.survival.pool import Pool, disks_in, pools, stranded_without, unsaid

FAILOVER, RESTART, ANEW = "failover", "restart", "anew"
"""How an instance comes back: on its second copy, on the same disks, without data."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What becomes of everybody after each single loss.

    Attributes
    ----------
    nodes : tuple of Loss
        Of each node, by group.
    units : tuple of Loss
        Of each storage unit that belongs to one node and holds somebody's disks.
    pools : tuple of Pool
        Storage that nodes share: with it go all the disks in it.
    """

    state: State
    nodes: tuple[Loss, ...]
    units: tuple[Loss, ...]
    pools: tuple[Pool, ...]

    def __bool__(self) -> bool:
        """Whether any one node can be lost."""
        return not any(loss.stranded for loss in self.nodes)

    def values(self) -> dict[str, Any]:
        """Return the certificate as JSON values."""
        return {
            "survives": bool(self),
            "nodes": [self._node(loss) for loss in self.nodes],
            "units": [self._unit(loss) for loss in self.units],
            "pools": [self._pool(pool) for pool in self.pools],
        }

    def _node(self, loss: Loss) -> dict[str, Any]:
        node = self.state.nodes[loss.node]
        return {
            "lost": node.name,
            "group": self.state.groups[node.group].name,
            "online": not node.offline,
            **self._outcome(loss),
        }

    def _unit(self, loss: Loss) -> dict[str, Any]:
        copies = [self.state.insts[at].name for at in second_copies(self.state, loss)]
        return {
            "lost": "/".join(loss.unit or ()),
            "node": self.state.nodes[loss.node].name,
            **self._outcome(loss),
            "second_copies": copies,
        }

    def _outcome(self, loss: Loss) -> dict[str, Any]:
        return {
            "survives": not loss.stranded,
            "data_lost": [
                self.state.insts[at].name for at in without_data(self.state, loss)
            ],
            "restarts": [self._restart(one) for one in loss.outcomes],
            "way": self._way(loss),
            "searched": loss.searched,
        }

    def _way(self, loss: Loss) -> list[dict[str, str]] | None:
        if loss.way is None:
            return None
        names = self.state.insts, self.state.nodes
        return [
            {"instance": names[0][inst].name, "node": names[1][node].name}
            for inst, node in loss.way
        ]

    def _restart(self, one: Restart) -> dict[str, Any]:
        inst = self.state.insts[one.inst]
        told: dict[str, Any] = {"instance": inst.name, "node": None}
        if one.node >= 0:
            told |= {"node": self.state.nodes[one.node].name, "how": how(inst)}
            return told | {"memory_left": one.left}
        return told | {"reasons": [self._why(found) for found in one.reasons]}

    def _why(self, found: Violation) -> dict[str, Any]:
        name = self.state.nodes[found.node].name if found.node >= 0 else None
        told = {"node": name, "constraint": found.constraint, **found.facts}
        return told | {"text": found.sentence()}

    def _pool(self, pool: Pool) -> dict[str, Any]:
        people = [
            self.state.insts[at] for at in stranded_without(self.state, pool.name)
        ]
        return {
            "pool": "/".join(pool.name),
            "nodes": [self.state.nodes[at].name for at in pool.nodes],
            "survives": not people,
            "stranded": [inst.name for inst in people],
            "perhaps": [
                self.state.insts[at].name for at in unsaid(self.state, pool.name)
            ],
            "disks": {
                inst.name: disks_in(self.state, inst, pool.name) for inst in people
            },
        }


def how(inst: Inst) -> str:
    """Return how an instance comes back."""
    if inst.mirror is Mirror.INTERNAL:
        return FAILOVER
    return RESTART if is_shared(inst) else ANEW


def second_copies(state: State, loss: Loss) -> list[int]:
    """Return who loses the second copy of their disks with a storage unit."""
    return [
        at
        for at in sorted(state.nodes[loss.node].secondaries)
        if loss.unit and disks_in(state, state.insts[at], loss.unit)
    ]


def without_data(state: State, loss: Loss) -> list[int]:
    """Return whose data is lost, wherever they restart: it was nowhere else."""
    insts = (state.insts[one.inst] for one in loss.outcomes)
    return sorted(inst.idx for inst in insts if inst.mirror is Mirror.NONE)


def certify(state: State) -> Certificate:
    """Return the certificate of a cluster."""
    nodes: list[Loss] = []
    units: list[Loss] = []
    for _, view in state.split():
        homes = Homes(view)
        for at in view.view:
            nodes.append(lose(view, at, homes))
            units += _units(view, at)
    shared = tuple(pool for pool in pools(state.fleet) if pool.shared)
    return Certificate(state, tuple(nodes), tuple(units), shared)


def _units(state: State, at: int) -> Iterator[Loss]:
    """Yield the loss of each unit of a node that holds somebody's disks."""
    units = state.nodes[at].units
    if units is None:
        return
    for name, shared in zip(units.names, units.shared, strict=True):
        if shared:
            continue
        loss = lose_unit(state, at, name)
        if loss.outcomes or second_copies(state, loss):
            yield loss
