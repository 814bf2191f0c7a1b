# SPDX-License-Identifier: BSD-2-Clause
"""How to reach a cluster."""

from collections.abc import Callable
from threading import Lock

from moorage.client import Door
from moorage.errors import MoorageError
from moorage_cloud.client import MoorageCluster
from moorage_cloud.clusters import Cluster, ClusterSilent
from moorage_cloud.conf import CONF
from moorage_cloud.models import Backend

Connect = Callable[[Backend], Cluster]
"""Return a cluster's door; cheap, and nothing is asked yet.

Raises `ClusterSilent` if the record does not say how to ask it.
"""


class Doors:
    """The doors of all clusters; connections are kept, and threads share them."""

    def __init__(self) -> None:
        self._known: dict[Door, MoorageCluster] = {}
        self._lock = Lock()

    def __call__(self, backend: Backend) -> Cluster:
        """Return a cluster's door, as its record says now."""
        door = Door(
            backend.host,
            backend.port,
            user=backend.username,
            password=backend.password,
            ca=backend.ca,
        )
        with self._lock:
            if door not in self._known:
                self._known[door] = _opened(door)
            return self._known[door]

    def close(self) -> None:
        """Hang up everywhere."""
        with self._lock:
            for one in self._known.values():
                one.close()
            self._known.clear()


def _opened(door: Door) -> MoorageCluster:
    try:
        return MoorageCluster(door, CONF.timeout)
    except MoorageError as error:  # such as a file of its authority that is gone
        raise ClusterSilent(str(error)) from None
