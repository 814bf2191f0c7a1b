# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-group cpu-models``: which models of processors guests of a group can have."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from moorage.errors import MoorageError
from moorage.jobs import Ask, Operation, Question, View
from moorage.model import Node
from moorage.model.caller import Role
from moorage.model.processors import ProcessorModels, common
from moorage.protocol import ListProcessors


class Models(Struct, frozen=True, kw_only=True):
    """Which models the nodes of a group have.

    Attributes
    ----------
    accelerators
        What each node executes guests with.
    models
        By model why nodes lack it, by their names: none of them where all have it.
    silent
        By node why it said nothing.
    """

    accelerators: dict[str, str]
    models: dict[str, dict[str, str]]
    silent: dict[str, str]


class GroupCpuModels(Operation, frozen=True, kw_only=True):
    """Ask the nodes of a group which models of processors their guests can have.

    It holds no locks: nothing changes.

    Attributes
    ----------
    group_name
        Name or uuid of the group.
    """

    op_id = "OP_GROUP_CPU_MODELS"
    role = Role.READ

    group_name: str

    def nodes(self, view: View) -> list[Node]:
        """Return the nodes that are asked."""
        group = view.config.group(self.group_name)
        return [one for one in view.config.nodes_in(group) if not one.offline]

    def questions(self, view: View) -> Iterator[Question]:
        """Ask the nodes."""
        return (_models_on(node) for node in self.nodes(view))

    def check(self, view: View) -> None:
        """Refuse only a group that there is not."""
        self.nodes(view)

    def result(self, view: View, _results: Sequence[Any]) -> Models:
        """Return what each node executes guests with, and which nodes lack a model."""
        told: dict[str, ProcessorModels] = {}
        silent: dict[str, str] = {}
        for node in self.nodes(view):
            try:
                found = view.answer(_models_on(node))
            except MoorageError as error:
                silent[node.name] = error.message
                continue
            if found:
                told[node.name] = found
            else:
                silent[node.name] = "its guests have no processors"
        by = {name: one.accelerator for name, one in told.items()}
        return Models(accelerators=by, models=common(told), silent=silent)


def _models_on(node: Node) -> Ask[ProcessorModels | None]:
    return Ask(node.uuid, ListProcessors())
