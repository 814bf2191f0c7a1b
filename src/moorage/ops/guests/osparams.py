# SPDX-License-Identifier: BSD-2-Clause
"""The OS definition of an instance on a node, and whether it takes its parameters."""

from collections.abc import Mapping
from typing import Any

from moorage.errors import BadInput, MoorageError, NotFound, WrongState
from moorage.jobs import Run, View
from moorage.model import Config, Disk, Instance, Node
from moorage.ops.asking import node_tasks
from moorage.protocol import InstallSystem, RenameSystem, VerifySystem

Parameters = Mapping[str, Any]


def of_instance(instance: Instance) -> dict[str, Any]:
    """Return an instance's own OS parameters, the private ones too."""
    return {**instance.osparams, **instance.osparams_private}


def filled(config: Config, os: str, own: Parameters) -> dict[str, Any]:
    """Return OS parameters: the cluster's for the OS and its variant, then `own`."""
    public, private = config.cluster.osparams, config.cluster.osparams_private_cluster
    found: dict[str, Any] = {}
    for name in dict.fromkeys((os.partition("+")[0], os)):
        found |= {**public.get(name, {}), **private.get(name, {})}
    return {**found, **own}


def public(config: Config, instance: Instance) -> dict[str, Any]:
    """Return the OS parameters of an instance that anybody may see."""
    known, os = config.cluster.osparams, instance.os
    general = known.get(os.partition("+")[0], {})
    return {**general, **known.get(os, {}), **instance.osparams}


def check(view: View, node: Node, os: str, own: Parameters) -> None:
    """Raise unless a node, which was asked, has the OS, and this its parameters.

    Raises
    ------
    NotFound, WrongState, BadInput
        If the definition is not there or not valid, or lacks the variant or a
        parameter.
    """
    name, _, variant = os.partition("+")
    found = view.answer(node_tasks.oses_on(node.uuid)) or []
    known = {one.name: one for one in reversed(found)}
    if name not in known:
        raise NotFound(
            f"node {node.name} has no OS '{name}'", hint="gnt-os list", os=name
        )
    one = known[name]
    if one.problem:
        raise WrongState(f"OS '{name}' is not valid: {one.problem}")
    if variant and variant not in one.variants:
        told = ", ".join(one.variants) or "none"
        raise BadInput(f"OS '{name}' has no variant '{variant}': it has {told}")
    for parameter in sorted(filled(view.config, os, own)) if one.verifies else ():
        if parameter not in one.parameters:
            told = ", ".join(sorted(one.parameters)) or "none"
            drop = f"the cluster gives it: gnt-os modify -O {parameter}=default {os}"
            raise BadInput(
                f"OS '{name}' has no parameter '{parameter}': it has {told}",
                hint="" if parameter in own else drop,
                parameter=parameter,
            )


def missing(view: View, node: Node, os: str, own: Parameters) -> str:
    """Return why a node that was asked can run no script of an OS; empty if it can."""
    try:
        check(view, node, os, own)
    except MoorageError as error:
        return error.message
    return ""


def check_offered(config: Config, os: str) -> None:
    """Raise `WrongState` if nothing new is made with an OS, or a variant of it."""
    listed = config.cluster.blacklisted_os
    if os in listed or os.partition("+")[0] in listed:
        raise WrongState(
            f"OS '{os}' is blacklisted: nothing new is made with it",
            hint=f"gnt-os modify --blacklisted no {os.partition('+')[0]}",
            os=os,
        )


def verify(view: View, instance: Instance, node: Node) -> Run:
    """Return the task in which the OS looks at the parameters; it changes nothing.

    An OS that verifies nothing is content with everything.
    """
    return Run(
        what=f"verify the parameters of OS {instance.os} on {node.name}",
        node=node.uuid,
        do=VerifySystem(
            **node_tasks.of_whole(view.config, instance, node),
            os=instance.os,
            osparams=filled(view.config, instance.os, of_instance(instance)),
        ),
    )


def install(
    view: View,
    instance: Instance,
    disks: list[Disk],
    node: Node,
    *,
    again: bool = False,
) -> Run:
    """Return the task that puts the system on the disks, where one may be (`again`)."""
    return Run(
        what=f"install {instance.os} on {instance.name}",
        node=node.uuid,
        do=InstallSystem(**told(view, instance, disks, node), again=again),
    )


def rename(
    view: View, instance: Instance, old: str, node: Node, disks: list[Disk]
) -> Run:
    """Return the task that tells the system on the disks the instance's new name."""
    return Run(
        what=f"tell {instance.os} that {old} is {instance.name}",
        node=node.uuid,
        do=RenameSystem(**told(view, instance, disks, node), old_name=old),
        tolerant=True,
        hint="the instance has its new name; what its system calls itself is yours",
    )


class OfSystem(node_tasks.OfWhole):
    """What every script of an OS that works on disks is told."""

    disks: tuple[Disk, ...]
    os: str
    osparams: dict[str, Any]
    beparams: dict[str, Any]
    secondaries: tuple[str, ...]
    ctime: float
    mtime: float


def told(view: View, instance: Instance, disks: list[Disk], node: Node) -> OfSystem:
    """Return what a script of the instance's OS is told on a node."""
    config = view.config
    full = node_tasks.beparams(config, instance)
    uuids = {uuid for disk in disks for uuid in disk.nodes} - {node.uuid}
    others = sorted(config.node(uuid).name for uuid in uuids)
    return {
        **node_tasks.of_whole(config, instance, node),
        "disks": tuple(disks),
        "os": instance.os,
        "osparams": filled(config, instance.os, of_instance(instance)),
        "beparams": {**full, "memory": full["maxmem"]},
        "secondaries": tuple(others),
        "ctime": instance.ctime,
        "mtime": instance.mtime,
    }
