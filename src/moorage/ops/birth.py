# SPDX-License-Identifier: BSD-2-Clause
"""The new disks of one request: each knows of those before it."""

from collections.abc import Iterable

from moorage.jobs import View
from moorage.model import Disk, Node

from . import pairs
from .disk_spec import DiskSpec, bear


def bear_all(
    view: View,
    wishes: Iterable[DiskSpec],
    node: Node,
    peer: Node | None = None,
    instance: str = "",
) -> list[Disk]:
    """Return the new disks, in the order of their slots.

    Parameters
    ----------
    node
        Where they are made, or where their instance runs.
    peer
        The node that keeps second copies, if any disk has them.
    instance
        The instance that they are made for; empty for nobody.
    """
    made: list[Disk] = []
    for index, wanted in enumerate(wishes):
        pair = pairs.wanted(view, wanted.template, node, peer, made)
        disk = bear(view, wanted, node, index=index, instance=instance, pair=pair)
        made.append(disk)
    return made
