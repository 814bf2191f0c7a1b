# SPDX-License-Identifier: BSD-2-Clause
"""Which volumes there are: asking the storages, and what each one's volumes are to us.

Nothing is concluded from silence: a storage that is not listed whole, or that shows
nothing at all, proves nothing. A volume that a job works on is that job's business.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from moorage.errors import MoorageError
from moorage.jobs import Ask, Sight, View
from moorage.model import Config, Disk, Node, NodeGroup, Place, StoragePool, Volume
from moorage.model.objects import LogicalId, as_text
from moorage.ops.volumes.directories import (
    place_of,
    place_of_pool,
    places,
    provided_place,
    unit_at,
)
from moorage.ops.volumes.disk_access import TRIED, group_of, online
from moorage.protocol import Listed, ListVolumes
from moorage.storage import TEMPLATES, Can, Reach, Template, naming, template_named

REFERENCED, BUSY, FORGOTTEN, UNKNOWN = "referenced", "busy", "forgotten", "unknown"
"""What a volume is: a disk's; a running job's; ours and nobody's; somebody else's."""
MOST_LISTS = 16
"""With how many sets of parameters a provider's volumes are listed at most."""

Key = tuple[str, LogicalId]
"""A volume: the uuid of its node, where the storage is that node's alone, and where it
is in the storage."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one node told of one place."""

    node: Node
    place: Place
    listed: Listed

    @property
    def unit(self) -> tuple[str, str]:
        """Template and key of the storage unit."""
        return unit_at(self.place)


@dataclass(frozen=True, slots=True)
class Found:
    """A volume that is there.

    Attributes
    ----------
    nodes
        Those that see it.
    state
        What it is to the cluster.
    disk
        Uuid of the disk that it is or was of; empty if nobody knows.
    """

    key: Key
    place: Place
    volume: Volume
    nodes: tuple[Node, ...]
    state: str
    disk: str


def kind_of(place: Place) -> type[Template]:
    """Return the template of a place."""
    return template_named(place.template)


def ask(
    config: Config, providers: Sequence[str]
) -> Iterator[tuple[Node, Ask[list[Listed]], tuple[Place, ...]]]:
    """Yield each node that is to list volumes, the question, and the places in it.

    What all nodes of a group see, the first of them list; a provider may keep volumes
    on one node alone.
    """
    for group in config.named(NodeGroup):
        places, nodes = listable(config, group, providers), online(config, group)
        own = [place for place in places if _is_of_a_node(place)]
        for number, node in enumerate(nodes):
            asked = tuple(places if number < TRIED else own)
            yield node, Ask(node.uuid, ListVolumes(places=asked)), asked


def _is_of_a_node(place: Place) -> bool:
    """Whether each node may see other volumes in a place."""
    return is_local(place) or kind_of(place).capabilities.provider


def listable(
    config: Config, group: NodeGroup, providers: Sequence[str] = ()
) -> list[Place]:
    """Return the places whose volumes nodes of a group can tell.

    Parameters
    ----------
    providers
        Names of some that may have no disks and no pools yet.
    """
    by_unit: dict[tuple[str, str], dict[Place, None]] = defaultdict(dict)
    for place in _known(config, group, providers):
        if Can.LIST in kind_of(place).capabilities.can:
            by_unit[unit_at(place)][place] = None
    few = (found for found in by_unit.values() if len(found) <= MOST_LISTS)
    return [place for found in few for place in found]


def _known(
    config: Config, group: NodeGroup, providers: Sequence[str]
) -> Iterator[Place]:
    usual = places(config, group)
    yield from (one for one in usual if not kind_of(one).capabilities.provider)
    for pool in config.named(StoragePool):
        if pool.provider and group.uuid in pool.groups:
            yield place_of_pool(config, group, pool)
    for disk in config.named(Disk):
        if group_of_or_none(config, disk) == group:
            for part in disk.children or (disk,):
                yield place_of(config, part)
    for name, kind in TEMPLATES.items():
        if kind.capabilities.provider:
            yield from (provided_place(name, {"provider": one}) for one in providers)


def group_of_or_none(config: Config, disk: Disk) -> NodeGroup | None:
    """Return the group where a disk is used, or was; None if nobody knows."""
    try:
        return group_of(config, disk)
    except MoorageError:
        return None


def is_local(place: Place) -> bool:
    """Whether a storage is one node's alone."""
    return kind_of(place).capabilities.reach is not Reach.GROUP


def looks(view: View, providers: Sequence[str]) -> list[Look]:
    """Return what the nodes told; why not, where one could not."""
    found = []
    for node, question, asked in ask(seen(view).earlier, providers):
        try:
            told: Iterable[Listed] = view.answer(question) or ()
        except MoorageError as error:
            told = [Listed(problem=error.message)] * len(asked)
        found += [Look(node, *one) for one in zip(asked, told, strict=False)]
    return found


def seen(view: View) -> Sight:
    """Return what operations see that survey storage."""
    if view.sight is None:
        raise AssertionError("an operation that surveys storage says so")
    return view.sight


def key_of(look: Look, volume: Volume) -> Key:
    """Return what tells a volume from all others."""
    where = look.node.uuid if is_local(look.place) else ""
    return where, as_text(volume.logical_id)


def keys_of(disk: Disk) -> Iterator[Key]:
    """Yield the volumes of a disk, by all the names that storage may list them by."""
    kind = template_named((disk.children or (disk,))[0].dev_type).capabilities
    where = [""] if kind.reach is Reach.GROUP else list(disk.nodes)
    for node in where:
        yield from ((node, volume) for volume in disk.volumes)
    if kind.provider and disk.known_as:
        yield "", as_text((disk.logical_id[0], disk.known_as))


def volumes(view: View, found: Iterable[Look]) -> list[Found]:
    """Return every volume once, with what it is to the cluster."""
    seen_by: dict[Key, dict[str, Node]] = defaultdict(dict)
    told: dict[Key, tuple[Place, Volume]] = {}
    for look in found:
        for volume in look.listed.volumes:
            key = key_of(look, volume)
            told.setdefault(key, (look.place, volume))
            seen_by[key][look.node.uuid] = look.node
    known = _Known.of(view)
    states = {key: _state(view, known, key, *about) for key, about in told.items()}
    return [
        Found(key, *told[key], tuple(seen_by[key].values()), *states[key])
        for key in sorted(told)
    ]


@dataclass(frozen=True, slots=True)
class _Known:
    """The disks, by their volumes and by the names of those; and names that are busy.

    They are those of before and after the nodes were asked.
    """

    volumes: dict[Key, str]
    names: dict[str, str]
    busy: frozenset[str]

    @classmethod
    def of(cls, view: View) -> "_Known":
        owners = _owners(view)
        names = {name_of(volume): disk for (_, volume), disk in owners.items()}
        return cls(owners, names, frozenset(map(name_of, seen(view).busy)))


def _owners(view: View) -> dict[Key, str]:
    """Return the disks by their volumes."""
    both = (seen(view).earlier, view.config)
    return {
        key: disk.uuid
        for config in both
        for disk in config.all(Disk)
        for key in keys_of(disk)
    }


def _state(
    view: View, known: _Known, key: Key, place: Place, volume: Volume
) -> tuple[str, str]:
    """Return what a volume is, and the disk that it is or was of.

    One that bears the name of a disk's volume may be that very volume, where storages
    are not as separate as their records say: a directory in another one's, or of
    another node. It is not ours to touch.
    """
    name, former = name_of(key[1]), seen(view).former(key[1])
    if key in known.volumes:
        return REFERENCED, known.volumes[key]
    if name in known.names:
        return UNKNOWN, known.names[name]
    if name in known.busy:
        return BUSY, former
    if former or _looks_ours(view.config, place, volume):
        return FORGOTTEN, former
    return UNKNOWN, ""


def name_of(logical_id: LogicalId) -> str:
    """Return the name of a volume, without the directory that it is in."""
    return logical_id[-1].rpartition("/")[2]


def _looks_ours(config: Config, place: Place, volume: Volume) -> bool:
    if kind_of(place).is_ours(volume):
        return True
    name = name_of(as_text(volume.logical_id))
    return any(
        naming.could_be(pool.volume_name, pool.name, name)
        for pool in config.all(StoragePool)
        if pool.template == place.template
    )


def shown(logical_id: Sequence[object]) -> str:
    """Return where a volume is, as people write it: a path, or all its parts."""
    words = as_text(logical_id)
    return words[-1] if words[-1].startswith("/") else "/".join(words)
