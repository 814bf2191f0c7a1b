# SPDX-License-Identifier: BSD-2-Clause
"""The memory that an instance takes on its own node, when it starts or gets more.

What an instance that should run has on record is its own already, were it down for a
moment: only what comes on top is asked of the node. A guest that starts needs memory
that is free in the world, too.
"""

from collections.abc import Iterator

from moorage.errors import NoCapacity
from moorage.jobs import Question, View
from moorage.model import Claim, Instance, Node
from moorage.ops import placement
from moorage.ops.fleet import Newcomer
from moorage.ops.node_tasks import beparams
from moorage.units import Mib


def ask(view: View, instance: Instance) -> Iterator[Question]:
    """Ask the node for its memory."""
    node = _home(view, instance)
    if not node.offline:
        yield placement.room_on(view.config, node)


def check_start(view: View, instance: Instance) -> None:
    """Raise `NoCapacity` unless an instance, as it is to run, can start on its node."""
    node, memory = _home(view, instance), _memory(view, instance)
    view.answer(placement.room_on(view.config, node))
    check_size(view, instance)
    free = placement.room(view)[node.uuid].memory_free
    if memory > free:
        raise NoCapacity(
            f"node {node.name} cannot start instance {instance.name}: memory (asked "
            f"{memory} MiB, free {free} MiB)",
            hint=placement.ANYWAY,
            node=node.name,
        )


def check_size(view: View, instance: Instance) -> None:
    """Raise `NoCapacity` unless its node has what it takes beyond its own."""
    more = _memory(view, instance) - _own(view, instance)
    if more > 0:
        cpus = int(beparams(view.config, instance)["vcpus"])
        wanted = Newcomer(instance.name, more, cpus)
        placement.check_arrival(view, wanted, _home(view, instance))


def claim(view: View, instance: Instance) -> Claim:
    """Return what an instance, as it is to run, takes on its node."""
    return Claim(
        node=instance.primary_node,
        instance=instance.name,
        memory=Mib(_memory(view, instance)),
        vcpus=int(beparams(view.config, instance)["vcpus"]),
    )


def _home(view: View, instance: Instance) -> Node:
    return view.config.node(instance.primary_node)


def _memory(view: View, instance: Instance) -> int:
    return int(beparams(view.config, instance)["maxmem"])


def _own(view: View, instance: Instance) -> int:
    """Return the memory that is its own on record."""
    known = view.config.instance(instance.uuid)
    return _memory(view, known) if known.admin_state == "up" else 0
