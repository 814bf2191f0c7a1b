# SPDX-License-Identifier: BSD-2-Clause
"""Settings of the cluster that are numbers: what they may be."""

from moorage.errors import BadInput
from moorage.model import Cluster

_MOST = 1000


def check(cluster: Cluster) -> None:
    """Raise `BadInput` for a number that a cluster cannot have."""
    for field in ("candidate_pool_size", "max_running_jobs"):
        value = getattr(cluster, field)
        if not 1 <= value <= _MOST:
            what = field.replace("_", " ")
            raise BadInput(f"{what} is a number from 1 to {_MOST}, not {value}")
