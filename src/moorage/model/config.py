# SPDX-License-Identifier: BSD-2-Clause
"""The configuration: one immutable snapshot of every object, with its indexes.

The maps are persistent (hash tries): the next snapshot shares all that it did not
touch, so applying a change costs what the change touches, at any size of cluster.
"""

from __future__ import annotations  # rpds types take no subscript at run time

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar, cast

from rpds import HashTrieMap, HashTrieSet

from moorage.errors import Ambiguous, NotFound

from .change import KIND_OF, Change
from .hostnames import alike, lowered, slips
from .networks import Address
from .objects import (
    DISKLESS,
    MIXED,
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
from .pair import Reserved

E = TypeVar("E", bound=Entity)
K = TypeVar("K")
T = TypeVar("T")
Uuids: TypeAlias = "HashTrieSet[str]"
MACHINES = (Instance, Node)
"""What goes by the first part of its name, too."""
NO_UUIDS: Uuids = HashTrieSet()
WORDS = {"nodegroup": "node group", "pool": "storage pool"}
"""What people call a kind of object, where it is not the kind's name."""
LISTED_BY = {
    "nodegroup": "gnt-group list",
    "pool": "gnt-storage pool list",
    "node": "gnt-node list",
    "instance": "gnt-instance list",
    "disk": "gnt-disk list",
    "network": "gnt-network list",
}
"""What shows the names of a kind of object."""
_TOLD = 20
"""Disks of one name that a refusal names."""
_FEW = 200
"""Names that a mistyped one is compared with, each of them."""
_LONGEST = 64
"""Characters of a name that is looked for among many."""
_PARTS = re.compile(r"\d+|\D+")


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
        Uuids by (kind, name); only disks share one.
    shorts
        Uuids of machines by (kind, what comes before one of their names' dots).
    owners
        Uuid of the instance by the uuid of the disk that is attached to it.
    residents
        Uuids of the instances by the uuid of their primary node.
    members
        Uuids of the nodes by the uuid of their group.
    pooled
        Uuids of the disks by the uuid of their storage pool.
    mirrors
        Uuids of the disks by each port and each minor of a node that is theirs.
    holdings
        Uuids of the disks that a node keeps a copy of, by its uuid.
    addresses
        Uuids of the instances by each address of their cards; in a network each
        address is of one card.
    networked
        Uuids of the instances by the uuid of each network that a card of theirs is in.
    unowned
        Uuids of the disks that belong to no instance, by their name.
    soles
        Uuids of the disks whose storage may know them by name, by their names and by
        what their volumes were made as.
    lists
        The objects of classes that somebody wanted by name, in that order.
    hosting
        The nodes that run instances, of each group that somebody wanted and of all;
        snapshots share them as long as no node changes.
    derived
        What somebody worked out from the snapshot: see :meth:`follows`.
    """

    serial_no: int = 0
    objects: HashTrieMap[str, Entity] = field(default_factory=HashTrieMap)
    kinds: HashTrieMap[str, Uuids] = field(default_factory=HashTrieMap)
    names: HashTrieMap[tuple[str, str], Uuids] = field(default_factory=HashTrieMap)
    shorts: HashTrieMap[tuple[str, str], Uuids] = field(default_factory=HashTrieMap)
    owners: HashTrieMap[str, str] = field(default_factory=HashTrieMap)
    residents: HashTrieMap[str, Uuids] = field(default_factory=HashTrieMap)
    members: HashTrieMap[str, Uuids] = field(default_factory=HashTrieMap)
    pooled: HashTrieMap[str, Uuids] = field(default_factory=HashTrieMap)
    mirrors: HashTrieMap[Reserved, str] = field(default_factory=HashTrieMap)
    holdings: HashTrieMap[str, Uuids] = field(default_factory=HashTrieMap)
    addresses: HashTrieMap[Address, Uuids] = field(default_factory=HashTrieMap)
    networked: HashTrieMap[str, Uuids] = field(default_factory=HashTrieMap)
    unowned: HashTrieMap[str, Uuids] = field(default_factory=HashTrieMap)
    soles: HashTrieMap[str, Uuids] = field(default_factory=HashTrieMap)
    lists: dict[type[Entity], Ordered[Any]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    hosting: dict[tuple[str, bool], tuple[Node, ...]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    derived: dict[tuple[object, object], Any] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @property
    def cluster(self) -> Cluster:
        """The cluster's settings."""
        return next(self.all(Cluster))

    def follows(self, work_out: Callable[[Config, K], T], key: K) -> T:
        """Return what follows from this snapshot alone; it is worked out once.

        It must not hold the snapshot: that would be there until somebody looks for
        cyclic garbage.
        """
        known = self.derived
        if (work_out, key) not in known:
            known[work_out, key] = work_out(self, key)
        return cast("T", known[work_out, key])

    def all(self, cls: type[E]) -> Iterator[E]:
        """Yield every object of a class, in no order."""
        for uuid in self.kinds.get(KIND_OF[cls], NO_UUIDS):
            yield cast("E", self.objects[uuid])

    def named(self, cls: type[E]) -> list[E]:
        """Return every object of a class, by name."""
        if cls not in self.lists:
            rows = sorted(self.all(cls), key=by_name)
            self.lists[cls] = Ordered(rows, by_name)
        return list(self.lists[cls])

    def online(self) -> list[Node]:
        """Return the nodes that nobody has marked offline, by name."""
        return [node for node in self.named(Node) if not node.offline]

    def hosts(self, group: str = "", *, drained: bool = True) -> tuple[Node, ...]:
        """Return the nodes that run instances, by name.

        It is the same tuple until a node changes.

        Parameters
        ----------
        group
            Uuid of the group that they are of; of all groups, if not given.
        drained
            Whether those are among them that get no more instances.
        """
        key = group, drained
        if key not in self.hosting:
            found = (node for node in self.named(Node) if node.is_host)
            in_it = (node for node in found if group in ("", node.group))
            self.hosting[key] = tuple(n for n in in_it if drained or not n.drained)
        return self.hosting[key]

    def count(self, cls: type[Entity]) -> int:
        """Return how many objects of a class there are."""
        return len(self.kinds.get(KIND_OF[cls], NO_UUIDS))

    def get(self, cls: type[E], ref: str) -> E:
        """Return the object that `ref` names, by uuid or name.

        A machine goes by the first part of its name, too, and has no letter case. An
        attached disk goes by ``INSTANCE/NAME``, too.

        Raises
        ------
        NotFound
            If there is none; the hint names close ones.
        Ambiguous
            If several share the name, or are called so for short.
        """
        found = self.objects.get(ref)
        if isinstance(found, cls):
            return found
        ref = self.full_name(cls, ref)
        named = self.called(cls, ref)
        if not named:
            raise self._unknown(KIND_OF[cls], ref)
        if len(named) > 1:
            raise self.ambiguous(ref, cast("list[Disk]", named))
        return named[0]

    def ambiguous(self, ref: str, disks: Sequence[Disk]) -> Ambiguous:
        """Return the refusal of a name that several disks share, with a word for each.

        The word is ``INSTANCE/NAME`` where that means the disk alone, or its uuid.
        """
        words = sorted(map(self.word_for, disks))
        more = [f"{len(words) - _TOLD} others"] if len(words) > _TOLD else []
        return Ambiguous(
            f"{len(disks)} disks are named '{ref}'",
            hint="say which: " + " or ".join([*words[:_TOLD], *more]),
            uuids=sorted(disk.uuid for disk in disks),
        )

    def word_for(self, disk: Disk) -> str:
        """Return what means a disk and no other one, in the next command.

        It is its name if no other disk is named so, or ``INSTANCE/NAME``, or its uuid.
        """
        if disk.name and not self.shares_name(disk):
            return disk.name
        owner = self.owner(disk)
        word = f"{owner.name}/{disk.name}" if owner else ""
        return word if word and self.called(Disk, word) == [disk] else disk.uuid

    def shares_name(self, disk: Disk) -> bool:
        """Whether another disk bears the name of a disk that has one."""
        return len(self.names.get((KIND_OF[Disk], disk.name or ""), NO_UUIDS)) > 1

    def full_name(self, cls: type[Entity], word: str) -> str:
        """Return the name of the machine that a word stands for; the word, if none.

        Raises
        ------
        Ambiguous
            If several are called so for short.
        """
        kind = KIND_OF[cls]
        if cls not in MACHINES or (kind, word) in self.names:
            return word
        low = lowered(word)
        if (kind, low) in self.names:
            return low
        uuids = self.shorts.get((kind, low), NO_UUIDS)
        found = sorted(cast("Instance", self.objects[uuid]).name for uuid in uuids)
        if len(found) > 1:
            raise Ambiguous(
                f"{len(found)} {kind}s are called '{word}' for short",
                hint="use the whole name: " + " or ".join(found[:3]),
            )
        return found[0] if found else word

    def called(self, cls: type[E], name: str) -> list[E]:
        """Return every object of a class that bears a name.

        An attached disk also bears ``INSTANCE/NAME``, unless another is named that.
        """
        uuids = self.names.get((KIND_OF[cls], name), NO_UUIDS)
        of, _, rest = name.rpartition("/")
        of = self.full_name(Instance, of) if of and cls is Disk else ""
        if of and not uuids and self.knows(Instance, of):
            disks = self.disks_of(self.instance(of))
            return [cast("E", disk) for disk in disks if disk.name == rest]
        return [cast("E", self.objects[uuid]) for uuid in uuids]

    def namesakes(
        self, name: str, owner: Instance | None, *, sole: bool, but: Disk | None = None
    ) -> list[Disk]:
        """Return the disks beside which another one cannot be called `name`.

        Parameters
        ----------
        owner
            The instance that has the other one; None if none does.
        sole
            Whether its storage may know it by that name.
        but
            The other one itself, if it is there.
        """
        found = self.beside(name, owner)
        if sole:
            found |= self.volumes_named(name)
        found.discard(but.uuid if but else "")
        return sorted((cast("Disk", self.objects[uuid]) for uuid in found), key=by_name)

    def volumes_named(self, name: str) -> set[str]:
        """Return the uuids of the disks whose storage may know them by a name."""
        return {*self.soles.get(name, NO_UUIDS)}

    def beside(self, name: str, owner: Instance | None) -> set[str]:
        """Return the uuids of the disks of a name that an instance has, or nobody."""
        if owner is None:
            return {*self.unowned.get(name, NO_UUIDS)}
        return {one.uuid for one in self.disks_of(owner) if one.name == name}

    def _below(self, cls: type[E], index: HashTrieMap[K, Uuids], key: K) -> list[E]:
        """Return the objects of a class that an index has below a key, by name."""
        found = (self.objects[uuid] for uuid in index.get(key, NO_UUIDS))
        return sorted((one for one in found if isinstance(one, cls)), key=by_name)

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

    def pool(self, ref: str) -> StoragePool:
        """Return a storage pool by name or uuid."""
        return self.get(StoragePool, ref)

    def network(self, ref: str) -> Network:
        """Return a network by name or uuid."""
        return self.get(Network, ref)

    def instances_in(self, network: Network) -> list[Instance]:
        """Return the instances with a card in a network, by name."""
        return self._below(Instance, self.networked, network.uuid)

    def addresses_in(self, network: Network) -> set[str]:
        """Return the IP addresses that cards have in a network."""
        return {
            nic.ip
            for uuid in self.networked.get(network.uuid, NO_UUIDS)
            for nic in cast("Instance", self.objects[uuid]).nics
            if nic.ip and nic.network == network.uuid
        }

    def holders_of(self, address: Address) -> list[Instance]:
        """Return the instances with a card that has an address."""
        return self._below(Instance, self.addresses, address)

    def home(self, instance: Instance) -> Node:
        """Return the node that an instance is on."""
        return self.node(instance.primary_node)

    def group_of(self, instance: Instance) -> NodeGroup:
        """Return the group of an instance's node."""
        return self.group(self.home(instance).group)

    def storage_pools(self) -> dict[str, str]:
        """Return who drives each storage pool, by its name: a provider or template."""
        return {pool.name: pool.driver for pool in self.named(StoragePool)}

    def pool_of(self, disk: Disk) -> StoragePool | None:
        """Return the storage pool that a disk is in, if it is in one."""
        return self.pool(disk.pool) if disk.pool else None

    def disks_in(self, pool: StoragePool) -> list[Disk]:
        """Return the disks of a storage pool, by name."""
        return self._below(Disk, self.pooled, pool.uuid)

    def knows(self, cls: type[Entity], ref: str) -> bool:
        """Whether a uuid or name stands for at least one object of the class."""
        found = isinstance(self.objects.get(ref), cls)
        return found or bool(self.called(cls, ref))

    def disks_of(self, instance: Instance) -> list[Disk]:
        """Return the attached disks, in the order of their slots."""
        return [cast("Disk", self.objects[uuid]) for uuid in instance.disks]

    def owner(self, disk: Disk) -> Instance | None:
        """Return the instance that a disk is attached to."""
        uuid = self.owners.get(disk.uuid)
        return cast("Instance", self.objects[uuid]) if uuid else None

    def iv_name(self, disk: Disk) -> str | None:
        """Return ``disk/N`` for the N-th disk of an instance; None while detached.

        It is computed: an insertion in front must not touch the disks behind it.
        """
        owner = self.owner(disk)
        return f"disk/{owner.disks.index(disk.uuid)}" if owner else None

    def detached(self) -> list[Disk]:
        """Return the disks that belong to no instance."""
        return [disk for disk in self.named(Disk) if disk.uuid not in self.owners]

    def instances_on(self, node: Node) -> list[Instance]:
        """Return the instances whose primary node this is, by name."""
        return self._below(Instance, self.residents, node.uuid)

    def mirrored_on(self, node: Node) -> list[Disk]:
        """Return the disks that a node keeps one of two copies of, by name."""
        return self._below(Disk, self.holdings, node.uuid)

    def nodes_in(self, group: NodeGroup) -> list[Node]:
        """Return the nodes of a group, by name."""
        return [node for node in self.named(Node) if node.group == group.uuid]

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
        word = WORDS.get(kind, kind)
        close = alike(ref, self._candidates(kind, ref))
        known_by = LISTED_BY.get(kind, "")
        hint = f"did you mean {' or '.join(close)}?" if close else known_by
        return NotFound(f"{word} '{ref}' is not known", hint=hint, kind=kind, ref=ref)

    def _candidates(self, kind: str, ref: str) -> set[str]:
        """Return the names of a kind among which one like `ref` is sought.

        All of them where they are few; those that one slip leads from else: a look at
        each of thousands would make everybody wait.
        """
        uuids = self.kinds.get(kind, NO_UUIDS)
        if len(uuids) <= _FEW:
            objects = (cast("Disk", self.objects[uuid]) for uuid in uuids)
            return {one.name for one in objects if one.name}
        words = {ref, lowered(ref)} if len(ref) <= _LONGEST else ()
        found = (name for word in words for name in slips(word))
        return {name for name in found if (kind, name) in self.names}

    def before(self, change: Change) -> dict[str, Entity]:
        """Return the objects that `change` touches, as they are now, by uuid."""
        touched = (*change.put, *change.drop)
        found = ((each.uuid, self.objects.get(each.uuid)) for each in touched)
        return {uuid: old for uuid, old in found if old is not None}


def by_name(entity: Any) -> tuple[tuple[tuple[int, int, str], ...], str]:  # noqa: ANN401
    """Return the key by which objects are sorted: those without a name come first."""
    return nice(entity.name or ""), entity.uuid


@lru_cache(maxsize=1 << 16)  # lists of thousands are sorted again and again
def nice(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sorting key that puts node2 before node10."""
    found = map(_part, _PARTS.findall(name))
    return (*found, (1, 0, ""))


def _part(part: str) -> tuple[int, int, str]:
    if not part[0].isdecimal():
        return 1, 0, part
    number = part.lstrip("0")
    return 0, len(number), number  # a number of any length
