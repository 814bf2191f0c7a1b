# SPDX-License-Identifier: BSD-2-Clause
"""Which of the cluster's directories a disk template keeps its files in.

Templates are asked, not named: each one is given marked directories and shows in its
volumes' names which one it took.
"""

from functools import cache

from moorage.errors import MoorageError
from moorage.model import Cluster
from moorage.storage import TEMPLATES, Birth, Template

SETTINGS = ("file_storage_dir", "shared_file_storage_dir")
"""The cluster's fields that hold directories."""


@cache
def setting_of(kind: type[Template]) -> str | None:
    """Return the cluster's field with the directory that a template needs, if any."""
    born = Birth(
        unique="x",
        file_dir=f"/{SETTINGS[0]}",
        shared_file_dir=f"/{SETTINGS[1]}",
    )
    try:
        volume = str(kind.logical_id(born)[-1])
    except MoorageError:
        return None  # it wants a provider or a device: no directory of ours
    first = volume.split("/")[1:2]
    return first[0] if first and first[0] in SETTINGS else None


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
