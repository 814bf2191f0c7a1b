# SPDX-License-Identifier: BSD-2-Clause
"""What is known of an instance's guest: it runs, it does not, or nobody can tell."""

from msgspec import convert

from moorage.errors import MoorageError, WrongState
from moorage.jobs import View
from moorage.model import GuestState, Instance, Node

from .calls import guest_on
from .silence import way_out


def guest(view: View, instance: Instance) -> GuestState | None:
    """Return the guest on the instance's node; None if it has no process there.

    Raises
    ------
    MoorageError
        If the node did not answer.
    """
    answer = view.answer(guest_on(instance.primary_node, instance))
    return convert(answer, GuestState) if answer else None


def runs(view: View, instance: Instance) -> bool:
    """Whether the guest runs; on a node that somebody marked offline, it does not."""
    if view.config.node(instance.primary_node).offline:
        return False
    found = guest(view, instance)
    return found is not None and found.state in ("running", "paused")


def holds(view: View, instance: Instance) -> bool:
    """Whether the instance's disks are attached on its node."""
    return instance.disks_active or runs(view, instance)


def check_known(view: View, instance: Instance) -> None:
    """Raise `WrongState` if nobody can tell whether the guest runs.

    A node that gives no answer may still run it, and write.
    """
    node = view.config.node(instance.primary_node)
    if node.offline:
        return
    try:
        guest(view, instance)
    except MoorageError as error:
        raise silent(node, instance, error) from error


def silent(node: Node, instance: Instance, error: MoorageError) -> WrongState:
    """Return the refusal for a node that gives no answer and is not marked offline."""
    cause = error.facts.get("cause", error.message)
    return WrongState(
        f"node {node.name} gives no answer ({cause}), and nobody has said that "
        f"it is off: instance {instance.name} may still run there and write to its "
        "disks",
        hint=way_out(node, error),
        node=node.name,
        instance=instance.name,
    )
