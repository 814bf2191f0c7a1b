# SPDX-License-Identifier: BSD-2-Clause
"""Whether a node's processor is what a guest is to have, or has: its ``cpu_type``.

A node that gives no answer, or whose agent is older, is not in the way.
"""

from collections.abc import Iterator, Sequence

from moorage.errors import BadInput, WrongState
from moorage.hypervisors import KVM
from moorage.jobs import Ask, View
from moorage.model import Config, GuestState, Instance, Node, hvparams
from moorage.model.processors import WHATEVER, Processor, lost
from moorage.ops.asking import node_tasks
from moorage.protocol import TryProcessor


def wanted(config: Config, instance: Instance) -> TryProcessor | None:
    """Return what asks a node for an instance's processors; None for those not kvm's.

    They are those that it has at its next start.
    """
    if instance.hypervisor != KVM:
        return None
    try:
        given = hvparams.parameters(node_tasks.hvparams(config, instance))
    except BadInput:  # whoever starts it is told
        return None
    return TryProcessor(
        cpu_type=given.cpu_type, accel=given.accel, kvm_flag=given.kvm_flag
    )


def ask_start(
    config: Config, instance: Instance, node: Node
) -> Iterator[Ask[Processor | None]]:
    """Ask a node what an instance's processors would be, where something can lack."""
    found = wanted(config, instance)
    if found and found.cpu_type not in WHATEVER and not node.offline:
        yield Ask(node.uuid, found)


def check_start(view: View, instance: Instance, node: Node) -> None:
    """Raise `WrongState` if a node lacks what an instance's processors are to have."""
    what = wanted(view.config, instance)
    found = view.told(Ask(node.uuid, what)) if what else None
    if what and found and (why := lack(found)):
        raise WrongState(
            f"instance {instance.name} cannot have cpu_type={what.cpu_type} on node "
            f"{node.name}: {why}",
            hint=without(what.cpu_type, found.lacking)
            or f"gnt-group cpu-models {view.config.group(node.group).name}",
            node=node.name,
        )


def ask_move(
    config: Config, instance: Instance, node: Node
) -> Iterator[Ask[Processor | None]]:
    """Ask an instance's own node and another one what its processors are there."""
    found = wanted(config, instance)
    for one in (config.home(instance), node) if found else ():
        if found and not one.offline:
            yield Ask(one.uuid, found)


def check_move(view: View, instance: Instance, running: GuestState, node: Node) -> None:
    """Raise `WrongState` if a guest that runs would miss features on another node.

    What it has had to do without so far, it does not miss. Of one that runs with
    another ``cpu_type`` than is on record by now, nobody has asked.
    """
    what = wanted(view.config, instance)
    if what is None or running.machine.get("cpu_type") != what.cpu_type:
        return
    asked = list(ask_move(view.config, instance, node))
    told = [found for found in map(view.told, asked) if found]
    if len(told) != len(asked) or not told:
        return
    if why := told[-1].problem or _lacks(lost(*told)):
        raise WrongState(
            f"instance {instance.name} cannot migrate to node {node.name}: {why}",
            hint="a cpu_type that all nodes have (gnt-group cpu-models "
            f"{view.config.group(node.group).name}); to do it all the same: "
            "--ignore-processor",
            node=node.name,
        )


def lack(found: Processor) -> str:
    """Return in a sentence what keeps a guest from such a processor; empty for none."""
    return found.problem or _lacks(found.lacking)


def without(cpu_type: str, lacking: Sequence[str]) -> str:
    """Return the words that switch off what a processor lacks; empty for nothing."""
    off = "".join(f"\\,{name}=off" for name in lacking)
    given = cpu_type.replace(",", "\\,")
    return f"to do without: -H 'cpu_type={given}{off}'" if off else ""


def _lacks(features: Sequence[str]) -> str:
    named = ", ".join(features)
    return f"its processor lacks {named}" if named else ""
