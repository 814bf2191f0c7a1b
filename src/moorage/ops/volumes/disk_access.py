# SPDX-License-Identifier: BSD-2-Clause
"""Which nodes reach a disk, and which node to ask for one that belongs to nobody.

Nothing here knows a template by name: its capability record says all.
"""

from collections.abc import Iterable, Iterator

from moorage.errors import BadInput, MoorageError, NotFound, Refused, WrongState
from moorage.jobs import Question, View
from moorage.model import Config, Disk, Node, NodeGroup, Provider
from moorage.ops.asking.node_tasks import devices_on, providers_on
from moorage.storage import Can, Capabilities, Reach, Template
from moorage.storage.ownership import ways_out
from moorage.storage.provider import provider_called
from moorage.storage.templates import template_named

from . import identity
from .pools import check_used_in

TRIED = 3
"""How many nodes of a group are asked before giving up on finding one that answers."""


def template(disk: Disk) -> type[Template]:
    """Return the disk's template."""
    return template_named(disk.dev_type)


def able(disk: Disk) -> Capabilities:
    """Return what the disk's template declares about itself."""
    return template(disk).capabilities


def can(disk: Disk, what: Can) -> bool:
    """Whether the disk's template has a capability."""
    return what in able(disk).can


def check_sound(disk: Disk) -> None:
    """Raise `WrongState` if a disk is quarantined."""
    if disk.quarantine:
        raise WrongState(
            f"disk {disk.label} is quarantined: {disk.quarantine}",
            hint=ways_out(disk)
            if disk.unproven
            else f"gnt-disk info {disk.label}; when somebody has looked and it is "
            f"sound: gnt-disk modify --lift-quarantine {disk.label}",
            disk=disk.uuid,
        )


def check_own(disk: Disk) -> None:
    """Raise `WrongState` if nobody knows that a disk's volume is not another's."""
    if disk.unproven:
        raise WrongState(
            f"nobody knows whether volume {disk.volume} is that of disk {disk.label}, "
            "or somebody else's: it is not removed",
            hint=ways_out(disk),
            disk=disk.uuid,
        )


def online(config: Config, group: NodeGroup) -> tuple[Node, ...]:
    """Return the nodes of a group that may run storage commands."""
    return config.hosts(group.uuid)


def some_online(config: Config, group: NodeGroup) -> tuple[Node, ...]:
    """Return the nodes of a group that may do so; raise `WrongState` for none."""
    nodes = online(config, group)
    if not nodes:
        raise WrongState(f"no node of group {group.name} is online")
    return nodes


def group_of(config: Config, disk: Disk) -> NodeGroup:
    """Return the group where the disk is used, or was last."""
    owner = config.owner(disk)
    if owner:
        return config.group_of(owner)
    if disk.group and disk.group in config.objects:
        return config.group(disk.group)
    return only_group(config)


def check_within(config: Config, node: Node, group: str | None) -> None:
    """Raise `BadInput` if a node is not in the group that was named besides."""
    if group and config.group(group).uuid != node.group:
        raise BadInput(
            f"node {node.name} is in node group {config.group(node.group).name}, not "
            f"in {config.group(group).name}",
            hint="leave -g out: the node says it",
        )


def only_group(config: Config) -> NodeGroup:
    """Return the only node group; raise `Refused` if somebody has to choose one."""
    groups = config.named(NodeGroup)
    if len(groups) > 1:
        names = ", ".join(group.name for group in groups)
        raise Refused(f"there are several node groups: {names}", hint="name one: -g")
    return groups[0]


def candidates(config: Config, disk: Disk) -> list[Node]:
    """Return the nodes that may work on a detached disk, best first.

    The node that had it last comes first. Another one of its group does as well where
    the storage is shared; whether it is, only the storage knows (:func:`elsewhere`).
    """
    if able(disk).reach is not Reach.GROUP:
        found = [node for node in holders(config, disk) if not node.offline]
        return sorted(found, key=lambda node: node.uuid != disk.last_node)
    others = online(config, group_of(config, disk))[: TRIED + 1]
    last = config.objects.get(disk.last_node or "")
    if not isinstance(last, Node) or last.offline:
        return list(others[:TRIED])
    return [last, *(node for node in others if node != last)][:TRIED]


def holders(config: Config, disk: Disk) -> list[Node]:
    """Return the nodes that hold the data, of a disk that not every node reaches."""
    return [config.node(uuid) for uuid in disk.nodes if uuid in config.objects]


def elsewhere(disk: Disk, node: Node) -> bool:
    """Whether `node` may see other storage than the disk's own.

    A provider may keep volumes on one node alone: what another node does not find is
    not gone.
    """
    return able(disk).provider and node.uuid != disk.last_node


def ask_candidates(config: Config, disk: Disk) -> Iterator[Question]:
    """Ask the nodes that may work on a detached disk."""
    for node in candidates(config, disk):
        yield providers_on(node.uuid)


def worker(view: View, disk: Disk, *, old: bool = False) -> Node:
    """Return the node that is to work on a detached disk.

    Parameters
    ----------
    old
        Whether a copy that missed what was written last does as well.

    Raises
    ------
    WrongState
        If none answers, or none has a valid provider.
    """
    reasons = []
    for node in candidates(view.config, disk):
        try:
            check_provider(view, disk, node)
            if not old:
                _check_not_behind(disk, node)
        except MoorageError as error:
            reasons.append(error.message)
        else:
            return node
    told = "; ".join(reasons) or _nobody(view.config, disk)
    raise WrongState(
        f"no node can work on disk {disk.label}: {told}",
        hint=f"gnt-storage diagnose; {forgetting(disk)}"
        if able(disk).provider
        else forgetting(disk),
        disk=disk.uuid,
    )


def _check_not_behind(disk: Disk, node: Node) -> None:
    if disk.behind == node.uuid:
        raise WrongState(f"the copy on node {node.name} missed what was written last")


def remover(view: View, disk: Disk, home: Node) -> Node:
    """Return the node that is to destroy the volume of a disk that `home` had.

    It is `home`, unless that is off, or never held the volume; raise `WrongState` if no
    node can.
    """
    gone = home.offline or elsewhere(disk, home)
    return worker(view, disk, old=True) if gone else home


def forgetting(disk: Disk) -> str:
    """Return the way out for a disk whose data is lost."""
    return f"if its data is gone for good: gnt-disk forget --reason WHY {disk.label}"


def _nobody(config: Config, disk: Disk) -> str:
    """Return why no node is even asked."""
    if able(disk).reach is Reach.GROUP:
        return f"no node of group {group_of(config, disk).name} is online"
    told = ", ".join(node.name for node in holders(config, disk))
    return f"its data is on {told}, marked offline" if told else "no node holds it"


def check_provider(view: View, disk: Disk, node: Node) -> Provider | None:
    """Return the disk's provider on `node`; None for a template without one.

    Raise unless the node answered, and has what the disk's template needs.
    """
    found = providers(view, node)
    if not able(disk).provider:
        return None
    return provider_on(node, str(disk.logical_id[0]), found)


def provider_on(node: Node, name: str, found: Iterable[Provider]) -> Provider:
    """Return the provider of a name, of all that a node has found; raise for none."""
    provider = provider_called(name, found)
    if provider is None:
        raise NotFound(
            f"node {node.name} has no ExtStorage provider '{name}'",
            hint="gnt-storage diagnose",
            node=node.name,
            provider=name,
        )
    if provider.problem:
        raise WrongState(
            f"ExtStorage provider '{name}' is not valid on node {node.name}: "
            f"{provider.problem}",
            hint="gnt-storage diagnose",
        )
    return provider


def providers(view: View, node: Node) -> list[Provider]:
    """Return what a node answered to :func:`providers_on`."""
    return view.answer(providers_on(node.uuid)) or []


def ask_reach(config: Config, disks: list[Disk], node: Node) -> Iterator[Question]:
    """Ask a node for what :func:`check_reach` must know."""
    yield providers_on(node.uuid)
    paths = set()
    for disk in disks:
        if template(disk).at_rest(disk):
            paths.add(disk.volume)
    if any(identity.is_adopted(disk) for disk in disks):
        paths |= {disk.volume for disk in identity.adopted(config)}
    if paths:
        yield devices_on(node.uuid, sorted(paths))


def check_reach(view: View, disk: Disk, node: Node) -> None:
    """Raise `Refused` unless the disk can be used on `node`."""
    if able(disk).reach is not Reach.GROUP and node.uuid not in disk.nodes:
        held = ", ".join(view.config.node(uuid).name for uuid in disk.nodes)
        raise WrongState(
            f"disk {disk.label} is on {held or 'no node'}: node {node.name} does not "
            "reach it",
            disk=disk.uuid,
            node=node.name,
        )
    check_used_in(view.config, disk, view.config.group(node.group))
    check_provider(view, disk, node)
    at = template(disk).at_rest(disk)
    if at:
        identity.check_at_rest(view, disk, node, at)
