# SPDX-License-Identifier: BSD-2-Clause
"""What is known of an instance's guest: it runs, it does not, or nobody can tell."""

from collections.abc import Iterator

from moorage.errors import MoorageError, WrongState, cause_of
from moorage.jobs import Sought, View
from moorage.model import Config, Disk, GuestState, Instance, Node, hvparams
from moorage.ops.asking.node_tasks import guest_on
from moorage.ops.asking.node_tasks import hvparams as all_hvparams
from moorage.ops.asking.silence import way_out

NOT_WRITING = frozenset({"incoming", "moved"})
"""States in which a guest's process does not write to its disks."""


def guest(view: View, instance: Instance) -> GuestState | None:
    """Return the guest on the instance's node; None if it has no process there.

    Raise what came instead of an answer.
    """
    return view.answer(guest_on(instance.primary_node, instance))


def runs(view: View, instance: Instance) -> bool:
    """Whether the guest runs; on a node that somebody marked offline, it does not."""
    if view.config.home(instance).offline:
        return False
    found = guest(view, instance)
    return found is not None and found.runs


def may_power_off(config: Config, instance: Instance) -> bool:
    """Whether a guest that powers itself off may stay off.

    The cluster must allow it, and the guest's own parameters.
    """
    if not config.cluster.enabled_user_shutdown:
        return False
    return hvparams.parameters(all_hvparams(config, instance)).user_shutdown


def holds(view: View, instance: Instance) -> bool:
    """Whether the instance's disks are attached on its node."""
    return instance.disks_active or runs(view, instance)


def last_holder(view: View, instance: Instance, disk: Disk) -> str:
    """Return the node that held an instance's disk last, when it loses the instance.

    An instance that moved while it was down took no disk along: its node has not seen
    the volume yet, and a provider may keep it elsewhere.
    """
    if disk.last_node is None or holds(view, instance):
        return instance.primary_node
    return disk.last_node


def check_known(view: View, instance: Instance) -> None:
    """Raise `WrongState` if nobody can tell whether the guest runs.

    A node that gives no answer may still run it, and write.
    """
    node = view.config.home(instance)
    if node.offline:
        return
    try:
        guest(view, instance)
    except MoorageError as error:
        raise silent(node, instance, error) from error


def seek(config: Config, instance: Instance) -> Iterator[Sought]:
    """Ask whether any other node that is on has the guest."""
    yield Sought(instance.uuid, instance.primary_node, config.hosts())


def check_nowhere_else(
    view: View,
    instance: Instance,
    harm: str = "started a second time, both would write to its disks",
) -> None:
    """Raise `WrongState` if another node says that it runs the guest.

    The second line against two writers: the record says where a guest should run, and
    this knows where it does. A node that gives no answer proves nothing, and one such
    node must not keep every guest of the cluster down.

    Parameters
    ----------
    harm
        Why it matters.
    """
    found = sorted(
        view.config.node(node).name
        for node, state in view.strays.get(instance.uuid, {}).items()
        if state not in NOT_WRITING
    )
    if found:
        home = view.config.home(instance).name
        raise WrongState(
            f"instance {instance.name} runs on node {' and '.join(found)}, and should "
            f"be on {home}: {harm}",
            hint=f"gnt-instance migrate --cleanup {instance.name}",
            instance=instance.name,
        )


def check_unused(view: View, instance: Instance) -> None:
    """Raise `WrongState` if another node says that it runs the guest with its disks.

    For what writes to disks that are recorded as at rest, destroys their volumes, or
    lets others have them.
    """
    check_nowhere_else(view, instance, "its disks are in use there")


def silent(node: Node, instance: Instance, error: MoorageError) -> WrongState:
    """Return the refusal for a node that gives no answer and is not marked offline."""
    return WrongState(
        f"node {node.name} gives no answer ({cause_of(error)}), and nobody has said "
        f"that it is off: instance {instance.name} may still run there and write to "
        "its disks",
        hint=way_out(node, error),
        node=node.name,
        instance=instance.name,
    )
