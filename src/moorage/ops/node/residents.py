# SPDX-License-Identifier: BSD-2-Clause
"""Who lives on a node: the instances that should, and the guests that do."""

from moorage.errors import MoorageError, WrongState, cause_of
from moorage.jobs import Ask, View
from moorage.model import Config, GuestState, Instance, Node
from moorage.ops.asking.silence import way_out
from moorage.protocol import ListGuests


def guests_on(node: Node) -> Ask[list[GuestState]]:
    """Ask a node for all its guests."""
    return Ask(node.uuid, ListGuests())


def running(view: View, node: Node) -> set[str]:
    """Return the uuids of the instances that run on a node.

    On a node that somebody marked offline, none does.

    Raises
    ------
    WrongState
        If the node gives no answer: nobody can tell.
    """
    if node.offline:
        return set()
    try:
        found = view.answer(guests_on(node)) or []
    except MoorageError as error:
        raise unknown(node, error) from error
    return {guest.uuid for guest in found if guest.runs}


def unknown(node: Node, error: MoorageError) -> WrongState:
    """Return the refusal for a node that gives no answer and is not marked offline."""
    return WrongState(
        f"node {node.name} gives no answer ({cause_of(error)}), and nobody has said "
        "that it is off: its instances may still run there",
        hint=way_out(node, error),
        node=node.name,
    )


def strangers(config: Config, node: Node, found: list[GuestState]) -> list[GuestState]:
    """Return the guests that are alive on a node and belong somewhere else."""
    alive = [guest for guest in found if guest.lives]
    return [guest for guest in alive if not _belongs(config, node, guest)]


def _belongs(config: Config, node: Node, guest: GuestState) -> bool:
    instance = config.objects.get(guest.uuid)
    return isinstance(instance, Instance) and instance.primary_node == node.uuid


def named(found: list[GuestState]) -> str:
    """Return the names of guests, for a sentence."""
    return ", ".join(sorted(guest.name or guest.uuid for guest in found))
