# SPDX-License-Identifier: BSD-2-Clause
"""Calls of the node agent, and the tasks that are made of them.

Every operation on disks and guests is built of these few tasks; each names its undo.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypedDict, Unpack

from msgspec import to_builtins
from msgspec.structs import replace

from moorage.backend import DEFAULTS
from moorage.disk_templates import FACTS
from moorage.jobs import Ask, Run
from moorage.model import (
    Cluster,
    Config,
    Device,
    Disk,
    GuestState,
    Instance,
    Nic,
    Node,
    NodeFacts,
    Os,
    Provider,
    nicparams,
    pair_of,
)
from moorage.model.uidpool import UidPool
from moorage.protocol import (
    AttachDisk,
    CreateDisk,
    DetachDisk,
    ForgetDisk,
    GetDevices,
    GetFacts,
    GetGuest,
    ListProviders,
    ListSystems,
    NetworkOf,
    NoteDisk,
    OnDisk,
    RemoveDisk,
    UnmakeDisk,
    Verb,
    VerifyDisk,
)
from moorage.protocol.disk import ALONE, EXCLUSIVE
from moorage.storage import Can, Holder
from moorage.storage.templates import template_named
from moorage.storage.templates.ext import metadata, plain
from moorage.units import Mib

from .disk_presets import as_used


def hvparams(config: Config, instance: Instance) -> dict[str, Any]:
    """Return the hypervisor parameters: the cluster's, the OS's, the instance's own."""
    cluster, os = config.cluster, instance.os.partition("+")[0]
    of_os = cluster.os_hvp.get(os, {}).get(instance.hypervisor, {})
    general = cluster.hvparams.get(instance.hypervisor, {})
    return general | of_os | instance.hvparams


def beparams(config: Config, instance: Instance) -> dict[str, Any]:
    """Return the back-end parameters: the cluster's, then the instance's own."""
    own = config.cluster.beparams.get("default", {}) | instance.beparams
    return {**DEFAULTS, **own}


def settings(cluster: Cluster, template: str) -> dict[str, str]:
    """Return the settings that a template needs, by the names of their fields."""
    return {name: str(getattr(cluster, name)) for name in FACTS[template].settings}


class OfDisk(TypedDict):
    """What every verb on a disk is told."""

    disk: Disk
    hypervisor: str
    settings: dict[str, str]
    pool: str
    holders: tuple[Holder, ...]


class OfGuest(TypedDict):
    """What every verb on a guest is told."""

    uuid: str
    name: str
    hypervisor: str


class OfWhole(OfGuest):
    """What a verb is told that needs all that makes up a guest, but for its disks."""

    memory: Mib
    vcpus: int
    hvparams: dict[str, Any]
    nics: tuple[Nic, ...]
    networks: tuple[NetworkOf, ...]
    tags: tuple[str, ...]
    uid_pool: UidPool
    network_port: int


def of_disk(config: Config, disk: Disk) -> OfDisk:
    """Return what every verb on a disk is told."""
    cluster, owner = config.cluster, config.owner(disk)
    return {
        "disk": as_used(config, disk),
        "hypervisor": owner.hypervisor if owner else cluster.enabled_hypervisors[0],
        "settings": settings(cluster, disk.dev_type),
        "pool": config.pool(disk.pool).name if disk.pool else "",
        "holders": holders(config, disk),
    }


def holders(config: Config, disk: Disk) -> tuple[Holder, ...]:
    """Return the nodes that keep a mirrored disk; none of any other."""
    pair = pair_of(disk)
    nodes = map(config.node, pair.nodes) if pair else ()
    return tuple(Holder(one.name, one.secondary_ip, one.offline) for one in nodes)


def of_guest(instance: Instance) -> OfGuest:
    """Return what every verb on a guest is told."""
    return {
        "uuid": instance.uuid,
        "name": instance.name,
        "hypervisor": instance.hypervisor,
    }


def of_whole(config: Config, instance: Instance, node: Node | None = None) -> OfWhole:
    """Return what makes up a guest but for its disks, on its own or another node."""
    backend = beparams(config, instance)
    return {
        **of_guest(instance),
        "memory": backend["maxmem"],
        "vcpus": backend["vcpus"],
        "hvparams": hvparams(config, instance),
        "nics": tuple(wired(config, instance, nic, node) for nic in instance.nics),
        "networks": networks(config, instance.nics),
        "tags": instance.tags,
        "uid_pool": config.cluster.uid_pool,
        "network_port": instance.network_port or 0,
    }


def wired(
    config: Config, instance: Instance, nic: Nic, node: Node | None = None
) -> Nic:
    """Return a card with all its parameters, as they are on a node."""
    home = node or config.home(instance)
    params = nicparams.filled(config.cluster, config.group(home.group), nic)
    return replace(nic, nicparams=to_builtins(params))


def networks(config: Config, nics: Iterable[Nic]) -> tuple[NetworkOf, ...]:
    """Return what a node is told of the networks that cards are in."""
    found = map(config.network, dict.fromkeys(n.network for n in nics if n.network))
    names = NetworkOf.__struct_fields__
    return tuple(NetworkOf(**{n: getattr(one, n) for n in names}) for one in found)


def guest_on(node: str, instance: Instance) -> Ask[GuestState | None]:
    """Ask a node for one guest: its state, or None."""
    return Ask(node, GetGuest(uuid=instance.uuid))


def facts_on(node: Node) -> Ask[NodeFacts]:
    """Ask a node for all that it knows of itself."""
    return Ask(node.uuid, GetFacts())


def on_each(
    config: Config, names: Iterable[str], what: str, do: Verb[Any]
) -> Iterator[Run]:
    """Yield a task for each of some nodes, in turn; one that fails stops no other."""
    for name in names:
        node = config.node(name)
        yield Run(what=f"{what} on {node.name}", node=node.uuid, do=do, tolerant=True)


def providers_on(node: str) -> Ask[list[Provider]]:
    """Ask a node for its ExtStorage providers."""
    return Ask(node, ListProviders())


def oses_on(node: str) -> Ask[list[Os]]:
    """Ask a node for its OS definitions."""
    return Ask(node, ListSystems())


def devices_on(node: str, paths: Iterable[str]) -> Ask[list[Device]]:
    """Ask a node what there is at the paths of devices and files."""
    return Ask(node, GetDevices(paths=tuple(paths)))


class How(TypedDict, total=False):
    """How a task is done: see :class:`moorage.jobs.Run`."""

    final: bool
    tolerant: bool
    patient: bool
    spoils: bool
    lasting: bool
    hint: str


def on_disk(
    config: Config,
    disk: Disk,
    node: Node,
    what: str,
    do: type[OnDisk[Any]],
    undo: type[OnDisk[Any]] | None = None,
    **how: Unpack[How],
) -> Run:
    """Return a task with a disk on a node; `what` is read before the word ``disk``."""
    told = of_disk(config, disk)
    return Run(
        what=f"{what} disk {disk.label} on {node.name}",
        node=node.uuid,
        do=do(**told),
        undo=undo(**told) if undo else None,
        **how,
    )


def verify(config: Config, disk: Disk, node: Node) -> list[Run]:
    """Return the task in which the storage looks at a disk's parameters, if it does.

    It changes nothing. It belongs before the first task that does.
    """
    if Can.VERIFY not in template_named(disk.dev_type).capabilities.can:
        return []
    return [on_disk(config, disk, node, "verify the parameters of", VerifyDisk)]


def create(config: Config, disk: Disk, node: Node) -> Run:
    """Make the volume; undone by removing it, if the node made it.

    One that is there already is shown to its provider, and never taken back.
    """
    if disk.was_there:
        return on_disk(config, disk, node, "take over", CreateDisk, lasting=True)
    verbs = CreateDisk, UnmakeDisk
    return on_disk(config, disk, node, "create", *verbs, lasting=True)


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
    told = of_disk(config, disk)
    return Run(
        what=f"attach disk {disk.label} on {node.name}",
        node=node.uuid,
        do=AttachDisk(**told, opened=opened, ignore_size=ignore_size),
        undo=None if held else DetachDisk(**told),
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

    If the node did not hold it, this is a precaution, and there is nothing to undo.
    """
    told = of_disk(config, disk)
    again = AttachDisk(**told, opened=ALONE, ignore_size=True)
    return Run(
        what=f"detach disk {disk.label} on {node.name}",
        node=node.uuid,
        do=DetachDisk(**told),
        undo=None if tolerant or not held else again,
        tolerant=tolerant,
    )


def let_go(config: Config, disk: Disk, node: Node) -> Run:
    """Detach what nobody needs any more on a node: there is no way back.

    A guest that was stopped is not started again because its storage cannot be
    stopped. The node holds the disk then, until the next start takes it up.
    """
    how = How(tolerant=True, final=True)
    return on_disk(config, disk, node, "detach", DetachDisk, **how)


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
        do=RemoveDisk(**of_disk(config, disk), sought=sought),
        final=True,
        tolerant=tolerant,
        spoils=True,
        hint=hint,
    )


def forget(config: Config, disk: Disk, node: Node) -> Run:
    """Let a node forget a disk that it holds, whatever its storage says."""
    return on_disk(config, disk, node, "forget", ForgetDisk, tolerant=True)


def setinfo(
    config: Config, disk: Disk, node: Node, owner: str = "", *, label: str = ""
) -> Run:
    """Leave a note beside the volume: whose it is; nobody fails for its lack.

    Without an owner, the instance's name, it is the disk's own label, or another one.
    """
    text = metadata(owner) if owner else plain(f"disk+{label or disk.label}")
    return Run(
        what=f"note the owner of disk {disk.label} on {node.name}",
        node=node.uuid,
        do=NoteDisk(**of_disk(config, disk), text=text),
        tolerant=True,
    )
