# SPDX-License-Identifier: BSD-2-Clause
"""Settings of the cluster that are numbers, or short words: what they may be."""

import re

from moorage.errors import BadInput
from moorage.model import Cluster

_MOST = 1000
_MACS = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){2}", re.IGNORECASE)
_MULTICAST = 1


def check(cluster: Cluster) -> None:
    """Raise `BadInput` for a number or prefix that a cluster cannot have."""
    for field in ("candidate_pool_size", "max_running_jobs"):
        value = getattr(cluster, field)
        if not 1 <= value <= _MOST:
            what = field.replace("_", " ")
            raise BadInput(f"{what} is a number from 1 to {_MOST}, not {value}")
    prefix = cluster.mac_prefix
    if not _MACS.fullmatch(prefix):
        raise BadInput(f"a MAC prefix is three bytes as aa:00:00, not '{prefix[:40]}'")
    if int(prefix[:2], 16) & _MULTICAST:
        raise BadInput(f"no card has a MAC that begins with {prefix}: it is multicast")
