# SPDX-License-Identifier: BSD-2-Clause
"""Clusters in memory that share storage: what a cluster does, and nothing else.

They answer as the service's `Cluster` does. Jobs stand still until somebody runs them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from django.utils import timezone
from msgspec.structs import replace

from moorage_cloud.clusters import (
    ClusterRefused,
    ClusterSilent,
    Disk,
    Heard,
    Instance,
    Job,
    JobState,
)
from moorage_cloud.models import (
    Backend,
    Operation,
    Outbox,
    Server,
    StorageDomain,
    Volume,
    VolumeType,
)
from moorage_cloud.requests import (
    AnyRequest,
    Build,
    Destroy,
    Grow,
    Leave,
    Reboot,
    Remove,
    ShutDown,
    Snapshot,
    StartUp,
    Take,
    VolumeRequest,
)
from moorage_cloud.verbs import Caller
from moorage_cloud.work import hear, look_next, remove_next, send_next

BROKEN = "a script failed"


class JobFailed(Exception):
    """What a job ended with; it changed nothing."""


@dataclass
class Pier:
    """A cluster.

    Attributes
    ----------
    storage
        Volumes by name, each with its bytes; shared.
    statuses
        Of its instances, by name.
    asked
        Every request that came in, with its key.
    silent
        Whether nobody answers; with `deaf` the request is lost, too.
    fails
        Whether a job is to fail.
    epochs
        Of each volume, the highest that the storage has seen; shared.
    """

    name: str
    storage: dict[str, bytearray]
    known: dict[str, Disk] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    waiting: dict[int, AnyRequest] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    asked: list[tuple[AnyRequest, str]] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    silent: bool = False
    deaf: bool = False
    refuses: str = ""
    fails: Callable[[AnyRequest], bool] = lambda _request: False

    def features(self) -> frozenset[str]:
        self._answer()
        return frozenset({"moorage-disks"})

    def providers(self) -> frozenset[str]:
        self._answer()
        return frozenset({"named"})

    def submit(self, request: AnyRequest, key: str, reason: str) -> int:
        assert reason
        if self.deaf:
            raise ClusterSilent(self.name)
        if self.refuses:
            raise ClusterRefused(self.refuses)
        self.asked.append((request, key))
        if key not in self.keys:
            self.keys[key] = number = len(self.keys) + 1
            self.jobs[number] = Job(JobState.UNDER_WAY)
            self.waiting[number] = request
        self._answer()
        return self.keys[key]

    def job(self, number: int) -> Job:
        self._answer()
        return self.jobs.get(number, Job(JobState.UNKNOWN))

    def disk(self, name: str) -> Disk | None:
        self._answer()
        return self.known.get(name)

    def disks(self) -> list[Disk]:
        self._answer()
        return list(self.known.values())

    def instances(self) -> list[Instance]:
        self._answer()
        found = []
        for name, status in self.statuses.items():
            disks = [one.name for one in self.known.values() if one.instance == name]
            found.append(Instance(name, status, tuple(disks)))
        return found

    def events(self, after: int | None, seconds: float = 0) -> Iterator[Heard]:
        del seconds
        self._answer()
        return iter([one for one in self.heard if one.number > (after or 0)])

    def _answer(self) -> None:
        if self.silent:
            raise ClusterSilent(self.name)

    # -- what happens in the cluster ---------------------------------------------------

    def run(self, number: int | None = None, *, cancel: bool = False) -> None:
        """Run a job that waits, or all of them in order."""
        for one in [number] if number else sorted(self.waiting):
            request = self.waiting.pop(one)
            try:
                self._do(one, request, cancel=cancel)
            except JobFailed as error:
                self.jobs[one] = Job(JobState.FAILED, str(error))
            else:
                self.jobs[one] = Job(JobState.DONE)
            told = Job(self.jobs[one].state)  # a feed does not say why
            self.heard.append(Heard(len(self.heard) + 1, {one: told}))

    def _do(self, number: int, request: AnyRequest, *, cancel: bool) -> None:
        if cancel or self.fails(request):
            raise JobFailed(f"job {number} was canceled" if cancel else BROKEN)
        if isinstance(request, Build | StartUp | ShutDown | Reboot | Remove):
            self._with_server(request)
        else:
            self._with_disk(request)

    def _with_disk(self, request: VolumeRequest) -> None:
        name = request.name
        if isinstance(request, Take):
            self._take(request)
            return
        disk = self.known.get(name)
        if disk is None or disk.instance != request.instance:
            raise JobFailed(f"there is no disk {name}")
        if not isinstance(request, Leave):
            self._fence(name)
        match request:
            case Leave():
                del self.known[name]
            case Destroy():
                self._destroy(name)
            case Grow(size=size):
                more = size - len(self.storage[name])
                self.storage[name].extend(bytes(max(more, 0)))
                self.known[name] = replace(disk, size=size)
            case Snapshot(snapshot=copy):
                self.storage[copy] = bytearray(self.storage[name])
                self.known[copy] = Disk(copy, None, disk.size)

    def _with_server(
        self, request: Build | StartUp | ShutDown | Reboot | Remove
    ) -> None:
        name = request.instance
        if (name in self.statuses) == isinstance(request, Build):
            raise JobFailed(f"there is an instance {name}, or there is none")
        if isinstance(request, Remove):
            its = [one.name for one in self.known.values() if one.instance == name]
            for disk in its:
                self._fence(disk)
            for disk in its:
                self._destroy(disk)
            del self.statuses[name]
            return
        self.statuses[name] = (
            "running" if isinstance(request, StartUp | Reboot) else "ADMIN_down"
        )

    def _fence(self, name: str) -> None:
        """Refuse what a cluster wants that somebody took the volume from."""
        if self.known[name].epoch < self.epochs.get(name, 0):
            raise JobFailed(f"volume {name} was attached elsewhere")

    def _destroy(self, name: str) -> None:
        del self.known[name]
        del self.storage[name]

    def _take(self, request: Take) -> None:
        name = request.name
        if name in self.known:
            raise JobFailed(f"there is a disk {name} already")
        if request.adopt != (name in self.storage):
            raise JobFailed(f"the volume {name} is there, or is not")
        if request.adopt and request.epoch <= self.epochs.get(name, -1):
            raise JobFailed("the storage has seen a higher epoch")
        if self.statuses.get(request.instance or "") == "running":
            self.epochs[name] = request.epoch
        self.storage.setdefault(name, bytearray(request.size))
        there = len(self.storage[name])
        disk = Disk(name, request.instance, there, epoch=request.epoch)
        self.known[name] = disk


class Docks:
    """Two clusters, the service's records of them, and a worker's hands."""

    def __init__(self, kind: Callable[..., Pier] = Pier) -> None:
        self.storage: dict[str, bytearray] = {}
        self.piers = {name: kind(name, self.storage) for name in "ab"}
        self.domain = StorageDomain.objects.create(name="shared")
        self.servers: dict[str, Server] = {}
        epochs: dict[str, int] = {}
        for name, pier in self.piers.items():
            pier.epochs = epochs
            backend = Backend.objects.create(
                clustername=name, features=["moorage-disks"]
            )
            self.domain.backends.add(backend)
            for number in "12":
                pier.statuses[f"snf-{name}{number}"] = "running"
                self.servers[f"{name}{number}"] = Server.objects.create(
                    name=f"{name}{number}",
                    instance=f"snf-{name}{number}",
                    userid="anna",
                    project="red",
                    backend=backend,
                )
        self.type = VolumeType.objects.create(
            name="fast", disk_template="ext_named", domain=self.domain, is_default=True
        )
        self.anna = Caller("anna", "red", request_id="req-1")

    def connect(self, backend: Backend) -> Pier:
        """Return a cluster's door."""
        return self.piers[backend.clustername]

    def send(self) -> None:
        """Send all that is due."""
        while send_next(self.connect):
            pass

    def look(self) -> None:
        """Look once at every job that a verb waits for."""
        Operation.objects.filter(ended=None).exclude(job=None).update(
            look_at=timezone.now()
        )
        for _ in range(Operation.objects.filter(ended=None).count()):
            look_next(self.connect)

    def listen(self) -> None:
        """Hear all that the clusters have told."""
        for backend in Backend.objects.all():
            pier = self.connect(backend)
            if pier.silent:
                continue
            for heard in pier.events(backend.event_number):
                hear(backend, heard, pier)

    def settle(self) -> None:
        """Let everything come to its end, by events."""
        for pier in self.piers.values():
            if not pier.silent:
                pier.run()
        while remove_next(self.connect) or Outbox.objects.exists():
            Outbox.objects.update(not_before=timezone.now())
            self.send()
            for pier in self.piers.values():
                pier.run()
            self.listen()

    def again(self, volume: Volume) -> Volume:
        """Return a volume as it is now."""
        return Volume.objects.select_related("attachment").get(pk=volume.pk)
