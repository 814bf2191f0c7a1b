# SPDX-License-Identifier: BSD-2-Clause
"""How to reach a cluster."""

from collections.abc import Callable

from moorage_cloud.clusters import Cluster
from moorage_cloud.models import Backend

Connect = Callable[[Backend], Cluster]
"""Return a cluster's door; cheap, and nothing is asked yet."""
