# SPDX-License-Identifier: BSD-2-Clause
"""Exclusive storage: nodes where a disk has physical volumes for itself alone.

The node parameter ``exclusive_storage`` says so. There each disk of LVM's names how
many physical volumes (spindles) it gets, and nobody else's blocks are on them.
"""

from moorage.disk_templates import TemplateFacts
from moorage.errors import BadInput, WrongState
from moorage.model import Cluster, Config, Node, NodeFacts
from moorage.ops.ndparams import filled

PARAMETER = "exclusive_storage"
_MOST = 64


def is_exclusive(config: Config, node: Node) -> bool:
    """Whether a node, or else its group, has exclusive storage."""
    return config.follows(_exclusive, node.uuid)


def _exclusive(config: Config, node: str) -> bool:
    return bool(filled(config, config.node(node)).get(PARAMETER))


def spindles(cluster: Cluster, told: NodeFacts) -> tuple[int, int]:
    """Return how many physical volumes a node has, and how many of them are empty.

    Those of the cluster's volume group count, as in Ganeti.
    """
    for unit in told.units:
        if unit.key == cluster.volume_group_name and unit.spindles is not None:
            return unit.spindles, len(unit.empty)
    return 0, 0


def checked_spindles(value: object) -> int | None:
    """Return a number of spindles, or raise `BadInput` if no disk can have it."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _MOST:
        raise BadInput(f"a disk has 1 to {_MOST} spindles, not {value}")
    return value


def check(
    config: Config, node: Node, facts: TemplateFacts, spindles: int | None
) -> None:
    """Raise `Refused` unless a new disk says what the storage of its node needs.

    It has `spindles`, physical volumes for itself; None for any share of them.
    """
    exclusive = is_exclusive(config, node)
    if spindles is not None and not (exclusive and facts.spindles):
        raise BadInput("disks have spindles with exclusive storage only: leave it out")
    if not exclusive or not facts.node_disk:
        return
    if not facts.spindles:
        raise WrongState(
            f"disk template '{facts.name}' is not supported with exclusive storage, "
            f"which node {node.name} has"
        )
    if spindles is None:
        raise BadInput(
            f"node {node.name} has exclusive storage: the disk needs a number of "
            "spindles",
            hint="add spindles=1",
        )
