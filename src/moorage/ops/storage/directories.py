# SPDX-License-Identifier: BSD-2-Clause
"""What of the cluster's settings disk templates need: directories, so far."""

from collections.abc import Iterator

from moorage.model import Cluster
from moorage.ops.node_tasks import settings
from moorage.storage import TEMPLATES, Template

Measured = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
"""Templates by name, each with its settings as pairs of name and value."""


def setting_of(kind: type[Template]) -> str | None:
    """Return the cluster's field with the directory that a template needs, if any."""
    images = kind.capabilities.images
    return kind.capabilities.facts.settings[0] if images else None


SETTINGS = tuple(sorted(filter(None, {setting_of(one) for one in TEMPLATES.values()})))
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


def measured(cluster: Cluster) -> Measured:
    """Return what a node must know to tell the room of each enabled template."""
    return tuple(
        (name, tuple(settings(cluster, name).items())) for name in _placed(cluster)
    )


def _placed(cluster: Cluster) -> Iterator[str]:
    """Yield the enabled templates that need settings, and have them."""
    for name in sorted(cluster.enabled_disk_templates or TEMPLATES):
        needed = name in TEMPLATES and settings(cluster, name)
        if needed and all(needed.values()):
            yield name
