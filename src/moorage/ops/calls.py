# SPDX-License-Identifier: BSD-2-Clause
"""Calls of the node agent, and the tasks that are made of them.

Every operation on disks and guests is built of these few tasks; each names its undo.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import to_builtins

from moorage.backend import DEFAULTS
from moorage.jobs import Call, Question, Run
from moorage.model import Config, Disk, Instance, Node
from moorage.model.change import encode

EXCLUSIVE, SHARED = "exclusive", "shared"


def hvparams(config: Config, instance: Instance) -> dict[str, Any]:
    """Return the hypervisor parameters: the cluster's, then the instance's own."""
    return config.cluster.hvparams.get(instance.hypervisor, {}) | instance.hvparams


def beparams(config: Config, instance: Instance) -> dict[str, Any]:
    """Return the back-end parameters: the cluster's, then the instance's own."""
    own = config.cluster.beparams.get("default", {}) | instance.beparams
    return {**DEFAULTS, **own}


# -- calls ---------------------------------------------------------------------------


def disk_call(config: Config, verb: str, disk: Disk, **more: Any) -> Call:  # noqa: ANN401
    """Return a verb on one disk."""
    cluster, owner = config.cluster, config.owner(disk)
    hypervisor = owner.hypervisor if owner else cluster.enabled_hypervisors[0]
    args = {
        "disk": encode(disk),
        "hypervisor": hypervisor,
        "shared_file_dir": cluster.shared_file_storage_dir,
        "file_dir": cluster.file_storage_dir,
    }
    return Call(verb, args | more)


def guest_call(
    config: Config,
    verb: str,
    instance: Instance,
    disks: list[Disk] | None = None,
    **more: Any,  # noqa: ANN401
) -> Call:
    """Return a verb on one guest; `disks` fence the step and are what it gets."""
    backend = beparams(config, instance)
    args = {
        "uuid": instance.uuid,
        "name": instance.name,
        "hypervisor": instance.hypervisor,
        "memory": backend["maxmem"],
        "vcpus": backend["vcpus"],
        "hvparams": hvparams(config, instance),
        "disks": [encode(disk) for disk in disks or ()],
        "nics": to_builtins(instance.nics),
        "uid_pool": config.cluster.uid_pool,
    }
    return Call(verb, args | more)


# -- questions -----------------------------------------------------------------------


def guest_on(node: str, instance: Instance) -> Question:
    """Ask a node for one guest: its state, or None."""
    return Question(node, "guest", (("uuid", instance.uuid),))


def facts_on(node: Node) -> Question:
    """Ask a node for all that it knows of itself."""
    return Question(node.uuid, "facts")


def providers_on(node: str) -> Question:
    """Ask a node for its ExtStorage providers."""
    return Question(node, "providers")


def oses_on(node: str) -> Question:
    """Ask a node for its OS definitions."""
    return Question(node, "oses")


def devices_on(node: str, paths: Iterable[str]) -> Question:
    """Ask a node what there is at the paths of devices and files."""
    return Question(node, "devices", (("paths", tuple(paths)),))


# -- tasks on disks ------------------------------------------------------------------


def create(config: Config, disk: Disk, node: Node) -> Run:
    """Make the volume; undone by removing it, if the node made it."""
    return Run(
        what=f"create disk {disk.label} on {node.name}",
        node=node.uuid,
        do=disk_call(config, "disk.create", disk),
        undo=disk_call(config, "disk.unmake", disk),
        lasting=True,
    )


def attach(
    config: Config,
    disk: Disk,
    node: Node,
    opened: str = EXCLUSIVE,
    *,
    held: bool = False,
    ignore_size: bool = False,
) -> Run:
    """Attach and open on a node; undone by detaching.

    Parameters
    ----------
    held
        Whether it is attached there already: then there is nothing to undo.
    ignore_size
        Take it whatever its size is.
    """
    sized = {"ignore_size": True} if ignore_size else {}
    return Run(
        what=f"attach disk {disk.label} on {node.name}",
        node=node.uuid,
        do=disk_call(config, "disk.attach", disk, opened=opened, **sized),
        undo=None if held else disk_call(config, "disk.detach", disk),
    )


def attach_again(config: Config, disk: Disk, node: Node) -> Run:
    """Look again where an attached disk is, and whether it has the recorded size.

    What was known stays, if that fails.
    """
    return Run(
        what=f"look at disk {disk.label} on {node.name}",
        node=node.uuid,
        do=disk_call(config, "disk.attach", disk, opened=EXCLUSIVE),
        tolerant=True,
    )


def detach(
    config: Config,
    disk: Disk,
    node: Node,
    *,
    tolerant: bool = False,
    held: bool = True,
) -> Run:
    """Detach on a node; undone by attaching, but for a tolerant one.

    Parameters
    ----------
    held
        Whether it was attached there at all; if not, this is a precaution, and there
        is nothing to undo.
    """
    again = disk_call(config, "disk.attach", disk, opened=EXCLUSIVE, ignore_size=True)
    return Run(
        what=f"detach disk {disk.label} on {node.name}",
        node=node.uuid,
        do=disk_call(config, "disk.detach", disk),
        undo=None if tolerant or not held else again,
        tolerant=tolerant,
    )


def let_go(config: Config, disk: Disk, node: Node) -> Run:
    """Detach what nobody needs any more on a node: there is no way back.

    A guest that was stopped is not started again because its storage cannot be
    stopped. The node holds the disk then, until the next start takes it up.
    """
    return Run(
        what=f"detach disk {disk.label} on {node.name}",
        node=node.uuid,
        do=disk_call(config, "disk.detach", disk),
        tolerant=True,
        final=True,
    )


def remove(
    config: Config,
    disk: Disk,
    node: Node,
    *,
    sought: bool = False,
    tolerant: bool = False,
    hint: str = "",
) -> Run:
    """Destroy the volume: no way back.

    Parameters
    ----------
    sought
        Whether the node must find the volume first, for it may be out of its sight.
    tolerant
        Whether the operation is a success even if the volume stays behind.
    hint
        What to type when it cannot be removed.
    """
    return Run(
        what=f"remove disk {disk.label} on {node.name}",
        node=node.uuid,
        do=disk_call(config, "disk.remove", disk, sought=sought),
        final=True,
        tolerant=tolerant,
        spoils=True,
        hint=hint,
    )


def forget(config: Config, disk: Disk, node: Node) -> Run:
    """Let a node forget a disk that it holds, whatever its storage says."""
    return Run(
        what=f"forget disk {disk.label} on {node.name}",
        node=node.uuid,
        do=disk_call(config, "disk.forget", disk),
        tolerant=True,
    )


def setinfo(config: Config, disk: Disk, node: Node, text: str) -> Run:
    """Leave a note beside the volume; nobody fails for its lack."""
    return Run(
        what=f"note the owner of disk {disk.label} on {node.name}",
        node=node.uuid,
        do=disk_call(config, "disk.setinfo", disk, text=text),
        tolerant=True,
    )


# -- tasks on guests -----------------------------------------------------------------


def start(config: Config, instance: Instance, disks: list[Disk], node: Node) -> Run:
    """Start a guest; undone by pulling its plug."""
    return Run(
        what=f"start {instance.name} on {node.name}",
        node=node.uuid,
        do=guest_call(config, "instance.start", instance, disks),
        undo=guest_call(config, "instance.stop", instance, disks),
    )


def stop(
    config: Config,
    instance: Instance,
    disks: list[Disk],
    node: Node,
    patience: float,
    *,
    final: bool = False,
) -> Run:
    """Power a guest down within `patience` seconds; undone by starting it.

    Parameters
    ----------
    final
        Whether it is stopped for good: once it is down, there is no way back.
    """
    return Run(
        what=f"stop {instance.name} on {node.name}",
        node=node.uuid,
        do=guest_call(config, "instance.stop", instance, disks, timeout=patience),
        undo=guest_call(config, "instance.start", instance, disks),
        final=final,
    )


def plug(config: Config, instance: Instance, disk: Disk, node: Node, slot: int) -> Run:
    """Hot-plug a disk; undone by unplugging."""
    one: dict[str, Any] = {"disk": encode(disk), "slot": slot}
    return Run(
        what=f"plug disk {disk.label} into {instance.name} on {node.name}",
        node=node.uuid,
        do=guest_call(config, "instance.plug", instance, **one),
        undo=guest_call(config, "instance.unplug", instance, **one),
    )


def unplug(
    config: Config, instance: Instance, disk: Disk, node: Node, slot: int
) -> Run:
    """Hot-unplug a disk; undone by plugging."""
    one: dict[str, Any] = {"disk": encode(disk), "slot": slot}
    return Run(
        what=f"unplug disk {disk.label} from {instance.name} on {node.name}",
        node=node.uuid,
        do=guest_call(config, "instance.unplug", instance, **one),
        undo=guest_call(config, "instance.plug", instance, **one),
    )
