# SPDX-License-Identifier: BSD-2-Clause
"""The configuration: one immutable snapshot of every object, with its indexes.

The maps are persistent (hash tries): the next snapshot shares all that it did not
touch, so applying a change costs what the change touches, at any size of cluster.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, TypeVar, cast

from rpds import HashTrieMap, HashTrieSet

from moorage.errors import Ambiguous, Conflict, NotFound

from .change import KIND_OF, KINDS, Change
from .objects import DISKLESS, MIXED, Cluster, Disk, Entity, Instance, Node, NodeGroup

E = TypeVar("E", bound=Entity)
Uuids = HashTrieSet[str]
_NONE: Uuids = HashTrieSet()


@dataclass(frozen=True, slots=True)
class Config:
    """A snapshot.

    Attributes
    ----------
    serial_no
        Number of changes since the cluster was made.
    objects
        Every object by its uuid.
    kinds
        Uuids by kind.
    names
        Uuids by (kind, name); only disks may share a name.
    owners
        Uuid of the instance by the uuid of the disk that is attached to it.
    residents
        Uuids of the instances by the uuid of their primary node.
    members
        Uuids of the nodes by the uuid of their group.
    """

    serial_no: int = 0
    objects: HashTrieMap[str, Entity] = field(default_factory=HashTrieMap)
    kinds: HashTrieMap[str, Uuids] = field(default_factory=HashTrieMap)
    names: HashTrieMap[tuple[str, str], Uuids] = field(default_factory=HashTrieMap)
    owners: HashTrieMap[str, str] = field(default_factory=HashTrieMap)
    residents: HashTrieMap[str, Uuids] = field(default_factory=HashTrieMap)
    members: HashTrieMap[str, Uuids] = field(default_factory=HashTrieMap)

    # -- reading ------------------------------------------------------------------

    @property
    def cluster(self) -> Cluster:
        """The cluster's settings."""
        return next(self.all(Cluster))

    def all(self, cls: type[E]) -> Iterator[E]:
        """Yield every object of a class, in no order."""
        for uuid in self.kinds.get(KIND_OF[cls], _NONE):
            yield cast("E", self.objects[uuid])

    def named(self, cls: type[E]) -> list[E]:
        """Return every object of a class, by name."""
        return sorted(self.all(cls), key=_nice_name)

    def count(self, cls: type[Entity]) -> int:
        """Return how many objects of a class there are."""
        return len(self.kinds.get(KIND_OF[cls], _NONE))

    def get(self, cls: type[E], ref: str) -> E:
        """Return the object that `ref` names, by uuid or name.

        Raises
        ------
        NotFound
            If there is none; the hint names close ones.
        Ambiguous
            If several share the name.
        """
        found = self.objects.get(ref)
        if isinstance(found, cls):
            return found
        uuids = self.names.get((KIND_OF[cls], ref), _NONE)
        if len(uuids) > 1:
            raise Ambiguous(
                f"{len(uuids)} disks are named '{ref}'",
                hint="use the uuid: " + " or ".join(sorted(uuids)),
                uuids=sorted(uuids),
            )
        for uuid in uuids:
            return cast("E", self.objects[uuid])
        raise self._unknown(KIND_OF[cls], ref)

    def node(self, ref: str) -> Node:
        """Return a node by name or uuid."""
        return self.get(Node, ref)

    def group(self, ref: str) -> NodeGroup:
        """Return a node group by name or uuid."""
        return self.get(NodeGroup, ref)

    def instance(self, ref: str) -> Instance:
        """Return an instance by name or uuid."""
        return self.get(Instance, ref)

    def disk(self, ref: str) -> Disk:
        """Return a disk by name or uuid."""
        return self.get(Disk, ref)

    def knows(self, cls: type[Entity], ref: str) -> bool:
        """Whether a uuid or name stands for at least one object of the class."""
        found = isinstance(self.objects.get(ref), cls)
        return found or bool(self.names.get((KIND_OF[cls], ref), _NONE))

    def disks_of(self, instance: Instance) -> list[Disk]:
        """Return the attached disks, in the order of their slots."""
        return [cast("Disk", self.objects[uuid]) for uuid in instance.disks]

    def owner(self, disk: Disk) -> Instance | None:
        """Return the instance that a disk is attached to."""
        uuid = self.owners.get(disk.uuid)
        return cast("Instance", self.objects[uuid]) if uuid else None

    def detached(self) -> list[Disk]:
        """Return the disks that belong to no instance."""
        return [disk for disk in self.named(Disk) if disk.uuid not in self.owners]

    def instances_on(self, node: Node) -> list[Instance]:
        """Return the instances whose primary node this is, by name."""
        uuids = self.residents.get(node.uuid, _NONE)
        found = [cast("Instance", self.objects[uuid]) for uuid in uuids]
        return sorted(found, key=_nice_name)

    def nodes_in(self, group: NodeGroup) -> list[Node]:
        """Return the nodes of a group, by name."""
        uuids = self.members.get(group.uuid, _NONE)
        return sorted((cast("Node", self.objects[u]) for u in uuids), key=_nice_name)

    def secondary_nodes(self, instance: Instance) -> list[Node]:
        """Return the nodes that hold a second copy of some disk."""
        held = [node for disk in self.disks_of(instance) for node in disk.nodes]
        others = dict.fromkeys(uuid for uuid in held if uuid != instance.primary_node)
        return [self.node(uuid) for uuid in others]

    def nodes_of(self, instance: Instance) -> list[Node]:
        """Return the primary node, then the secondary ones."""
        return [self.node(instance.primary_node), *self.secondary_nodes(instance)]

    def template_of(self, instance: Instance) -> str:
        """Return what queries show: the one template, ``mixed`` or ``diskless``."""
        templates = {disk.dev_type for disk in self.disks_of(instance)}
        if not templates:
            return DISKLESS
        return templates.pop() if len(templates) == 1 else MIXED

    def _unknown(self, kind: str, ref: str) -> NotFound:
        word = {"nodegroup": "node group"}.get(kind, kind)
        names = [name for known, name in self.names if known == kind]
        close = get_close_matches(ref, names, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else ""
        return NotFound(f"{word} '{ref}' is not known", hint=hint, kind=kind, ref=ref)

    # -- changing -----------------------------------------------------------------

    def apply(self, change: Change) -> "Config":
        """Return the snapshot after `change`.

        Raises
        ------
        Conflict
            If an object is not replaced by its successor, a name is taken, a disk
            has two owners, or a reference would dangle.
        """
        config = replace(self, serial_no=self.serial_no + 1)
        for entity in change.drop:
            config = config._dropped(self._current(entity, entity.serial_no))
        for entity in change.put:
            config = config._put(self.objects.get(entity.uuid), entity)
        for entity in change.put:
            config._check_references(entity)
        for entity in change.drop:
            config._check_orphans(entity)
        return config

    def _current(self, entity: Entity, serial_no: int) -> Entity:
        old = self.objects.get(entity.uuid)
        if old is None or old.serial_no != serial_no:
            raise Conflict(
                f"{_word(entity)} changed meanwhile", hint="look again, then retry"
            )
        return old

    def _dropped(self, old: Entity) -> "Config":
        kind = KIND_OF[type(old)]
        config = replace(
            self,
            objects=self.objects.remove(old.uuid),
            kinds=_without(self.kinds, kind, old.uuid),
        )
        return config._unindexed(old)

    def _put(self, old: Entity | None, new: Entity) -> "Config":
        if old is not None:
            self._succeeds(old, new)
        config = self._unindexed(old) if old is not None else self
        config = replace(
            config,
            objects=config.objects.insert(new.uuid, new),
            kinds=_with(config.kinds, KIND_OF[type(new)], new.uuid),
        )
        return config._indexed(new)

    @staticmethod
    def _succeeds(old: Entity, new: Entity) -> None:
        if new.serial_no != old.serial_no + 1:
            raise Conflict(
                f"{_word(new)} changed meanwhile", hint="look again, then retry"
            )
        if isinstance(new, Disk) and isinstance(old, Disk) and new.epoch < old.epoch:
            raise Conflict(f"the epoch of disk {new.label} would fall")

    def _unindexed(self, old: Entity) -> "Config":
        name = getattr(old, "name", None)
        key = (KIND_OF[type(old)], name or "")
        config = self
        if name:
            config = replace(config, names=_without(config.names, key, old.uuid))
        if isinstance(old, Instance):
            owners = config.owners
            for disk in old.disks:
                owners = owners.discard(disk)
            residents = _without(config.residents, old.primary_node, old.uuid)
            config = replace(config, owners=owners, residents=residents)
        if isinstance(old, Node):
            members = _without(config.members, old.group, old.uuid)
            config = replace(config, members=members)
        return config

    def _indexed(self, new: Entity) -> "Config":
        name = getattr(new, "name", None)
        key = (KIND_OF[type(new)], name or "")
        config = self
        if name:
            if not isinstance(new, Disk) and config.names.get(key, _NONE):
                raise Conflict(f"the name '{name}' is taken")
            config = replace(config, names=_with(config.names, key, new.uuid))
        if isinstance(new, Instance):
            residents = _with(config.residents, new.primary_node, new.uuid)
            owners = config._owners_with(new)
            config = replace(config, residents=residents, owners=owners)
        if isinstance(new, Node):
            members = _with(config.members, new.group, new.uuid)
            config = replace(config, members=members)
        return config

    def _owners_with(self, instance: Instance) -> HashTrieMap[str, str]:
        owners = self.owners
        for disk in instance.disks:
            if disk in owners:
                other = self.objects[owners[disk]]
                raise Conflict(
                    f"disk {disk} is attached to {_word(other)}: "
                    f"it cannot be attached to {_word(instance)} too"
                )
            owners = owners.insert(disk, instance.uuid)
        return owners

    def _check_references(self, entity: Entity) -> None:
        wanted: Iterable[str] = ()
        if isinstance(entity, Instance):
            wanted = (*entity.disks, entity.primary_node)
        elif isinstance(entity, Node):
            wanted = (entity.group,)
        for uuid in wanted:
            if uuid not in self.objects:
                raise Conflict(f"{_word(entity)} refers to {uuid}, which is not there")

    def _check_orphans(self, entity: Entity) -> None:
        used = (
            (isinstance(entity, Disk) and entity.uuid in self.owners)
            or (isinstance(entity, Node) and bool(self.residents.get(entity.uuid)))
            or (isinstance(entity, NodeGroup) and bool(self.members.get(entity.uuid)))
        )
        if used:
            raise Conflict(f"{_word(entity)} is still in use")

    def before(self, change: Change) -> dict[str, Entity]:
        """Return the objects that `change` replaces, as they are now, by uuid."""
        found = ((new.uuid, self.objects.get(new.uuid)) for new in change.put)
        return {uuid: old for uuid, old in found if old is not None}


def load(serial_no: int, entities: Iterable[Entity]) -> Config:
    """Return the snapshot of everything a store holds."""
    order = list(KINDS.values())
    config = Config()
    for entity in sorted(entities, key=lambda entity: order.index(type(entity))):
        config = config._put(None, entity)  # noqa: SLF001
    return replace(config, serial_no=serial_no)


def _word(entity: Entity) -> str:
    name = getattr(entity, "name", None) or entity.uuid
    return f"{KIND_OF[type(entity)]} {name}"


def _nice_name(entity: Any) -> tuple[tuple[int, int | str], ...]:  # noqa: ANN401
    return nice(entity.name or entity.uuid)


def nice(name: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sorting key that puts node2 before node10."""
    parts: list[tuple[int, int | str]] = []
    digits = ""
    for char in [*name, ""]:
        if char.isdecimal():
            digits += char
            continue
        if digits:
            parts.append((0, int(digits)))
            digits = ""
        parts.append((1, char))
    return tuple(parts)


K = TypeVar("K")


def _with(index: HashTrieMap[K, Uuids], key: K, uuid: str) -> HashTrieMap[K, Uuids]:
    return index.insert(key, index.get(key, _NONE).insert(uuid))


def _without(index: HashTrieMap[K, Uuids], key: K, uuid: str) -> HashTrieMap[K, Uuids]:
    left = index.get(key, _NONE).discard(uuid)
    return index.insert(key, left) if left else index.discard(key)
