# SPDX-License-Identifier: BSD-2-Clause
"""Parameters that cluster and group preset, for new disks and for those in use."""

from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from moorage.disk_templates import FACTS
from moorage.errors import BadInput
from moorage.model import Cluster, Config, Disk, NodeGroup, pair_of
from moorage.storage.templates import template_named


def diskparams(cluster: Cluster, template: str, group: NodeGroup) -> dict[str, Any]:
    """Return the parameters that a group's new disks keep, if they have no others."""
    return _preset(cluster, template, group, live=False)


def _preset(
    cluster: Cluster, template: str, group: NodeGroup | None, *, live: bool
) -> dict[str, Any]:
    known = FACTS[template].live
    found = cluster.diskparams.get(template, {})
    found = found | group.diskparams.get(template, {}) if group else found
    return {name: found[name] for name in found if (name in known) is live}


def as_used(config: Config, disk: Disk) -> Disk:
    """Return a disk with the parameters that it has while it is in use.

    Those of group and cluster hold that it has not itself, where its template lets them
    hold for disks that are there.
    """
    owner, pair = config.owner(disk), pair_of(disk)
    node = owner.primary_node if owner else pair.nodes[0] if pair else None
    place = config.node(node).group if node else disk.group
    group = config.group(place) if place else None
    preset = _preset(config.cluster, disk.dev_type, group, live=True)
    if not preset:
        return disk
    return replace(disk, params=_had(disk.dev_type, preset) | disk.params)


def _had(template: str, preset: dict[str, Any]) -> dict[str, Any]:
    """Return presets without what no disk can have: older versions let some come in."""
    check, found = template_named(template).defaults, dict[str, Any]()
    for name, value in preset.items():
        with suppress(BadInput):
            found |= check({name: value})
    return found
