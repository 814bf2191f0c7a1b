# SPDX-License-Identifier: BSD-2-Clause
"""The storage unit of a disk: how and where it may be stored, by type and key.

Nodes tell units by the template that knows their room, and so volume groups once. The
planner and clients call them as Ganeti's design does, and have a volume group twice:
``lvm-vg`` for plain disks and ``drbd8`` for mirrored ones, with one room.
"""

from collections.abc import Mapping
from typing import Any

from moorage.disk_templates import (
    FACTS,
    IN_UNITS,
    LIMITED,
    TemplateFacts,
    sharing,
)
from moorage.model import Cluster, Config, Disk, StoragePool, Unit
from moorage.ops.asking.node_tasks import settings
from moorage.storage import Can
from moorage.storage.provider import room_key
from moorage.storage.templates import TEMPLATES, template_named

Named = tuple[str, str]
"""Type and key: ``("ext", "san")``, ``("lvm-vg", "xenvg")``."""
_TOLD_BY = {kind: facts.stored_as for kind, facts in IN_UNITS.items()}


def unit_of(config: Config, disk: Disk) -> Named:
    """Return the unit that a disk is in."""
    key = _key_of(config.cluster, disk)
    own = own_room(config, config.pool_of(disk))
    return _kind(disk.dev_type), room_key(key, own)


def _kind(template: str) -> str:
    """Return the type of the units that disks of a template are in."""
    return FACTS[template].unit or template


def _key_of(cluster: Cluster, disk: Disk) -> str:
    kind, known = template_named(disk.dev_type), settings(cluster, disk.dev_type)
    return kind.unit_key(known, disk.params, disk.logical_id)


def template_of(unit: Named) -> str:
    """Return the template by which nodes tell a unit; jobs that wait may know none."""
    return _TOLD_BY.get(unit[0]) or template_named(unit[0]).capabilities.facts.stored_as


def told_as(unit: Named) -> Named:
    """Return what nodes call a unit: template and key.

    >>> told_as(("drbd8", "xenvg")), told_as(("lvm-vg", "xenvg"))
    (('plain', 'xenvg'), ('plain', 'xenvg'))
    """
    return template_of(unit), unit[1]


def current(unit: Named) -> Named:
    """Return a unit by its name of today; an older journal calls it by a template."""
    return unit if unit[0] in IN_UNITS else (_kind(unit[0]), unit[1])


def named(cluster: Cluster, unit: Unit, *, exclusive: bool = False) -> list[Named]:
    """Return what a unit that a node tells is called: once for each template in it.

    No disk is of a template that is not enabled, nor on a node with `exclusive` storage
    if it cannot have spindles: there these have no units.
    """
    enabled = cluster.enabled_disk_templates or tuple(FACTS)
    kinds = ((one, IN_UNITS.get(one)) for one in sharing(_kind(unit.template)))
    return [
        (kind, unit.key)
        for kind, facts in kinds
        if facts is None
        or (facts.name in enabled and not (exclusive and _shares_spindles(facts)))
    ]


def _shares_spindles(facts: TemplateFacts) -> bool:
    """Whether disks are on a node's physical volumes, and never have some alone."""
    return facts.node_disk and not facts.spindles


def storage_of(cluster: Cluster, disk: Disk) -> Named:
    """Return template and key of the storage that a disk is in, whatever its room."""
    return FACTS[disk.dev_type].stored_as, _key_of(cluster, disk)


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
    return {k: v for k, v in given.items() if k not in ("access", *LIMITED)}


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
    return _kind(template), room_key(key, own_room(config, pool))


def occupied(template: str, size: int) -> int:
    """Return the MiB that a disk takes of its unit, on each of its nodes."""
    return size + FACTS[template].metadata


def is_provided(unit: Named) -> bool:
    """Whether it is a provider's: a node has it or not, and may not tell its room."""
    return TEMPLATES[template_of(unit)].capabilities.provider


def provider_of(unit: Named) -> Named:
    """Return the unit of a provider's, whichever of its rooms it is."""
    template, key = unit
    return template, key.partition("/")[0]


def kept_as(template: str, unit: Named) -> Named:
    """Return the unit that a disk is in, if it is kept as disks of a template are."""
    return _kind(template), unit[1]


def has_room(template: str) -> bool:
    """Whether nodes can measure the room of the units of a template's disks."""
    told_by = template_named(FACTS[template].stored_as)
    return Can.ROOM in told_by.capabilities.can


def sunit(name: Named, *, exclusive: bool = False) -> list[Any]:
    """Return a unit's identifier as clients read it: type, key, and what else holds.

    That is, of volumes with spindles of their own on a node, that they have them.
    """
    found = IN_UNITS.get(name[0])
    return [*name, [True] if exclusive and found and found.spindles else []]
