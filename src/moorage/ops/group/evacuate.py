# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-group evacuate``: every instance of a node group goes to others."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, View
from moorage.jobs.results import Following
from moorage.jobs.unread import Moot
from moorage.model import Instance, NodeGroup
from moorage.ops.planning import allocators

from .base import OnGroup


class GroupEvacuate(OnGroup, frozen=True, kw_only=True):
    """Let every instance of a node group go to another one, in a job of its own.

    Attributes
    ----------
    iallocator
        Who chooses: ``hail`` is the planner, another name an allocator's on the
        master's node.
    target_groups
        Where they may go; all other groups when empty.
    sequential
        Whether one job takes them all, one after the other: it ends at the first that
        cannot go.
    """

    op_id = "OP_GROUP_EVACUATE"

    target_groups: tuple[str, ...] = ()
    iallocator: allocators.Allocator = None
    early_release: Annotated[bool, Moot("locks are released as early as can be")] = (
        False
    )
    sequential: bool = False

    def leaving(self, view: View) -> list[Instance]:
        """Return its instances, node by node."""
        config = view.config
        nodes = config.nodes_in(self.group(view))
        return [one for node in nodes for one in config.instances_on(node)]

    def locks(self, view: View) -> Iterator[Lock]:
        """Share the group: the jobs take what they need."""
        yield Lock("group", self.group(view).uuid, shared=True)

    def check(self, view: View) -> None:
        """Refuse without another group."""
        group = self.group(view)
        allocators.check(self.iallocator)
        targets = [view.config.group(name) for name in self.target_groups]
        if group in targets:
            raise BadInput(
                f"the instances of node group {group.name} cannot go to itself",
                hint="name another group: --to GROUP",
            )
        if view.config.count(NodeGroup) == 1:
            raise WrongState("there is no other node group", hint="gnt-group list")

    def jobs(self, view: View) -> list[list[dict[str, Any]]]:
        """Return a job for each instance, or one for all."""
        asked: dict[str, Any] = {"target_groups": list(self.target_groups)}
        asked |= {"iallocator": self.iallocator} if self.iallocator else {}
        moves = [
            {"OP_ID": "OP_INSTANCE_CHANGE_GROUP", "instance_name": one.name, **asked}
            for one in self.leaving(view)
        ]
        return [moves] if self.sequential and moves else [[one] for one in moves]

    def result(self, view: View, _results: Sequence[Any]) -> Following:
        """Return whom the jobs are for, in their order."""
        names = tuple(one.name for one in self.leaving(view))
        if self.sequential and names:
            names = (", ".join(names),)
        return Following(names=names)
