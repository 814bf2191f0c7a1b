# SPDX-License-Identifier: BSD-2-Clause
"""What the survival certificate says of each loss, as names and sentences."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from moorage.htools.constraints.violation import located, nearest
from moorage.htools.state import State
from moorage.htools.survival.certificate import (
    ANEW,
    FAILOVER,
    RESTART,
    Certificate,
    how,
    second_copies,
    without_data,
)
from moorage.htools.survival.explain_loss import Loss
from moorage.htools.survival.n1 import Restart
from moorage.htools.survival.pool import Pool, disks_in, stranded_without, unsaid
from moorage.units import counted, shortened

_HOW: Final = {
    FAILOVER: "fails over to its second copy",
    RESTART: "restarts with its disks",
    ANEW: "is made anew",
}
_NEAREST: Final = 4
"""Nodes that could nearly take somebody who stays down; the others are counted."""
_NAMED: Final = 8
"""Names that one sentence tells."""


class Kind(StrEnum):
    """What can be lost."""

    NODE = "node"
    UNIT = "unit"
    POOL = "pool"


class Fate(NamedTuple):
    """What becomes of one instance.

    Attributes
    ----------
    node : str
        Where it runs then; empty when it stays down.
    way : str
        How it comes back, as ``restarts with its disks``.
    left : int
        MiB of memory that are left on the node then.
    reasons : tuple of str
        Why it stays down: what a node lacks, of those that lack the least.
    others : int
        Nodes that lack more.
    """

    instance: str
    node: str = ""
    way: str = ""
    left: int = 0
    reasons: tuple[str, ...] = ()
    others: int = 0


@dataclass(frozen=True, slots=True)
class Lost:
    """The loss of a node, of a storage unit on one node, or of a pool.

    Attributes
    ----------
    name : str
        Of a node; of a unit ``lvm-vg/xenvg on node1``; of a pool ``ext/san``.
    key : str
        What an address calls it: ``node/node1``, ``unit/node1/lvm-vg/xenvg``,
        ``pool/ext/san``.
    group : str
        The node group; empty for a pool, which several may share.
    away : bool
        Whether it is a node that is offline or drained already.
    fates : tuple of Fate
        Of everybody who runs on it or has disks there, in the order of restarts.
    data_lost : tuple of str
        Whose data was nowhere else.
    notes : tuple of str
        What else is to be known, in sentences.
    """

    kind: Kind
    name: str
    key: str
    group: str = ""
    away: bool = False
    fates: tuple[Fate, ...] = ()
    data_lost: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def down(self) -> tuple[Fate, ...]:
        """Those who stay down."""
        return tuple(one for one in self.fates if not one.node)

    @property
    def verdict(self) -> str:
        """What happens, in a few words."""
        many, down, lost = len(self.fates), len(self.down), len(self.data_lost)
        if not many:
            return "nobody is on it" if self.kind is Kind.NODE else "nobody stops"
        if down:
            return f"{down} of {many} stay down" if many > down else f"all {many} down"
        if lost:
            return f"{lost} of {many} lose data"
        return f"all {many} restart" if many > 1 else "1 restarts"


def losses(found: Certificate) -> list[Lost]:
    """Return every single loss: nodes, units of one node, pools that nodes share."""
    return [
        *(_node(found.state, loss) for loss in found.nodes),
        *(_unit(found.state, loss) for loss in found.units),
        *(_pool(found.state, pool) for pool in found.pools),
    ]


def _node(state: State, loss: Loss) -> Lost:
    node = state.nodes[loss.node]
    return Lost(
        Kind.NODE,
        node.alias,
        f"node/{node.name}",
        state.groups[node.group].name,
        away=node.offline,
        fates=tuple(_fate(state, one) for one in loss.outcomes),
        data_lost=_names(state, without_data(state, loss)),
        notes=tuple(_notes(state, loss)),
    )


def _unit(state: State, loss: Loss) -> Lost:
    node, unit = state.nodes[loss.node], "/".join(loss.unit or ())
    copies = _names(state, second_copies(state, loss))
    told = f"Without a second copy then: {shortened(copies, _NAMED)}."
    return Lost(
        Kind.UNIT,
        f"{unit} on {node.alias}",
        f"unit/{node.name}/{unit}",
        state.groups[node.group].name,
        fates=tuple(_fate(state, one) for one in loss.outcomes),
        data_lost=_names(state, without_data(state, loss)),
        notes=(*_notes(state, loss), *([told] if copies else [])),
    )


def _pool(state: State, pool: Pool) -> Lost:
    name = "/".join(pool.name)
    doubtful = _names(state, unsaid(state, pool.name))
    told = f"Do not say which pool they use: {shortened(doubtful, _NAMED)}."
    return Lost(
        Kind.POOL,
        name,
        f"pool/{name}",
        fates=tuple(
            _held(state, at, pool) for at in stranded_without(state, pool.name)
        ),
        notes=(told,) if doubtful else (),
    )


def _held(state: State, at: int, pool: Pool) -> Fate:
    inst = state.insts[at]
    here = len(disks_in(state, inst, pool.name))
    part = "all of its" if here == len(inst.wants) else f"{here} of its"
    verb = "is" if part == "1 of its" else "are"
    return Fate(inst.alias, reasons=(f"{part} disks {verb} in the pool",))


def _fate(state: State, one: Restart) -> Fate:
    inst = state.insts[one.inst]
    if one.node >= 0:
        return Fate(inst.alias, state.nodes[one.node].alias, _HOW[how(inst)], one.left)
    found = list(nearest(one.reasons))
    reasons = tuple(located(state, each) for each in found[:_NEAREST])
    others = max(0, len(found) - _NEAREST)
    return Fate(inst.alias, reasons=reasons or ("no node is left",), others=others)


def _names(state: State, places: list[int]) -> tuple[str, ...]:
    return tuple(state.insts[at].alias for at in places)


def _notes(state: State, loss: Loss) -> Iterator[str]:
    """Tell whether it is the order of restarts alone that strands somebody."""
    if not loss.stranded:
        return
    if loss.way is not None:
        moves = ", ".join(
            f"{state.insts[inst].alias} to {state.nodes[node].alias}"
            for inst, node in loss.way
        )
        count = counted(len(loss.way), "instance")
        yield f"Restarted one by one; by hand there is a way for all {count}: {moves}."
    elif not loss.searched:
        yield "Restarted one by one; not every other way was tried."
