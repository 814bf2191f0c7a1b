# SPDX-License-Identifier: BSD-2-Clause
"""The cluster's volume group: can nodes be told to keep disks in it."""

from collections.abc import Iterable, Iterator

from moorage.errors import WrongState
from moorage.jobs import Ask, View
from moorage.model import Config, Disk, Node, NodeFacts, Place
from moorage.ops.volumes.disk_access import template
from moorage.protocol import GetFacts
from moorage.storage import TEMPLATES, Template
from moorage.storage.lvm import check_name

SETTING = "volume_group_name"


def asking(name: str) -> GetFacts:
    """Return what asks a node for a volume group."""
    users = (one for one, kind in TEMPLATES.items() if _needs(kind))
    at = tuple(Place(template=one, settings=((SETTING, name),)) for one in users)
    return GetFacts(brief=True, places=at)


def ask(nodes: Iterable[Node], wanted: str | None) -> Iterator[Ask[NodeFacts]]:
    """Ask nodes for a volume group that is to be set."""
    if wanted:
        yield from (Ask(node.uuid, asking(wanted)) for node in nodes)


def check(view: View, nodes: Iterable[Node], wanted: str | None) -> None:
    """Raise `Refused` unless the volume group can be set.

    Parameters
    ----------
    wanted
        Its name; empty to have none, None to leave it as it is.
    """
    if wanted == "":
        _check_unused(view.config)
    if not wanted:
        return
    check_name("volume group", wanted)
    for node in nodes:
        told = view.told(Ask(node.uuid, asking(wanted)))
        if told:  # of a silent one verify tells, when it is back
            check_there(node, told, wanted)


def check_there(node: Node, told: NodeFacts, wanted: str) -> None:
    """Raise `WrongState` unless a node has a volume group."""
    keys = {unit.key for unit in told.units if _needs(TEMPLATES[unit.template])}
    if wanted not in keys:
        raise WrongState(
            f"node {node.name} has no volume group {wanted}",
            hint=f"on {node.name}: vgcreate {wanted} /dev/…",
            node=node.name,
        )


def _check_unused(config: Config) -> None:
    for disk in config.all(Disk):
        if _needs(template(disk)):
            raise WrongState(
                "Cannot disable lvm storage while lvm-based disks exist: "
                f"{disk.label} is one",
                hint=f"gnt-disk info {disk.uuid}",
                disk=disk.uuid,
            )


def _needs(kind: type[Template]) -> bool:
    return SETTING in kind.capabilities.facts.settings
