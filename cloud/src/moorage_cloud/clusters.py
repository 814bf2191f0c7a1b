# SPDX-License-Identifier: BSD-2-Clause
"""What the service needs of a cluster."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Protocol

from msgspec import Struct

from .requests import AnyRequest


class ClusterRefused(Exception):
    """The cluster said no at the door: nothing was changed."""


class ClusterSilent(Exception):
    """Nobody answered, or not in time: it may have been done, or not."""


class AnotherCluster(ClusterSilent):
    """Somebody else answers where the cluster was: whatever they say is not its word.

    Parameters
    ----------
    uuid
        Of whoever answers.
    """

    def __init__(self, uuid: str) -> None:
        super().__init__(f"cluster {uuid} answers, which is not the one on record")
        self.uuid = uuid


class JobState(Enum):
    """Where a job stands."""

    UNDER_WAY = auto()
    DONE = auto()
    FAILED = auto()  # cancelled ones, too: whatever was begun was undone
    UNKNOWN = auto()  # the cluster keeps it no more, or never had it


class Job(Struct, frozen=True):
    """A job; `why` is what it failed with."""

    state: JobState
    why: str = ""


class Disk(Struct, frozen=True):
    """A disk that a cluster has.

    Attributes
    ----------
    name
        Empty for one without.
    instance
        Whose it is; None for nobody's.
    size
        MiB.
    volume
        What the cluster itself calls its data.
    provider
        Of its storage; empty for none.
    slot
        Which disk of its instance it is, from 0; empty for nobody's.
    uuid
        The cluster's own; another one after each attach.
    epoch
        Rises whenever it is attached.
    """

    name: str
    instance: str | None
    size: int
    volume: str = ""
    provider: str = ""
    slot: str = ""
    uuid: str = ""
    epoch: int = 0


class Instance(Struct, frozen=True):
    """An instance; `status` is Ganeti's word, such as ``running``."""

    name: str
    status: str
    disks: tuple[str, ...] = ()


class Heard(Struct, frozen=True):
    """An entry of a cluster's feed.

    Attributes
    ----------
    number
        Of the entry; it only rises.
    jobs
        Jobs that came to an end with it, and how.
    reset
        Whether what was told before this number is not kept any more: everything is
        to be compared.
    """

    number: int
    jobs: Mapping[int, Job] = {}
    reset: bool = False


class Cluster(Protocol):
    """A cluster behind its door; each call may raise :class:`ClusterSilent`."""

    def uuid(self) -> str:
        """Return who answers; another cluster of the same name has another uuid."""

    def features(self) -> frozenset[str]:
        """Return what clients may rely on."""

    def providers(self) -> frozenset[str]:
        """Return the names of providers that some node of it has."""

    def submit(self, request: AnyRequest, key: str, reason: str) -> int:
        """Make a job of a request; return its number.

        Parameters
        ----------
        key
            A repeated request with the same key makes no second job.
        reason
            Who asked, and with which request; it stands in the job.

        Raises
        ------
        ClusterRefused
            If it refuses; then nothing was changed.
        """

    def job(self, number: int) -> Job:
        """Return where a job stands."""

    def disk(self, name: str) -> Disk | None:
        """Return the disk with a name; None if the cluster has none."""

    def disks(self) -> Sequence[Disk]:
        """Return all disks."""

    def instances(self) -> Sequence[Instance]:
        """Return all instances."""

    def events(self, after: int | None, seconds: float) -> Iterator[Heard]:
        """Yield what happens behind an entry, for a while; None for from now on."""
