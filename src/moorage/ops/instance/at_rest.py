# SPDX-License-Identifier: BSD-2-Clause
"""Work on the disks of an instance that does not run."""

from collections.abc import Iterable, Iterator

from moorage.errors import WrongState
from moorage.jobs import Task, View
from moorage.model import Instance, Node
from moorage.ops import behind, copies
from moorage.ops.instance.base import attach_all
from moorage.ops.liveness import holds, runs


def check_at_rest(view: View, instance: Instance, verb: str) -> None:
    """Raise `WrongState` if the guest runs, or should.

    Parameters
    ----------
    verb
        What is wanted with it: "renamed".
    """
    if runs(view, instance) or instance.admin_state == "up":
        raise WrongState(
            f"instance {instance.name} is running, or should be: it can be {verb} "
            "while it is down",
            hint=f"gnt-instance shutdown {instance.name}",
            instance=instance.name,
        )


def with_disks(
    view: View, instance: Instance, node: Node, work: Iterable[Task]
) -> Iterator[Task]:
    """Yield work on the instance's disks, attached for it if they are not so already.

    They are let go of at the end, come what may.
    """
    held, disks = holds(view, instance), view.config.disks_of(instance)
    for disk in disks:
        copies.check_alone(view.config, disk, node)
    yield from behind.recorded(view, disks, node)
    yield from attach_all(view, disks, node, held=held)
    yield from work
    for disk in () if held else disks:
        yield from copies.let_go(view.config, disk, node)
