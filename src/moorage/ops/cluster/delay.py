# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-debug delay``: a job that does nothing for a while."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from moorage.errors import BadInput
from moorage.jobs import Lock, Operation, Run, Task, View
from moorage.jobs.unread import Moot
from moorage.model.caller import Role
from moorage.model.kinds import Count
from moorage.protocol import Pause

MOST = 1000
"""Tasks that one job may have."""


class Delay(Operation, frozen=True, kw_only=True):
    """Wait on some nodes, one after the other.

    Attributes
    ----------
    duration
        How long each delay is.
    on_master
        Wait on the master's node, too.
    on_nodes
        Wait on these nodes, by name or uuid.
    on_node_uuids
        Wait on these nodes, too, by uuid.
    repeat
        How often all of this is done, if it is more than once.
    no_locks
        Hold no locks of the nodes: more such jobs may run at once.
    """

    op_id = "OP_TEST_DELAY"
    role = Role.OPERATE

    duration: Annotated[float, Meta(ge=0, le=3600, extra_json_schema={"x-unit": "s"})]
    on_master: bool = True
    on_nodes: tuple[str, ...] = ()
    on_node_uuids: tuple[str, ...] | None = None
    repeat: Count = 0
    interruptible: Annotated[bool, Moot("gnt-job cancel ends every delay")] = False
    no_locks: bool = False

    def summary(self) -> str:
        """Return what job lists show."""
        return f"TEST_DELAY({self.duration:g})"

    def _named(self, view: View) -> list[str]:
        refs = (*self.on_nodes, *(self.on_node_uuids or ()))
        return list(dict.fromkeys(view.config.node(ref).uuid for ref in refs))

    def _nodes(self, view: View) -> list[str]:
        """Return the uuids of all nodes that wait."""
        master = [view.config.cluster.master_node] if self.on_master else []
        return list(dict.fromkeys([*master, *self._named(view)]))

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the nodes that are named."""
        for uuid in () if self.no_locks else self._named(view):
            yield Lock("node", uuid)

    def check(self, view: View) -> None:
        """Refuse what would last too long, or wait nowhere."""
        nodes = self._nodes(view)  # none: the job has nothing to do, as in Ganeti
        if not 0 <= self.repeat * len(nodes) <= MOST:
            raise BadInput(f"a job has at most {MOST} delays, and no less than none")

    def tasks(self, view: View) -> Iterator[Task]:
        """Wait on each node in turn."""
        call = Pause(seconds=self.duration)
        for _ in range(max(self.repeat, 1)):
            for uuid in self._nodes(view):
                name = view.config.node(uuid).name
                yield Run(
                    what=f"wait {self.duration:g} s on {name}", node=uuid, do=call
                )
