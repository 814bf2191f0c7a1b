# SPDX-License-Identifier: BSD-2-Clause
"""The memory that an instance takes on its own node, when it starts or gets more.

What an instance that should run has on record is its own already, were it down for a
moment: only what comes on top is asked of the node. A guest that starts needs memory
that is free in the world, too.
"""

from collections.abc import Iterator
from dataclasses import replace

from moorage.errors import NoCapacity
from moorage.jobs import Question, View
from moorage.model import Claim, GuestState, Instance
from moorage.ops.asking import node_tasks
from moorage.ops.planning import placement
from moorage.ops.planning.fleet import on_record
from moorage.units import Mib

_NOTHING = Mib(0)


def ask(view: View, instance: Instance) -> Iterator[Question]:
    """Ask the node for its memory."""
    node = view.config.home(instance)
    if not node.offline:
        yield placement.room_on(view.config, node)


def check_start(view: View, instance: Instance, *, given_back: Mib = _NOTHING) -> None:
    """Raise `NoCapacity` unless an instance, as it is to run, can start on its node.

    Its guest gives back before what it has now, if it runs. Huge pages are no memory
    that is free: the node itself looks for those.
    """
    node, memory = view.config.home(instance), _memory(view, instance)
    view.answer(placement.room_on(view.config, node))
    check_size(view, instance)
    free = placement.room(view)[node.uuid].memory_free + given_back
    huge = node_tasks.hvparams(view.config, instance).get("mem_path")
    if memory > free and not huge:
        raise NoCapacity(
            f"node {node.name} cannot start instance {instance.name}: memory (asked "
            f"{memory} MiB, free {free} MiB)",
            hint=placement.ANYWAY,
            node=node.name,
        )


def given_back(view: View, instance: Instance, found: GuestState | None) -> Mib:
    """Return what an instance's guest has of its node's memory; nothing if it is down.

    Of one that runs as Ganeti started it, nobody but its record says that.
    """
    if found is None or not found.runs:
        return Mib(0)
    return found.holds or Mib(_memory(view, instance) if found.origin else 0)


def check_size(view: View, instance: Instance) -> None:
    """Raise `NoCapacity` unless its node has what it takes beyond its own."""
    known = view.config.instance(instance.uuid)
    own = _memory(view, known) if known.admin_state == "up" else 0
    more = _memory(view, instance) - own
    if more > 0:
        wanted = replace(on_record(view.config, instance), memory=more)
        placement.check_arrival(view, wanted, view.config.home(instance))


def claim(view: View, instance: Instance) -> Claim:
    """Return what an instance, as it is to run, takes on its node."""
    wanted = on_record(view.config, instance)
    return Claim(
        node=instance.primary_node,
        instance=instance.name,
        memory=Mib(wanted.memory),
        vcpus=wanted.vcpus,
    )


def _memory(view: View, instance: Instance) -> int:
    return on_record(view.config, instance).memory
