# SPDX-License-Identifier: BSD-2-Clause
"""Whether an instance can start as its record says: its processors, and its slots."""

import math
from collections.abc import Iterator
from typing import Any

from moorage import backend
from moorage.errors import BadInput
from moorage.hypervisors import KVM
from moorage.jobs import View
from moorage.model import Config, Instance, Node, cpumask, hvdisks, hvparams
from moorage.ops.asking import node_tasks
from moorage.ops.planning import cpu_models, placement
from moorage.units import counted

_LEVELS = 3
"""Sockets, cores and threads: where all are given, they make up all processors."""


def check_fits(view: View, instance: Instance, node: Node) -> None:
    """Raise `BadInput` if mask or arrangement are of other processors than there are.

    One that has an entry for each virtual processor has as many as the instance; a node
    that was not asked, or is silent, may have any number.
    """
    if instance.hypervisor != KVM:
        return
    given = hvparams.parameters(node_tasks.hvparams(view.config, instance))
    _check_disks(given, instance)
    cpu_models.check_start(view, instance, node)
    vcpus = _vcpus(view.config, instance)
    _check_arranged(given, vcpus, instance.name)
    text = given.cpu_mask
    mask = cpumask.parsed(text)
    if mask.entries not in (0, 1, vcpus):
        raise BadInput(
            f"cpu_mask '{text}' is for {mask.entries} virtual processors, and instance "
            f"{instance.name} has {vcpus}",
            hint=f"-B vcpus={mask.entries}, or -H cpu_mask=all",
        )
    found = view.told(placement.room_on(view.config, node))
    if found and mask.highest is not None and 0 < found.cpus <= mask.highest:
        raise BadInput(
            f"cpu_mask '{text}' names processor {mask.highest}, and node {node.name} "
            f"has 0 to {found.cpus - 1}",
            hint="-H cpu_mask=all",
            node=node.name,
        )


def check_starts(config: Config, instance: Instance) -> None:
    """Raise `BadInput` for what QEMU would refuse of an instance's record at a start.

    What came in with an import, or from the cluster's defaults, nobody has held against
    this instance before. A mask of other processors stops no guest.
    """
    if instance.hypervisor == KVM:
        given = hvparams.parameters(node_tasks.hvparams(config, instance))
        vcpus = _vcpus(config, instance)
        backend.check({"vcpus": vcpus})
        _check_arranged(given, vcpus, instance.name)
        _check_disks(given, instance)
        _check_slots(given, instance)


def unfit(config: Config) -> Iterator[tuple[Instance, str]]:
    """Yield each instance that could not start by its record, and why."""
    for instance in config.named(Instance):
        try:
            check_starts(config, instance)
        except BadInput as error:
            yield instance, error.message


def check_defaults(before: Config, after: Config) -> None:
    """Raise `BadInput` if other defaults keep an instance from a start that it had."""
    known = {one.uuid for one, _ in unfit(before)}
    for instance, why in unfit(after):
        if instance.uuid not in known:
            raise BadInput(
                f"instance {instance.name} could not start any more: {why}",
                instance=instance.name,
            )


def _check_arranged(given: hvparams.Parameters, vcpus: int, name: str) -> None:
    """Refuse sockets, cores and threads that do not make up all processors."""
    asked = given.topology
    made = math.prod(asked.values())
    whole = len(asked) == _LEVELS
    if (made == vcpus) if whole else (vcpus % made == 0):
        return
    told = " * ".join(f"cpu_{level}={number}" for level, number in asked.items())
    raise BadInput(
        f"instance {name} has {vcpus} virtual processors, and {told} makes {made}"
        f"{'' if whole else ' or a multiple of that'}",
        hint=f"-B vcpus={made}",
    )


def _vcpus(config: Config, instance: Instance) -> Any:  # noqa: ANN401
    return node_tasks.beparams(config, instance)["vcpus"]


def _check_slots(given: hvparams.Parameters, instance: Instance) -> None:
    """Refuse more disks and network cards than a pc has places for."""
    disks, cards = len(instance.disks), len(instance.nics)
    places = given.disk_places
    if places is not None and disks > len(places):
        raise BadInput(
            f"instance {instance.name} has {counted(disks, 'disk')}, and a pc with "
            f"disk_type={given.disk_type} has {counted(len(places), 'place')} for them",
            hint="detach a disk; or, where its system can, -H disk_type=paravirtual",
        )
    free, needed = len(given.slots), cards if given.on_scsi else disks + cards
    if given.is_pc and needed > free:
        raise BadInput(
            f"instance {instance.name} has {counted(disks, 'disk')} and "
            f"{counted(cards, 'network card')}, and a pc has {counted(free, 'slot')}",
            hint="detach a disk or remove a card; or, where its system can, "
            "-H machine_version=q35",
        )


def _check_disks(given: hvparams.Parameters, instance: Instance) -> None:
    """Refuse disks of a kind that only a pc has, on a q35."""
    if given.disk_type != hvdisks.PARAVIRTUAL and not given.is_pc:
        raise BadInput(
            f"instance {instance.name} cannot have disk_type={given.disk_type}: a q35 "
            "has paravirtual disks",
            hint="-H machine_version=pc, or -H disk_type=paravirtual",
        )
