# SPDX-License-Identifier: BSD-2-Clause
"""What a node can be: one that runs instances, and one that may become the master."""

from typing import Any

from moorage.errors import WrongState
from moorage.model import Config, Disk, Node
from moorage.ops import candidates
from moorage.units import counted


def check_vm_capable(config: Config, node: Node) -> None:
    """Raise `WrongState` if a node that is to run no instances keeps some."""
    names = [one.name for one in config.instances_on(node)]
    disks = [one.label for one in config.all(Disk) if node.uuid in one.nodes]
    if names or disks:
        what = f"instance {names[0]}" if names else f"disk {disks[0]}"
        raise WrongState(
            f"node {node.name} has {counted(len(names), 'instance')} and "
            f"{counted(len(disks), 'disk')}, "
            f"{what} among them: it must be emptied before",
            hint=f"gnt-node evacuate {node.name}",
        )


def promoted(
    config: Config,
    node: Node,
    changes: dict[str, Any],
    now: float,
    *,
    freely: bool,
) -> tuple[Node, ...]:
    """Return the nodes that become master candidates in the place of one.

    A node that goes off or is drained is replaced without a word: whoever says that a
    node lost its power must not be asked for anything else.

    Parameters
    ----------
    freely
        Whether others may be promoted for one that is demoted by hand.

    Raises
    ------
    WrongState
        If there would be too few candidates, and nobody said that others may be.
    """
    demoted = node.master_candidate and changes.get("master_candidate") is False
    if not demoted:
        return ()
    found = candidates.promoted(config, now, without={node.uuid})
    by_hand = not (changes.get("offline") or changes.get("drained"))
    if found and by_hand and not freely:
        raise WrongState(
            f"without node {node.name} there are too few master candidates: "
            f"{config.cluster.candidate_pool_size} are wanted",
            hint=f"gnt-node modify -C no --auto-promote {node.name}",
        )
    return found
