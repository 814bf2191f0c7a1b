# SPDX-License-Identifier: BSD-2-Clause
"""From one snapshot to the next: objects in and out, indexes kept, rules held.

The rules that no commit can break: an object is replaced only by its successor; a name
stands for one object of its kind; a disk has at most one owner; an epoch never falls;
no two disks share a port or a node's minor; no reference dangles; a disk of a storage
pool, and an instance with a card in a network, is in a node group that the pool or the
network is connected to; an address of a network is of one card. Disks that shared a
name before this was a rule may keep it.
"""

from __future__ import annotations  # rpds types take no subscript at run time

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar, cast

from rpds import HashTrieMap

from moorage.errors import Conflict

from .change import KIND_OF, KINDS, Change
from .config import MACHINES, NO_UUIDS, WORDS, Config, Uuids
from .hostnames import beginnings
from .networks import MAC, addresses
from .objects import Disk, Entity, Instance, Network, Node, NodeGroup, StoragePool
from .pair import pair_of

K = TypeVar("K")


def load(serial_no: int, entities: Iterable[Entity]) -> Config:
    """Return the snapshot of everything a store holds.

    Raises
    ------
    Conflict
        If a rule is broken.
    """
    config, broken = assembled(entities)
    for error in broken:
        raise error
    return replace(config, serial_no=serial_no)


def assembled(entities: Iterable[Entity]) -> tuple[Config, list[Conflict]]:
    """Return the snapshot of as much as fits together, and the rules that are broken.

    References to what is not there stay in it.
    """
    order = list(KINDS.values())
    config = Config()
    broken: list[Conflict] = []
    found = sorted(entities, key=lambda entity: order.index(type(entity)))
    for entity in found:
        try:
            config = _put(config, entity)
        except Conflict as error:
            broken.append(error)
    for entity in found:
        try:
            _check_references(config, entity)
        except Conflict as error:
            broken.append(error)
    return config, broken


def apply(config: Config, change: Change) -> Config:
    """Return the snapshot after `change`.

    Raises
    ------
    Conflict
        If a rule would be broken.
    """
    new = replace(config, serial_no=config.serial_no + 1)
    for entity in change.drop:
        new = _dropped(new, entity)
    for entity in change.put:
        new = _put(new, entity)
    for entity in change.put:
        _check_references(new, entity)
        _check_name(new, entity, config.objects.get(entity.uuid))
    for entity in change.drop:
        _check_unused(new, entity)
    return new


def _dropped(config: Config, entity: Entity) -> Config:
    old = config.objects.get(entity.uuid)
    if old is None or old.serial_no != entity.serial_no:
        raise _moved(entity)
    config = replace(
        config,
        objects=config.objects.remove(old.uuid),
        kinds=_without(config.kinds, KIND_OF[type(old)], old.uuid),
    )
    return _unindexed(config, old)


def _put(config: Config, new: Entity) -> Config:
    old = config.objects.get(new.uuid)
    if old is not None:
        _check_succeeds(old, new)
        config = _unindexed(config, old)
    config = replace(
        config,
        objects=config.objects.insert(new.uuid, new),
        kinds=_with(config.kinds, KIND_OF[type(new)], new.uuid),
    )
    return _indexed(config, new)


def _unindexed(config: Config, old: Entity) -> Config:
    name = getattr(old, "name", None)
    if name:
        names = _without(config.names, (KIND_OF[type(old)], name), old.uuid)
        config = replace(config, names=names)
    if isinstance(old, MACHINES):
        shorts = config.shorts
        for short in _shorts(old):
            shorts = _without(shorts, short, old.name)
        config = replace(config, shorts=shorts)
    if isinstance(old, Instance):
        owners = config.owners
        for disk in old.disks:
            owners = owners.discard(disk)
        residents = _without(config.residents, old.primary_node, old.uuid)
        config = replace(config, owners=owners, residents=residents)
        config = _off_networks(config, old)
    if isinstance(old, Node):
        members = _without(config.members, old.group, old.uuid)
        config = replace(config, members=members)
    if isinstance(old, Disk) and old.pool:
        pooled = _without(config.pooled, old.pool, old.uuid)
        config = replace(config, pooled=pooled)
    return _unpaired(config, old) if isinstance(old, Disk) else config


def _indexed(config: Config, new: Entity) -> Config:
    name = getattr(new, "name", None)
    if name:
        key = (KIND_OF[type(new)], name)
        if not isinstance(new, Disk) and config.names.get(key, NO_UUIDS):
            raise Conflict(f"the name '{name}' is taken", name=name)
        config = replace(config, names=_with(config.names, key, new.uuid))
    if isinstance(new, MACHINES):
        shorts = config.shorts
        for short in _shorts(new):
            shorts = _with(shorts, short, new.name)
        config = replace(config, shorts=shorts)
    if isinstance(new, Instance):
        residents = _with(config.residents, new.primary_node, new.uuid)
        config = replace(config, residents=residents, owners=_owners(config, new))
        config = _on_networks(config, new)
    if isinstance(new, Node):
        members = _with(config.members, new.group, new.uuid)
        config = replace(config, members=members)
    if isinstance(new, Disk) and new.pool:
        config = replace(config, pooled=_with(config.pooled, new.pool, new.uuid))
    return _paired(config, new) if isinstance(new, Disk) else config


def _shorts(machine: Instance | Node) -> list[tuple[str, str]]:
    kind = KIND_OF[type(machine)]
    return [(kind, short) for short in beginnings(machine.name)]


def _on_networks(config: Config, new: Instance) -> Config:
    found, networked = config.addresses, config.networked
    for one in addresses(new):
        if one[0] != MAC and found.get(one):
            raise Conflict(
                f"{_word(new)} would have {one[1]}, which another card has in its "
                "network",
                address=one[1],
            )
        found = _with(found, one, new.uuid)
    for nic in new.nics:
        if nic.network:
            networked = _with(networked, nic.network, new.uuid)
    return replace(config, addresses=found, networked=networked)


def _off_networks(config: Config, old: Instance) -> Config:
    found, networked = config.addresses, config.networked
    for one in addresses(old):
        found = _without(found, one, old.uuid)
    for nic in old.nics:
        if nic.network:
            networked = _without(networked, nic.network, old.uuid)
    return replace(config, addresses=found, networked=networked)


def _paired(config: Config, disk: Disk) -> Config:
    pair = pair_of(disk)
    if pair is None:
        return config
    mirrors, holdings = config.mirrors, config.holdings
    for one in pair.reserved():
        if one in mirrors:
            what = f"minor {one[1]} of node {one[0]}" if one[0] else f"port {one[1]}"
            other = _word(config.objects[mirrors[one]])
            raise Conflict(
                f"{_word(disk)} and {other} would share {what}", disk=disk.uuid
            )
        mirrors = mirrors.insert(one, disk.uuid)
    for node in pair.nodes:
        holdings = _with(holdings, node, disk.uuid)
    return replace(config, mirrors=mirrors, holdings=holdings)


def _unpaired(config: Config, disk: Disk) -> Config:
    pair = pair_of(disk)
    if pair is None:
        return config
    mirrors, holdings = config.mirrors, config.holdings
    for one in pair.reserved():
        mirrors = mirrors.discard(one)
    for node in pair.nodes:
        holdings = _without(holdings, node, disk.uuid)
    return replace(config, mirrors=mirrors, holdings=holdings)


def _owners(config: Config, instance: Instance) -> HashTrieMap[str, str]:
    owners = config.owners
    for disk in instance.disks:
        if disk in owners:
            raise Conflict(
                f"disk {disk} is attached to {_word(config.objects[owners[disk]])}: "
                f"it cannot be attached to {_word(instance)} too",
                disk=disk,
            )
        owners = owners.insert(disk, instance.uuid)
    return owners


def _check_succeeds(old: Entity, new: Entity) -> None:
    if new.serial_no != old.serial_no + 1:
        raise _moved(new)
    if isinstance(new, Disk) and isinstance(old, Disk) and new.epoch < old.epoch:
        raise Conflict(f"the epoch of disk {new.label} would fall", disk=new.uuid)


def _check_references(config: Config, entity: Entity) -> None:
    wanted: Iterable[str] = ()
    if isinstance(entity, Instance):
        networks = (nic.network for nic in entity.nics if nic.network)
        wanted = (*entity.disks, entity.primary_node, *networks)
    elif isinstance(entity, Node):
        wanted = (entity.group,)
    elif isinstance(entity, NodeGroup):
        wanted = entity.networks
    elif isinstance(entity, StoragePool):
        wanted = entity.groups
    elif isinstance(entity, Disk):
        pair = pair_of(entity)
        pool = (entity.pool,) if entity.pool else ()
        wanted = (*pool, *(pair.nodes if pair else ()))
    for uuid in wanted:
        if uuid not in config.objects:
            raise Conflict(f"{_word(entity)} refers to {uuid}, which is not there")
    _check_connected(config, entity)
    _check_networks(config, entity)


def _check_networks(config: Config, entity: Entity) -> None:
    """Raise `Conflict` for a card where its network is not connected."""
    if isinstance(entity, Instance):
        found = [entity]
    elif isinstance(entity, Node):
        found = config.instances_on(entity) if config.networked else []
    elif isinstance(entity, NodeGroup):
        away = [uuid for uuid in config.networked if uuid not in entity.networks]
        uuids = (one for uuid in away for one in config.networked[uuid])
        all_of_them = (cast("Instance", config.objects[uuid]) for uuid in uuids)
        found = [one for one in all_of_them if config.group_of(one) == entity]
    else:
        return
    for instance in found:
        networks = [nic.network for nic in instance.nics if nic.network]
        there = config.group_of(instance).networks if networks else {}
        if any(uuid not in there for uuid in networks):
            raise Conflict(
                f"{_word(instance)} would be where the network of a card is not "
                "connected"
            )


def _check_connected(config: Config, entity: Entity) -> None:
    """Raise `Conflict` for a disk in a node group that its pool does not serve."""
    if isinstance(entity, Disk):
        pool, disks = config.pool_of(entity), [entity]
    elif isinstance(entity, StoragePool):
        pool, disks = entity, config.disks_in(entity)
    else:
        return
    for disk in disks:
        if pool and disk.group and disk.group not in pool.groups:
            raise Conflict(
                f"{_word(disk)} would be used where {_word(pool)} is not connected"
            )


def _check_name(config: Config, new: Entity, old: Entity | None) -> None:
    """Raise `Conflict` if a disk takes a name that another one bears."""
    if not isinstance(new, Disk) or not new.name:
        return
    kept = isinstance(old, Disk) and old.name == new.name
    if not kept and len(config.called(Disk, new.name)) > 1:
        raise Conflict(f"the name '{new.name}' is taken", name=new.name)


def _check_unused(config: Config, entity: Entity) -> None:
    if (
        entity.uuid in config.owners
        or config.residents.get(entity.uuid)
        or config.holdings.get(entity.uuid)
        or config.pooled.get(entity.uuid)
        or config.networked.get(entity.uuid)
        or (isinstance(entity, NodeGroup) and _serves(config, entity))
        or (isinstance(entity, Network) and _is_connected(config, entity))
    ):
        raise Conflict(f"{_word(entity)} is still in use")


def _serves(config: Config, group: NodeGroup) -> bool:
    """Whether a group has nodes, or a storage pool is connected to it."""
    pools = config.all(StoragePool)
    members = bool(config.members.get(group.uuid))
    return members or any(group.uuid in pool.groups for pool in pools)


def _is_connected(config: Config, network: Network) -> bool:
    return any(network.uuid in group.networks for group in config.all(NodeGroup))


def _moved(entity: Entity) -> Conflict:
    return Conflict(f"{_word(entity)} changed meanwhile", hint="look again, then retry")


def _word(entity: Entity) -> str:
    name = getattr(entity, "name", None) or entity.uuid
    kind = KIND_OF[type(entity)]
    return f"{WORDS.get(kind, kind)} {name}"


def _with(index: HashTrieMap[K, Uuids], key: K, uuid: str) -> HashTrieMap[K, Uuids]:
    return index.insert(key, index.get(key, NO_UUIDS).insert(uuid))


def _without(index: HashTrieMap[K, Uuids], key: K, uuid: str) -> HashTrieMap[K, Uuids]:
    left = index.get(key, NO_UUIDS).discard(uuid)
    return index.insert(key, left) if left else index.discard(key)
