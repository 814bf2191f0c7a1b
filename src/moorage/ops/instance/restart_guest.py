# SPDX-License-Identifier: BSD-2-Clause
"""``moorage adopt-guests --restart``: a guest of Ganeti's becomes one of ours."""

from collections.abc import Iterator

from moorage.errors import WrongState
from moorage.jobs import Run, Task, View
from moorage.model.caller import Role
from moorage.model.kinds import Seconds
from moorage.ops.asking import node_tasks
from moorage.ops.guests import guest_tasks
from moorage.ops.guests.liveness import guest
from moorage.ops.instance.base import SHUTDOWN_TIMEOUT, attach_all
from moorage.ops.instance.starting import Starting, started
from moorage.protocol import EndForeignGuest


class InstanceRestartGuest(Starting, frozen=True, kw_only=True):
    """Restart an instance's guest that Ganeti started, taken over or not.

    It is asked to power off, and started as any other once its process is gone. One
    that nobody has taken over is never ended by force: if it does not go, it runs on.
    One that is gone already is started.

    Attributes
    ----------
    shutdown_timeout
        How long the guest gets to power down.
    """

    op_id = "OP_INSTANCE_RESTART_GUEST"
    role = Role.OPERATE

    shutdown_timeout: Seconds = SHUTDOWN_TIMEOUT

    def begins(self, view: View) -> bool:
        """Whether a guest is to start: none may be stopped that then could not."""
        del view
        return True

    def check(self, view: View) -> None:
        """Refuse a guest that Ganeti did not start, and what could not start then."""
        instance = self.instance(view)
        found = guest(view, instance)
        if found is not None and not found.origin:
            raise WrongState(
                f"the guest of instance {instance.name} is none that Ganeti started",
                hint=f"gnt-instance reboot {instance.name}",
                instance=instance.name,
            )
        if found is None and instance.admin_state != "up":
            raise WrongState(
                f"instance {instance.name} has no guest that Ganeti started on node "
                f"{view.config.home(instance).name}, and should be down",
                hint=f"gnt-instance startup {instance.name}",
                instance=instance.name,
            )
        Starting.check(self, view)

    def tasks(self, view: View) -> Iterator[Task]:
        """End the process, attach the disks, start a new one."""
        instance = self.instance(view)
        node = view.config.home(instance)
        disks = view.config.disks_of(instance)
        found = guest(view, instance)
        adopted = found is not None and found.origin == "adopted"
        if adopted:
            yield guest_tasks.stop(
                view.config, instance, disks, node, self.shutdown_timeout
            )
        elif found is not None:
            yield Run(
                what=f"end Ganeti's process of {instance.name} on {node.name}",
                node=node.uuid,
                do=EndForeignGuest(
                    **node_tasks.of_guest(instance),
                    disks=tuple(disks),
                    timeout=self.shutdown_timeout,
                ),
            )
        yield from attach_all(view, disks, node, held=adopted)
        yield guest_tasks.start(view.config, instance, disks, node)
        yield from started(view, instance)
