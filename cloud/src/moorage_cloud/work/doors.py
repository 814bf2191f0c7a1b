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
        self._known: dict[tuple[Door, str], MoorageCluster] = {}
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
        whose = (door, backend.uuid)
        with self._lock:
            if whose not in self._known:
                self._known[whose] = _opened(door, backend.uuid)
            return self._known[whose]

    def close(self) -> None:
        """Hang up everywhere."""
        with self._lock:
            for one in self._known.values():
                one.close()
            self._known.clear()


def _opened(door: Door, uuid: str) -> MoorageCluster:
    try:
        return MoorageCluster(door, CONF.timeout, uuid)
    except MoorageError as error:  # such as a file of its authority that is gone
        raise ClusterSilent(str(error)) from None
