# SPDX-License-Identifier: BSD-2-Clause
"""What a plan copies over the network: disks and memory, MiB.

===========  ==============================================  ====================
command      disks                                           memory
===========  ==============================================  ====================
replace      all disks of the instance, once                 none
migrate      none: they are on the other node, or shared     once, if it runs
===========  ==============================================  ====================

An instance that does not run fails over, and one whose node is offline starts
anew: neither copies memory. The memory is a lower bound, since a live
migration sends again what the instance writes meanwhile.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from moorage.htools.moves import FA, FR, FRF, RF, F, R
from moorage.htools.node import Node
from moorage.htools.plans.balancing import Step

_GIB: Final = 1024
_LEAVES: Final = {F: "p", FA: "p", R: "", RF: "p", FRF: "ps", FR: "p"}
"""Which nodes an instance leaves by migration: old primary, old secondary."""
_COPIES: Final = frozenset({R, RF, FRF, FR})
"""Verbs that make a new second copy of the disks."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Data that goes over the network.

    Attributes
    ----------
    disk, memory : int
        MiB, at least 0.
    """

    disk: int = 0
    memory: int = 0

    @property
    def total(self) -> int:
        """Disks and memory together, MiB."""
        return self.disk + self.memory

    def __add__(self, other: Self) -> Self:
        """Return the cost of both."""
        return type(self)(self.disk + other.disk, self.memory + other.memory)

    def __str__(self) -> str:
        """Return it as people read it, as in ``disk 4.00 GiB, memory 512 MiB``."""
        return f"disk {shown(self.disk)}, memory {shown(self.memory)}"


def cost_of(step: Step, nodes: Sequence[Node]) -> Cost:
    """Return what one step copies.

    Parameters
    ----------
    nodes
        Of any state of the plan, by index: they say who is offline.
    """
    inst, verb = step.before, step.move.verb
    if inst.forthcoming:
        return Cost()
    left = [inst.p if side == "p" else inst.s for side in _LEAVES[verb]]
    live = [at for at in left if inst.is_running and not nodes[at].offline]
    return Cost(inst.dsk if verb in _COPIES else 0, inst.mem * len(live))


def total_cost(steps: Iterable[Step], nodes: Sequence[Node]) -> Cost:
    """Return what several steps copy."""
    return sum((cost_of(step, nodes) for step in steps), Cost())


def shown(mib: int) -> str:
    """Return a size with its unit.

    >>> shown(0), shown(1023), shown(1024), shown(1536)
    ('0 MiB', '1023 MiB', '1.00 GiB', '1.50 GiB')
    """
    return f"{mib} MiB" if mib < _GIB else f"{mib / _GIB:.2f} GiB"
