# SPDX-License-Identifier: BSD-2-Clause
"""What the steps of the cloud's tour share: the cloud, and who types where."""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from hashlib import sha256
from http import HTTPStatus
from http.client import HTTPConnection
from typing import Any, Protocol

from moorage.daemons import devcloud as clouds
from moorage.daemons.devcloud import CLUSTERS, Cloud

from .claims import claim
from .guests import RealGuest
from .typist import Typist

_PATIENCE = 120.0
_FILE_SIZE = 1 << 20


class Writer(Protocol):
    """Who writes to a volume that is attached, and reads it; of guests, a part."""

    def fill(self, disk: str) -> str:
        """Write random bytes; return their checksum."""

    def checksum(self, disk: str) -> str:
        """Return the checksum of what was written, as it is read now."""

    def size(self, disk: str) -> int:
        """Return the size in MiB."""


class CloudStage:
    """Where the cloud's tour takes place.

    Attributes
    ----------
    typist
        At the service: types ``snf-manage`` and ``openstack``.
    at
        At the master of each cluster.
    sum
        The checksum of what was written to the volume.
    """

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.simulated = cloud.hypervisor != "kvm"
        self.typist = Typist(cloud.environment())
        self.at: dict[str, Typist] = {}
        self.secrets: dict[str, str] = {}
        self.sum = ""
        self._desk: Desk

    def enter(self, name: str) -> Typist:
        """Return who types at a cluster's master, where it is up."""
        self.at[name] = Typist(self.cloud.cluster(name).environment())
        return self.at[name]

    def inside(self, name: str) -> Writer:
        """Return who writes in the server of a cluster."""
        if self.simulated:
            return ImageFile(self.cloud, lambda disk: self._name(name, disk))
        (row,) = self.at[name].ask("gnt-instance list -o uuid,pnode")
        return RealGuest(self.cloud.cluster(name), row["uuid"], lambda: row["pnode"])

    def disk(self, name: str) -> str:
        """Return the uuid of the only disk that a cluster has."""
        rows = self.at[name].ask("gnt-disk list -o uuid")
        claim(len(rows) == 1, f"cluster {name} has {len(rows)} disks, not one")
        return str(rows[0]["uuid"])

    def disks(self) -> int:
        """Return how many disks both clusters have."""
        return sum(len(self.at[name].ask("gnt-disk list -o uuid")) for name in CLUSTERS)

    def images(self) -> list[str]:
        """Return the names of the volumes that are on the storage."""
        notes = (".maker", ".epoch", ".info", ".new", ".part")
        found = [one.name for one in self.cloud.storage.iterdir()]
        return sorted(one for one in found if not one.endswith(notes))

    def _name(self, name: str, disk: str) -> str:
        (row,) = self.at[name].ask(f"gnt-disk list -o name {disk}")
        return str(row["name"])

    def look_in(self) -> None:
        """Log in, so that volumes and snapshots can be looked at."""
        fields = self.typist.look("openstack token issue -f json")
        self._desk = Desk(self.cloud, json.loads(fields))

    def until(self, what: str, field: str, wanted: object) -> None:
        """Wait until a field of the only volume, or snapshot, is as it should be."""

        def there() -> bool:
            (found,) = self._desk.rows(what)
            return bool(found[field] == wanted)

        self.wait(there, f"the {field} of the {what} is {wanted}")

    def gone(self, what: str) -> None:
        """Wait until there are no volumes, or snapshots."""
        self.wait(lambda: not self._desk.rows(what), f"there are no {what}")

    def wait(self, true: Callable[[], bool], what: str) -> None:
        """Wait until a claim is true."""
        deadline = time.monotonic() + _PATIENCE
        while not true():
            claim(time.monotonic() < deadline, f"{what}: not within {_PATIENCE:g} s")
            time.sleep(0.1)


class Desk:
    """Looks at the service over HTTP: starting a client for each look takes seconds.

    Parameters
    ----------
    token
        What `openstack token issue` tells.
    """

    def __init__(self, cloud: Cloud, token: Mapping[str, str]) -> None:
        self._host = clouds.web_host(cloud)
        self._token = token

    def rows(self, what: str) -> list[dict[str, Any]]:
        """Return all ``volumes``, or all ``snapshots``."""
        http = HTTPConnection(self._host, clouds.WEB_PORT, timeout=_PATIENCE)
        with closing(http):
            path = f"/volume/v3/{self._token['project_id']}/{what}/detail"
            http.request("GET", path, headers={"X-Auth-Token": self._token["id"]})
            answer = http.getresponse()
            told = answer.read().decode()
        claim(answer.status == HTTPStatus.OK, f"{path}: {answer.status} {told}")
        return list(json.loads(told)[what])


class ImageFile:
    """Who writes in the place of a guest that is a record: to the volume's own file.

    Parameters
    ----------
    name
        Tells what a disk is called.
    """

    def __init__(self, cloud: Cloud, name: Callable[[str], str]) -> None:
        self._storage = cloud.storage
        self._name = name

    def fill(self, disk: str) -> str:
        """Write random bytes to the begin of the file; return their checksum."""
        with (self._storage / self._name(disk)).open("r+b") as file:
            file.write(secrets.token_bytes(_FILE_SIZE))
        return self.checksum(disk)

    def checksum(self, disk: str) -> str:
        """Return the checksum of the begin of the file."""
        with (self._storage / self._name(disk)).open("rb") as file:
            return sha256(file.read(_FILE_SIZE)).hexdigest()

    def size(self, disk: str) -> int:
        """Return the size of the file in MiB."""
        return (self._storage / self._name(disk)).stat().st_size >> 20
