# SPDX-License-Identifier: BSD-2-Clause
"""Whether a ``cpu_mask`` fits an instance and its node, as Ganeti asks."""

from typing import Any

from moorage.errors import BadInput
from moorage.hypervisors import KVM
from moorage.jobs import View
from moorage.model import Instance, Node, cpumask
from moorage.ops.asking import node_tasks
from moorage.ops.planning import placement


def check_fits(view: View, instance: Instance, node: Node) -> None:
    """Raise `BadInput` if the mask is of other processors than there are.

    One that has an entry for each virtual processor has as many as the instance; a node
    that was not asked, or is silent, may have any number.
    """
    given = node_tasks.hvparams(view.config, instance)
    if instance.hypervisor != KVM or not given.get("cpu_mask"):
        return
    text = str(given["cpu_mask"])
    mask, vcpus = cpumask.parsed(text), _vcpus(view, instance)
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


def _vcpus(view: View, instance: Instance) -> Any:  # noqa: ANN401
    return node_tasks.beparams(view.config, instance)["vcpus"]
