# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance change-group``: an instance goes to a node of another node group."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from moorage.errors import BadInput, NotSupported, WrongState
from moorage.jobs import Question, View
from moorage.jobs.results import Sent
from moorage.jobs.unread import Moot
from moorage.model import Node, NodeGroup
from moorage.ops.guests.liveness import runs
from moorage.ops.instance.relocation import ToAnotherNode, check_mobile
from moorage.ops.planning import advice, message, placement, policy
from moorage.ops.planning.fleet import on_record
from moorage.ops.volumes import copies


class InstanceChangeGroup(ToAnotherNode, frozen=True, kw_only=True):
    """Find a node in another node group, and send the instance there.

    The move is a job of its own: a migration of a guest that runs, a failover of one
    that does not.

    Attributes
    ----------
    target_groups
        The groups that it may go to; all others when empty.
    """

    op_id = "OP_INSTANCE_CHANGE_GROUP"

    target_groups: tuple[str, ...] = ()
    early_release: Annotated[bool, Moot("locks are released as early as can be")] = (
        False
    )

    def groups(self, view: View) -> list[NodeGroup]:
        """Return the groups that it may go to."""
        config = view.config
        home = config.group_of(self.instance(view))
        if self.target_groups:
            found = [config.group(name) for name in self.target_groups]
        else:
            others = [one for one in config.named(NodeGroup) if one != home]
            found = [one for one in others if one.alloc_policy != "unallocable"]
        if home in found:
            raise BadInput(
                f"instance {self.instance(view).name} is in node group {home.name} "
                "already",
                hint="name another group: --to GROUP",
            )
        return found

    def candidates(self, view: View) -> list[Node]:
        """Return the nodes of those groups."""
        return placement.hosts(view.config, self.groups(view))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask where it runs, what the nodes reach, and what room they have."""
        yield from ToAnotherNode.questions(self, view)
        yield from placement.ask_room(view.config, self.candidates(view))

    def check(self, view: View) -> None:
        """Refuse what is bound to its node or its group, and what fits nowhere."""
        instance = self.instance(view)
        if not self.groups(view):
            raise WrongState(
                "there is no other node group that takes instances by itself",
                hint="gnt-group list; --to GROUP names one that does not",
            )
        check_mobile(view, instance, "change-group")
        if copies.secondary(view.config, instance):
            raise NotSupported(
                f"instance {instance.name} has mirrored disks, whose copies are in one "
                "node group",
                hint=f"first: gnt-instance modify -t TEMPLATE {instance.name}",
            )
        self.target(view)

    def _chosen(self, view: View) -> Node:
        """Return the best node; its group is another, so to it this is a newcomer."""
        instance = self.instance(view)
        wanted, able = on_record(view.config, instance), self._able(view)
        named = tuple[Node, ...]()
        if who := self.allocator(view):
            found = advice.moves(view, who, [instance], able)
            for why in found.stuck.values():
                raise placement.nowhere(instance.name, why)
            named = tuple(found.nodes.values())
        how = {"any_size": True, "survival": False}
        return placement.place(view, wanted, able, named=named, **how)[0]

    def allocator_request(self, view: View) -> dict[str, Any]:
        """Return what an allocator is asked."""
        return message.change_group([self.instance(view)], self.groups(view))

    def _check_reach(self, view: View, node: Node) -> None:
        ToAnotherNode._check_reach(self, view, node)  # noqa: SLF001 - its own
        if not self.ignore_ipolicy:
            sizes = policy.sizes_of(view.config, self.instance(view))
            group = view.config.group(node.group)
            policy.check(view.config, group, self.instance(view).name, sizes)

    def jobs(self, view: View) -> list[list[dict[str, Any]]]:
        """Return the job that moves it."""
        instance, node = self.instance(view), self.target(view)
        word = "MIGRATE" if runs(view, instance) else "FAILOVER"
        return [
            [
                {
                    "OP_ID": f"OP_INSTANCE_{word}",
                    "instance_name": instance.name,
                    "target_node": node.name,
                    "ignore_ipolicy": self.ignore_ipolicy,
                }
            ]
        ]

    def result(self, view: View, _results: Sequence[Any]) -> Sent:
        """Return where it goes."""
        return Sent(target_node=self.target(view).name)
