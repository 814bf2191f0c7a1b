# SPDX-License-Identifier: BSD-2-Clause
"""``moorage adopt-guests``: a guest whose process Ganeti started is taken over."""

from collections.abc import Iterator

from moorage.errors import WrongState
from moorage.jobs import Run, Task, View
from moorage.model.caller import Role
from moorage.ops.asking import node_tasks
from moorage.ops.guests.liveness import guest
from moorage.ops.instance.base import OnInstance
from moorage.ops.instance.starting import started
from moorage.ops.volumes import copies
from moorage.protocol import AdoptGuest


class InstanceAdoptGuest(OnInstance, frozen=True, kw_only=True):
    """Take over an instance's guest that Ganeti started, while it runs.

    One that was taken over already is left alone. One that cannot be is as it was; its
    disks stay attached, for it has them. Mirrored ones must be set up on both nodes as
    they are on record: nothing of them is changed.
    """

    op_id = "OP_INSTANCE_ADOPT_GUEST"
    role = Role.OPERATE

    def check(self, view: View) -> None:
        """Refuse what has no such guest."""
        OnInstance.check(self, view)
        instance = self.instance(view)
        found = guest(view, instance)
        if found is None or not found.origin:
            raise WrongState(
                f"instance {instance.name} has no guest that Ganeti started on node "
                f"{view.config.home(instance).name}",
                instance=instance.name,
            )

    def tasks(self, view: View) -> Iterator[Task]:
        """Attach the disks, take the guest over, record that they are in use."""
        instance = self.instance(view)
        node = view.config.home(instance)
        disks = view.config.disks_of(instance)
        for disk in disks:
            yield from copies.adopt(view.config, disk, node)
        yield Run(
            what=f"take over {instance.name} on {node.name}",
            node=node.uuid,
            do=AdoptGuest(
                **node_tasks.of_whole(view.config, instance, node), disks=tuple(disks)
            ),
        )
        yield from started(view, instance, remember=False)
