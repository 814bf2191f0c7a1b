# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-node try-accelerator``: look again what executes guests on some nodes."""

from collections.abc import Iterator, Sequence
from typing import Any

from moorage.errors import MoorageError
from moorage.jobs import Ask, Operation, Question, View
from moorage.model import Accelerator, Node
from moorage.model.caller import Role
from moorage.protocol import TryAccelerator


class NodeTryAccelerator(Operation, frozen=True, kw_only=True):
    """Look again whether KVM works on nodes; guests that run are left alone.

    It holds no locks: only what a node remembers of itself changes.

    Attributes
    ----------
    node_names
        The nodes; all that are not marked offline if none are named.
    """

    op_id = "OP_NODE_TRY_ACCELERATOR"
    role = Role.OPERATE

    node_names: tuple[str, ...] = ()

    def summary(self) -> str:
        """Return the opcode and its nodes."""
        return f"NODE_TRY_ACCELERATOR({','.join(self.node_names) or 'all'})"

    def nodes(self, view: View) -> list[Node]:
        """Return the nodes that are asked."""
        named = [view.config.node(name) for name in self.node_names]
        return named or view.config.online()

    def questions(self, view: View) -> Iterator[Question]:
        """Ask the nodes to look."""
        return (_look_at(node) for node in self.nodes(view))

    def check(self, view: View) -> None:
        """Refuse when a node that was named did not answer."""
        if self.node_names:
            for question in self.questions(view):
                view.answer(question)

    def result(self, view: View, _results: Sequence[Any]) -> list[list[str]]:
        """Return name, accelerator and reason of each node."""
        return [[node.name, *_told(view, node)] for node in self.nodes(view)]


def _look_at(node: Node) -> Ask[Accelerator | None]:
    return Ask(node.uuid, TryAccelerator())


def _told(view: View, node: Node) -> tuple[str, str]:
    try:
        found = view.answer(_look_at(node))
    except MoorageError as error:
        return "?", error.message
    if not found:
        return "-", "guests need none: nothing executes them"
    return found.name, found.reason
