# SPDX-License-Identifier: BSD-2-Clause
"""Processor load that somebody measured, in place of one for each instance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moorage.htools.constants import ratio
from moorage.htools.inst import Inst
from moorage.htools.node import Node


@dataclass(frozen=True, slots=True)
class Measured:
    """Measured load, in processors; one of the two is empty.

    Attributes
    ----------
    nodes : mapping of str to float
        Load of every node.
    insts : mapping of str to float
        Load of every instance.
    """

    nodes: Mapping[str, float] = field(default_factory=dict)
    insts: Mapping[str, float] = field(default_factory=dict)

    def apply(self, nodes: Sequence[Node], insts: Sequence[Inst]) -> None:
        """Put measured load on nodes and instances, which are settled already.

        What is known of a node only is divided over the virtual processors in use
        there; what is known of instances adds up on their primary nodes.
        """
        if self.insts:
            _by_instance(self.insts, nodes, insts)
        elif self.nodes:
            _by_node(self.nodes, nodes, insts)


def _by_node(
    loads: Mapping[str, float], nodes: Sequence[Node], insts: Sequence[Inst]
) -> None:
    for node in nodes:
        node.load = (float(loads[node.name]), *node.load[1:])
    for inst in insts:
        host = nodes[inst.p]
        each = ratio(host.load[0], host.cpu_used)
        inst.load = (each * inst.vcpus, *inst.load[1:])


def _by_instance(
    loads: Mapping[str, float], nodes: Sequence[Node], insts: Sequence[Inst]
) -> None:
    for inst in insts:
        inst.load = (float(loads[inst.name]), *inst.load[1:])
    for node in nodes:
        load = 0.0
        for at in node.primaries:  # in this order: the last digit depends on it
            load += insts[at].load[0]
        node.load = (load, *node.load[1:])
