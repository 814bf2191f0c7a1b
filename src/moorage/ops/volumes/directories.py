# SPDX-License-Identifier: BSD-2-Clause
"""Where disks can be: the directories that the cluster has set, and other places."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from moorage.disk_templates import FACTS
from moorage.model import Cluster, Config, Disk, Node, NodeGroup, Place, StoragePool
from moorage.ops.asking.disk_presets import diskparams
from moorage.ops.asking.node_tasks import settings
from moorage.ops.volumes.exclusive_storage import is_exclusive
from moorage.storage import TEMPLATES, Template, template_named
from moorage.storage.provider import room_key
from moorage.storage.templates.plain import EXCLUSIVE

from .units import own_room


def setting_of(kind: type[Template]) -> str | None:
    """Return the cluster's field with the directory that a template needs, if any."""
    images = kind.capabilities.images
    return kind.capabilities.facts.settings[0] if images else None


SETTINGS = tuple(sorted(filter(None, map(setting_of, TEMPLATES.values()))))
"""The cluster's fields that name directories of image files."""


def directories(cluster: Cluster) -> dict[str, str]:
    """Return the directory of each enabled template that has one set, by its name.

    No disk is of a template that is not enabled: its room is nobody's.
    """
    found = {}
    enabled = cluster.enabled_disk_templates or tuple(TEMPLATES)
    for name, kind in sorted(TEMPLATES.items()):
        setting = setting_of(kind) if name in enabled else None
        directory = str(getattr(cluster, setting)) if setting else ""
        if directory:
            found[name] = directory
    return found


def places(config: Config, group: NodeGroup) -> tuple[Place, ...]:
    """Return where a node of a group is to look for storage units.

    Those are the places of each enabled template: the one that disks are in unless they
    are told otherwise, and those of the storage pools that are connected to the group.
    """
    cluster, found = config.cluster, []
    here = [one for one in config.named(StoragePool) if group.uuid in one.groups]
    for name in enabled(config):
        usual = _usual(cluster, group, name)
        if is_set(usual):
            found.append(usual)
        provided = TEMPLATES[name].capabilities.provider
        found += [
            place(config, group, pool)
            for pool in here
            # A node tells of all providers that it has.
            if pool.template == name and (own_room(config, pool) or not provided)
        ]
    return tuple(dict.fromkeys(found))


def places_on(config: Config) -> Callable[[Node], tuple[Place, ...]]:
    """Return what tells where a node is to look; each answer is worked out once."""
    return lambda node: config.follows(
        _told_of, (node.group, is_exclusive(config, node))
    )


def _told_of(config: Config, nodes: tuple[str, bool]) -> tuple[Place, ...]:
    """Return where the nodes of a group are to look, if their storage is exclusive."""
    group, exclusive = nodes
    found = tuple(_once(places(config, config.group(group))))
    return tuple(map(_spindled, found)) if exclusive else found


def _once(found: Sequence[Place]) -> Iterator[Place]:
    """Yield places but those whose room others tell: volume groups are told once."""
    there = {one.template for one in found}
    return (one for one in found if FACTS[one.template].volume not in there)


def _spindled(place: Place) -> Place:
    """Return a place whose physical volumes are to be told, too, where it has some."""
    if not FACTS[FACTS[place.template].stored_as].spindles:
        return place
    return replace(place, settings=(*place.settings, (EXCLUSIVE, "yes")))


def place(config: Config, group: NodeGroup, pool: StoragePool) -> Place:
    """Return where the disks of a storage pool are, in a group."""
    if pool.provider:
        where = place_of_pool(config, group, pool)
        return replace(where, pool=own_room(config, pool))
    cluster = config.cluster
    preset = diskparams(cluster, pool.template, group) | pool.params
    return _place(cluster, pool.template, preset)


def unit_at(place: Place) -> tuple[str, str]:
    """Return template and key of the storage unit that a place is."""
    kind = template_named(place.template)
    key = kind.unit_key(dict(place.settings), dict(place.params))
    return place.template, room_key(key, place.pool)


def usual_place(config: Config, group: NodeGroup, template: str) -> Place:
    """Return where the disks of a template are that are in no pool."""
    return _usual(config.cluster, group, template)


def _usual(cluster: Cluster, group: NodeGroup, template: str) -> Place:
    return _place(cluster, template, diskparams(cluster, template, group))


def place_of(config: Config, disk: Disk) -> Place:
    """Return where a disk is; of a provider's, with all its parameters."""
    able = template_named(disk.dev_type).capabilities
    named = {"provider": disk.logical_id[0]} if able.provider else {}
    return place_with(config, disk.dev_type, named | disk.params)


def place_with(config: Config, template: str, params: Mapping[str, Any]) -> Place:
    """Return where the disks of a template are that have some parameters."""
    if template_named(template).capabilities.provider:
        return provided_place(template, params)
    return _place(config.cluster, template, params)


def provided_place(template: str, params: Mapping[str, Any]) -> Place:
    """Return where the disks of a provider are that have some parameters."""
    kept = sorted((name, str(v)) for name, v in params.items() if name != "access")
    return Place(template=template, params=tuple(kept))


def pool_at(config: Config, group: NodeGroup, where: Place) -> StoragePool | None:
    """Return the storage pool whose disks are at a place; None if it is not one's."""
    pools = [
        pool
        for pool in config.named(StoragePool)
        if pool.template == where.template
        and group.uuid in pool.groups
        and place_of_pool(config, group, pool) == where
    ]
    return pools[0] if len(pools) == 1 else None


def place_of_pool(config: Config, group: NodeGroup, pool: StoragePool) -> Place:
    """Return where the disks of a storage pool are; of a provider's, by parameters."""
    if pool.provider is None:
        return place(config, group, pool)
    return provided_place(pool.template, {**pool.params, "provider": pool.provider})


def is_set(place: Place) -> bool:
    """Whether the settings that a template needs, or parameters for them, are there."""
    needed = FACTS[place.template].settings
    return not needed or any(value for _, value in (*place.settings, *place.params))


def enabled(config: Config) -> list[str]:
    """Return the templates that disks may be of, as far as they are driven."""
    known = config.cluster.enabled_disk_templates or tuple(TEMPLATES)
    return [name for name in sorted(TEMPLATES) if name in known]


def _place(cluster: Cluster, template: str, params: Mapping[str, Any]) -> Place:
    known = FACTS[template].parameters
    fixed = {one.name for one in known if one.fixed}
    return Place(
        template=template,
        settings=tuple(settings(cluster, template).items()),
        params=tuple((k, str(v)) for k, v in sorted(params.items()) if k in fixed),
    )
