# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance console``: where the serial console of a guest answers."""

from collections.abc import Iterator, Sequence
from typing import Any

from moorage.errors import WrongState
from moorage.jobs import Run, Task, View
from moorage.model.caller import Role
from moorage.ops.asking import node_tasks
from moorage.ops.guests.liveness import runs
from moorage.ops.instance.base import OnInstance
from moorage.protocol import FindConsole


class InstanceConsole(OnInstance, frozen=True, kw_only=True):
    """Say how to reach a running guest's console."""

    op_id = "OP_INSTANCE_CONSOLE"
    role = Role.OPERATE

    def check(self, view: View) -> None:
        """Refuse when there is no guest."""
        OnInstance.check(self, view)
        instance = self.instance(view)
        if not runs(view, instance):
            raise WrongState(
                f"instance {instance.name} is not running: it has no console",
                hint=f"gnt-instance startup {instance.name}",
            )

    def tasks(self, view: View) -> Iterator[Task]:
        """Ask the node."""
        instance = self.instance(view)
        yield Run(
            what=f"find the console of {instance.name}",
            node=instance.primary_node,
            do=FindConsole(**node_tasks.of_guest(instance)),
        )

    def result(self, view: View, results: Sequence[Any]) -> dict[str, str]:
        """Return the instance, its node, and the path of a Unix socket on it."""
        instance = self.instance(view)
        node = view.config.home(instance)
        return {
            "instance": instance.name,
            "node": node.name,
            "socket": str(results[0]),
        }
