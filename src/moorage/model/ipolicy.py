# SPDX-License-Identifier: BSD-2-Clause
"""Instance policies in Ganeti's layout: which sizes a group of nodes is meant for.

A group's own policy covers the cluster's, which is Ganeti's default. Planners count
capacity with it; no request is refused for its size.
"""

from typing import Any

from .objects import NodeGroup

_SIZES = (
    "memory-size",
    "cpu-count",
    "disk-size",
    "disk-count",
    "nic-count",
    "spindle-use",
)
_LEAST = (128, 1, 1024, 1, 1, 1)
_MOST = (32768, 8, 1048576, 16, 8, 12)


def cluster_policy() -> dict[str, Any]:
    """Return the policy of groups that have none of their own; sizes in MiB."""
    return {
        "minmax": [
            {
                "min": dict(zip(_SIZES, _LEAST, strict=True)),
                "max": dict(zip(_SIZES, _MOST, strict=True)),
            }
        ],
        "std": dict(zip(_SIZES, _LEAST, strict=True)),
        "disk-templates": ["sharedfile", "ext", "blockdev", "file", "diskless"],
        "vcpu-ratio": 4.0,
        "spindle-ratio": 32.0,
    }


def group_policy(group: NodeGroup) -> dict[str, Any]:
    """Return the policy that holds in a group."""
    return cluster_policy() | group.ipolicy
