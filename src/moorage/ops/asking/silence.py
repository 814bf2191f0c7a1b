# SPDX-License-Identifier: BSD-2-Clause
"""What to do about a node that gave no proper answer: not always the same."""

from collections.abc import Iterable

from moorage.errors import MoorageError, WrongState, may_be_off
from moorage.jobs import Question, View
from moorage.model import Config, Instance, Node
from moorage.storage import TEMPLATES


def way_out(node: Node, error: MoorageError) -> str:
    """Return what to type when `error` came instead of a node's answer.

    To mark a node offline is right for one thing alone, a node without power. On one
    that lives and cannot answer for another reason, it is the way to two writers.
    """
    if may_be_off(error):
        off = f"gnt-node modify --offline=yes {node.name}"
        return f"make sure that the node is powered off, then: {off}"
    return error.hint or "gnt-cluster verify"


def check_online(node: Node) -> None:
    """Raise `WrongState` if a node is marked offline: nothing can be done there."""
    if node.offline:
        raise WrongState(
            f"node {node.name} is marked offline",
            hint=f"when it is back: gnt-node modify --offline=no {node.name}",
            node=node.name,
        )


def check_each_online(config: Config, names: Iterable[str]) -> None:
    """Raise an error unless each name is a node's that is not marked offline."""
    for name in names:
        check_online(config.node(name))


def unanswered(view: View, questions: Iterable[Question]) -> dict[str, str]:
    """Return why nodes did not answer questions, by their names."""
    asked = [
        (view.config.node(one.node).name, view.answers.get(one)) for one in questions
    ]
    return {
        name: said.message for name, said in asked if isinstance(said, MoorageError)
    }


def rescue(config: Config, instance: Instance) -> str:
    """Return what to type for an instance whose node is marked offline."""
    if all(
        TEMPLATES[disk.dev_type].capabilities.facts.movable
        for disk in config.disks_of(instance)
    ):
        return f"gnt-instance failover {instance.name}"
    home = config.home(instance).name
    lost = f"gnt-instance remove --ignore-failures {instance.name}"
    return f"bring node {home} back; if it is gone for good: {lost}"
