# SPDX-License-Identifier: BSD-2-Clause
"""The storage unit of a disk: how and where it may be stored, by type and key."""

from collections.abc import Mapping
from typing import Any

from moorage.model import Cluster, Config, Disk, StoragePool
from moorage.ops.node_tasks import settings
from moorage.storage import Can
from moorage.storage.provider import room_key
from moorage.storage.templates import template_named
from moorage.units import Mib

Named = tuple[str, str]
"""Type and key: ``("ext", "san")``, ``("sharedfile", "/srv/shared")``."""


def unit_of(config: Config, disk: Disk) -> Named:
    """Return the unit that a disk is in."""
    template, key = storage_of(config.cluster, disk)
    return template, room_key(key, own_room(config, config.pool_of(disk)))


def storage_of(cluster: Cluster, disk: Disk) -> Named:
    """Return the storage that a disk is in, whichever room of a provider's it is."""
    kind, known = template_named(disk.dev_type), settings(cluster, disk.dev_type)
    return kind.unit_template(), kind.unit_key(known, disk.params, disk.logical_id)


def own_room(config: Config, pool: StoragePool | None) -> str:
    """Return what the room of a storage pool is called; empty for the provider's own.

    Which of a provider's parameters say where its volumes are, the provider alone
    knows. So a pool that presets any is asked for its room by itself. Pools with the
    same presets are in one room, that of the first of them by name.
    """
    if pool is None or not _presets(pool):
        return ""
    alike = (
        one.name
        for one in config.all(StoragePool)
        if one.provider == pool.provider and _presets(one) == _presets(pool)
    )
    return min([pool.name, *alike])


def _presets(pool: StoragePool) -> dict[str, Any]:
    """Return the parameters of a provider's pool that may say where its volumes are."""
    given = pool.params if pool.provider else {}
    return {name: value for name, value in given.items() if name != "access"}


def names_its_place(disk: Disk) -> bool:
    """Whether a disk's parameters say where it is, and not the cluster's settings."""
    return bool(template_named(disk.dev_type).unit_key({}, disk.params))


def unit_named(
    config: Config,
    template: str,
    given: Mapping[str, Any],
    pool: StoragePool | None = None,
) -> Named:
    """Return the unit that a disk of a template will be in.

    Parameters
    ----------
    given
        Its parameters: ``provider``, and ``adopt`` where it is a device.
    pool
        The storage pool that it will be in.
    """
    kind, known = template_named(template), settings(config.cluster, template)
    key = kind.unit_key(known, given)
    return kind.unit_template(), room_key(key, own_room(config, pool))


def occupied(template: str, size: int) -> int:
    """Return the MiB that a disk takes of its unit, on each of its nodes."""
    return template_named(template).occupies(Mib(size))


def is_provided(unit: Named) -> bool:
    """Whether it is a provider's: a node has it or not, and may not tell its room."""
    return template_named(unit[0]).capabilities.provider


def provider_of(unit: Named) -> Named:
    """Return the unit of a provider's, whichever of its rooms it is."""
    template, key = unit
    return template, key.partition("/")[0]


def has_room(template: str) -> bool:
    """Whether nodes can measure the room of a template's units."""
    told_by = template_named(template_named(template).unit_template())
    return Can.ROOM in told_by.capabilities.can


def sunit(name: Named) -> list[Any]:
    """Return a unit's identifier as clients read it: type, key, and nothing besides."""
    return [*name, []]
