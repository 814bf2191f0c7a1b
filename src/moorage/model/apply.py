# SPDX-License-Identifier: BSD-2-Clause
"""From one snapshot to the next: objects in and out, indexes kept, rules held.

The rules that no commit can break: an object is replaced only by its successor; a name
stands for one object of its kind, that of a disk for one of its instance's, or for one
of those that belong to none; where storage may know volumes by name, one name is one
volume; a disk has at most one owner; an epoch never falls; no two disks share a port or
a node's minor; no reference dangles; a disk of a storage pool, and an instance with a
card in a network, is in a node group that the pool or the network is connected to; an
address of a network is of one card. What broke a rule on names before it was one may go
on so.
"""

from __future__ import annotations  # rpds types take no subscript at run time

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar, cast

from rpds import HashTrieMap

from moorage.errors import Conflict, NotFound

from .change import KIND_OF, KINDS, Change
from .config import MACHINES, NO_UUIDS, WORDS, Config, Uuids
from .hostnames import beginnings
from .networks import MAC, addresses
from .objects import (
    Cluster,
    Disk,
    Entity,
    Instance,
    Network,
    Node,
    NodeGroup,
    StoragePool,
)
from .ordered import Ordered
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
    disks = [one.uuid for one in found if isinstance(one, Disk)]
    config = replace(config, unowned=_unowned(Config(), config, disks))
    for entity in found:
        try:
            _check_references(config, entity)
        except Conflict as error:
            broken.append(error)
        except NotFound as missing:  # what it refers to refers to what is not there
            broken.append(Conflict(f"{_word(entity)}: {missing.message}"))
    return config, broken


def headless(config: Config) -> str:
    """Return why nobody can lead a configuration; empty if its master can."""
    clusters = list(config.all(Cluster))
    if len(clusters) != 1:
        return f"there are {len(clusters)} records of the cluster, and not one"
    master = clusters[0].master_node
    there = master in config.objects
    return "" if there else f"the master's node {master} is not there"


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
    disks = _touched(config, change)
    new = replace(new, unowned=_unowned(config, new, disks))
    for uuid in disks:
        _check_names(config, new, uuid)
    for entity in change.put:
        _check_references(new, entity)
    for entity in change.drop:
        _check_unused(new, entity)
    new.lists.update(_in_order(config, change))
    if not any(isinstance(one, Node) for one in (*change.put, *change.drop)):
        new.hosting.update(config.hosting)
    return new


def _in_order(
    old: Config, change: Change
) -> Iterator[tuple[type[Entity], Ordered[Any]]]:
    """Yield the objects by name of each class of which that was known before."""
    before, after = old.before(change), {one.uuid: one for one in change.put}
    for cls, known in tuple(old.lists.items()):  # other threads may want more
        rows = known
        for gone in (one for one in before.values() if isinstance(one, cls)):
            rows = rows.without(gone)
        for new in (one for one in after.values() if isinstance(one, cls)):
            rows = rows.having(new)
        yield cls, rows


def _dropped(config: Config, entity: Entity) -> Config:
    old = config.objects.get(entity.uuid)
    if old is None or old.serial_no != entity.serial_no:
        raise _moved(entity)
    return _unindexed(replace(config, objects=config.objects.remove(old.uuid)), old)


def _put(config: Config, new: Entity) -> Config:
    old = config.objects.get(new.uuid)
    if old is not None:
        _check_succeeds(old, new)
        config = _unindexed(config, old)
    return _indexed(replace(config, objects=config.objects.insert(new.uuid, new)), new)


def _places(entity: Entity) -> Iterator[tuple[str, Any]]:
    """Yield where an object stands in indexes: the name of each, and the key there."""
    kind, name = KIND_OF[type(entity)], getattr(entity, "name", None)
    yield "kinds", kind
    if name:
        yield "names", (kind, name)
    if isinstance(entity, MACHINES):
        yield from (("shorts", (kind, short)) for short in beginnings(entity.name))
    if isinstance(entity, Node):
        yield "members", entity.group
    elif isinstance(entity, Instance):
        yield "residents", entity.primary_node
        yield from (("owners", disk) for disk in entity.disks)
        yield from (("addresses", one) for one in addresses(entity))
        yield from (("networked", nic.network) for nic in entity.nics if nic.network)
    elif isinstance(entity, Disk):
        yield from _places_of(entity)


def _places_of(disk: Disk) -> Iterator[tuple[str, Any]]:
    if disk.pool:
        yield "pooled", disk.pool
    yield from (("soles", name) for name in disk.sole_names)
    pair = pair_of(disk)
    if pair:
        yield from (("mirrors", one) for one in pair.reserved())
        yield from (("holdings", node) for node in pair.nodes)


_OF_ONE = frozenset({"owners", "mirrors"})
"""Indexes with one object below each key; the others have a set."""


def _unindexed(config: Config, old: Entity) -> Config:
    news: dict[str, Any] = {}
    for name, key in _places(old):
        index = news.get(name, getattr(config, name))
        alone = name in _OF_ONE
        news[name] = index.discard(key) if alone else _without(index, key, old.uuid)
    return replace(config, **news)


def _indexed(config: Config, new: Entity) -> Config:
    news: dict[str, Any] = {}
    for name, key in _places(new):
        index = news.get(name, getattr(config, name))
        if index.get(key):
            _check_shared(config, new, (name, key), index[key])
        alone = name in _OF_ONE
        news[name] = (
            index.insert(key, new.uuid) if alone else _with(index, key, new.uuid)
        )
    return replace(config, **news)


def _check_shared(
    config: Config, new: Entity, place: tuple[str, Any], holder: object
) -> None:
    """Raise `Conflict` for what an object cannot have beside who has it already."""
    index, key = place
    if index == "names" and not isinstance(new, Disk):
        raise Conflict(f"the name '{key[1]}' is taken", name=key[1])
    if index == "addresses" and key[0] != MAC:
        raise Conflict(
            f"{_word(new)} would have {key[1]}, which another card has in its network",
            address=key[1],
        )
    if index == "owners":
        raise Conflict(
            f"disk {key} is attached to {_word(config.objects[str(holder)])}: "
            f"it cannot be attached to {_word(new)} too",
            disk=key,
        )
    if index == "mirrors":
        what = f"minor {key[1]} of node {key[0]}" if key[0] else f"port {key[1]}"
        other = _word(config.objects[str(holder)])
        raise Conflict(f"{_word(new)} and {other} would share {what}", disk=new.uuid)


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


def _touched(config: Config, change: Change) -> list[str]:
    """Return the uuids of the disks that change, or come to an instance, or go."""
    found = {one.uuid for one in (*change.put, *change.drop) if isinstance(one, Disk)}
    old = [*config.before(change).values()]
    had = {uuid for one in old if isinstance(one, Instance) for uuid in one.disks}
    new = (one for one in change.put if isinstance(one, Instance))
    has = {uuid for one in new for uuid in one.disks}
    return sorted(found | (had ^ has))


def _unowned(
    before: Config, after: Config, disks: Iterable[str]
) -> HashTrieMap[str, Uuids]:
    """Return the disks that belong to no instance, by name, after some changed."""
    index = before.unowned
    for uuid in disks:
        old, new = before.objects.get(uuid), after.objects.get(uuid)
        if isinstance(old, Disk) and old.name and uuid not in before.owners:
            index = _without(index, old.name, uuid)
        if isinstance(new, Disk) and new.name and uuid not in after.owners:
            index = _with(index, new.name, uuid)
    return index


def _check_names(before: Config, after: Config, uuid: str) -> None:
    """Raise `Conflict` if a disk comes to be called as another one is."""
    old, new = before.objects.get(uuid), after.objects.get(uuid)
    if not isinstance(new, Disk):
        return
    was = old if isinstance(old, Disk) else None
    moved = before.owners.get(uuid) != after.owners.get(uuid)
    name = new.name or ""
    given = was is None or was.name != name
    if name and (given or moved):
        _check_alone(name, after.beside(name, after.owner(new)) - {uuid})
    if name and given and new.by_name and new.cname is None:
        _check_alone(name, _volumes(after, name) - {uuid})


def _volumes(config: Config, name: str) -> set[str]:
    """Return the uuids of the disks whose storage may know them by a name."""
    found = (config.objects[uuid] for uuid in config.soles.get(name, NO_UUIDS))
    return {one.uuid for one in found if isinstance(one, Disk) and one.known_as == name}


def _check_alone(name: str, others: set[str]) -> None:
    if others:
        raise Conflict(f"the name '{name}' is taken", name=name)


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
