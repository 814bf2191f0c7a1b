# SPDX-License-Identifier: BSD-2-Clause
"""Each verb is failed at each of its steps, on the cluster and in the worker.

Whatever fails, and wherever: the volume is where it was or where it was to be, record,
cluster and storage say the same, the quota is right, its data is there, and who asks
again gets what was asked for.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
from cloud_world import empty
from django.utils import timezone
from sim_door import INSTANCE, Killed, SimDoor

from moorage_cloud.clusters import Heard, Job
from moorage_cloud.models import (
    Backend,
    Operation,
    Outbox,
    Server,
    Snapshot,
    StorageDomain,
    Volume,
    VolumeType,
)
from moorage_cloud.verbs import (
    Caller,
    NewVolume,
    attach,
    create,
    delete,
    delete_snapshot,
    detach,
    extend,
    quota,
    take_snapshot,
)
from moorage_cloud.work import hear, look_next, send_next
from support.sampling import EVERY_OTHER, sampled

pytestmark = pytest.mark.memory
ANNA = Caller("anna", "red", request_id="req-1")
DATA = "precious"
MOST = 30
"""Steps of a verb, at most."""


class Isle:
    """The service in front of one cluster."""

    def __init__(self, directory: Path) -> None:
        self.door = SimDoor(directory)
        self.backend = Backend.objects.create(
            clustername="a", features=["moorage-disks"]
        )
        domain = StorageDomain.objects.create(name="shared")
        domain.backends.add(self.backend)
        self.server = Server.objects.create(
            name="web",
            instance=INSTANCE,
            userid="anna",
            project="red",
            backend=self.backend,
        )
        kind = VolumeType.objects.create(
            name="fast", disk_template="ext_named", domain=domain
        )
        self.number = create(ANNA, NewVolume(size=1, volume_type=kind)).pk

    @property
    def volume(self) -> Volume:
        return Volume.objects.select_related("attachment").get(pk=self.number)

    def connect(self, _backend: Backend) -> SimDoor:
        return self.door

    def send(self) -> None:
        """Send what waits, in a worker that may be killed."""
        Outbox.objects.update(not_before=timezone.now(), taken_until=None)
        with suppress(Killed):
            send_next(self.connect)

    def settle(self, *, by_events: bool = False) -> None:
        """Let everything come to its end."""
        for _ in range(MOST):
            self.send()
            self.door.finish()
            if by_events:
                self.hear()
            Operation.objects.exclude(job=None).update(look_at=timezone.now())
            look_next(self.connect)
            if not Operation.objects.filter(ended=None).exists():
                return
        raise AssertionError(list(Operation.objects.filter(ended=None).values()))

    def hear(self) -> None:
        """Hear of every job, whether its end was heard of before or not."""
        jobs = {
            number: Job(self.door.job(number).state)
            for number in self.door.cluster.engine.jobs
        }
        hear(self.backend, Heard(len(jobs), jobs), self.door)

    def writes(self) -> None:
        """Let the guest write."""
        volumes = self.door.cluster.nodes.san.volumes
        name = self.volume.backend_volume_uuid
        volumes[name] = volumes[name] | {"data": DATA}

    def place(self) -> tuple[str, bool]:
        """Return where the volume is on record."""
        volume = self.volume
        return volume.status, volume.place is not None

    def agrees(self) -> None:
        """Compare the record with the cluster, the storage and the quota."""
        volume, stored = self.volume, self.door.cluster.nodes.san.volumes
        name = volume.backend_volume_uuid
        disk = self.door.disk(name)
        has = disk is not None and disk.instance == INSTANCE
        assert has == (volume.place is not None), volume.fault
        assert (name in stored) == (volume.initialized and not volume.deleted)
        if name in stored:  # a part of an extension may be done: nothing is cut off
            assert stored[name]["size"] >= volume.size * 1024
        if has and disk:
            assert disk.size == volume.size * 1024
        copies = Snapshot.objects.filter(deleted=False)
        for copy in copies:
            assert (copy.backend_snapshot_name in stored) == copy.initialized
            assert self.door.disk(copy.backend_snapshot_name) is None
        assert len(stored) == (name in stored) + copies.filter(initialized=True).count()
        used = {"volumes": int(not volume.deleted), "snapshots": copies.count()}
        sizes = 0 if volume.deleted else volume.size
        sizes += sum(copy.size for copy in copies)
        assert quota.usage("red").items() >= (used | {"gigabytes": sizes}).items()


class Verb(NamedTuple):
    """What is tried: how it comes to that, what is wanted, and where it leads."""

    before: Callable[[Isle], object]
    does: Callable[[Isle], object]
    ends: set[tuple[str, bool]]


def attached(isle: Isle) -> None:
    attach(ANNA, isle.volume, isle.server)
    isle.settle()
    isle.writes()


def left(isle: Isle) -> None:
    attached(isle)
    detach(ANNA, isle.volume)
    isle.settle()


def copied(isle: Isle) -> None:
    attached(isle)
    take_snapshot(ANNA, isle.volume)
    isle.settle()


def _copy(isle: Isle) -> None:
    for copy in Snapshot.objects.filter(deleted=False):
        delete_snapshot(ANNA, copy)
        isle.settle()
    take_snapshot(ANNA, isle.volume)


FREE, USED, GONE = ("available", False), ("in-use", True), ("deleted", False)
VERBS = {
    "first attach": Verb(
        lambda _isle: None,
        lambda isle: attach(ANNA, isle.volume, isle.server),
        {FREE, USED},
    ),
    "later attach": Verb(
        left, lambda isle: attach(ANNA, isle.volume, isle.server), {FREE, USED}
    ),
    "detach": Verb(attached, lambda isle: detach(ANNA, isle.volume), {FREE, USED}),
    "delete attached": Verb(
        attached,
        lambda isle: delete(ANNA, isle.volume),
        {GONE, ("error_deleting", True), ("error_deleting", False)},
    ),
    "delete detached": Verb(
        left,
        lambda isle: delete(ANNA, isle.volume),
        {GONE, ("error_deleting", False)},
    ),
    "extend attached": Verb(
        attached, lambda isle: extend(ANNA, isle.volume, 2), {USED}
    ),
    "extend detached": Verb(left, lambda isle: extend(ANNA, isle.volume, 2), {FREE}),
    "snapshot": Verb(attached, _copy, {USED}),
    "delete snapshot": Verb(
        copied, lambda _isle: delete_snapshot(ANNA, Snapshot.objects.get()), {USED}
    ),
}


def done(isle: Isle, name: str) -> bool:
    """Whether it came to what was wanted."""
    copies = list(Snapshot.objects.values_list("status", flat=True))
    match name:
        case "extend attached" | "extend detached":
            return isle.volume.size == 2
        case "snapshot":
            return "available" in copies
        case "delete snapshot":
            return copies == ["deleted"]
    places = {"first attach": USED, "later attach": USED, "detach": FREE}
    return isle.place() == places.get(name, GONE)


Mishap = Callable[[SimDoor], Awaitable[object] | None]
ON_THE_CLUSTER: dict[str, Mishap] = {
    "the master dies": SimDoor.dies,
    "the job is cancelled": SimDoor.cancels,
    "the node loses power": SimDoor.power_fails,
}
SOME = [
    pytest.param(name, marks=() if "attach" in name.split() else pytest.mark.slow)
    for name in VERBS
]
"""All, of which only those that attach are fast."""
IN_THE_WORKER = {
    "before": "it is killed before it asks",
    "request": "the cluster does not hear it",
    "after": "it is killed when it has asked, and noted nothing",
    "answer": "the cluster does not answer in time",
}


Begin = Callable[[str], Isle]


@pytest.fixture
def begin(database: str, tmp_path: Path) -> Iterator[Begin]:
    """Return what makes a service in which a verb is about to be tried.

    The one that it made before is ended.
    """
    assert database
    made: list[Isle] = []

    def again(name: str) -> Isle:
        while made:
            made.pop().door.close()
        empty()
        isle = Isle(tmp_path / str(next(fresh)))
        made.append(isle)
        VERBS[name].before(isle)
        return isle

    fresh = count()
    yield again
    for isle in made:
        isle.door.close()


def goes_well(isle: Isle, name: str) -> tuple[list[str], list[str]]:
    """Try it with nothing wrong; return the points and the scripts that it passes."""
    points, scripts = len(isle.door.cluster.points), len(isle.door.scripts())
    VERBS[name].does(isle)
    isle.settle()
    ends_well(isle, name)
    assert done(isle, name), Operation.objects.last().why
    return isle.door.cluster.points[points:], isle.door.scripts()[scripts:]


def ends_well(isle: Isle, name: str) -> None:
    """See that it is before or after, and that nothing was lost."""
    assert isle.place() in VERBS[name].ends, isle.volume.fault
    isle.agrees()
    stored = isle.door.cluster.nodes.san.volumes.get(isle.volume.backend_volume_uuid)
    if stored is not None and name != "first attach":
        assert stored["data"] == DATA


def succeeds_again(isle: Isle, name: str) -> None:
    """Ask for it again, if it came to nothing."""
    if not done(isle, name):
        VERBS[name].does(isle)
        isle.settle()
    assert done(isle, name), (isle.place(), isle.volume.fault)
    ends_well(isle, name)


@pytest.mark.slow
@pytest.mark.parametrize("mishap", ON_THE_CLUSTER)
@pytest.mark.parametrize("name", SOME)
def test_at_each_point_of_its_jobs(begin: Begin, name: str, mishap: str) -> None:
    isle = begin(name)
    points, _scripts = goes_well(isle, name)
    cases = range(len(points))
    for point in [points[at] for at in sampled(cases, EVERY_OTHER, f"{name} {mishap}")]:
        isle = begin(name)
        VERBS[name].does(isle)
        isle.door.at(point, partial(ON_THE_CLUSTER[mishap], isle.door))
        isle.settle()
        ends_well(isle, name)
        succeeds_again(isle, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", VERBS)
def test_with_each_script_that_fails(begin: Begin, name: str) -> None:
    isle = begin(name)
    _points, scripts = goes_well(isle, name)
    for script in sorted(set(scripts)):
        isle = begin(name)
        isle.door.script_fails(script)
        VERBS[name].does(isle)
        isle.settle()
        ends_well(isle, name)
        isle.door.script_fails("")
        succeeds_again(isle, name)


@pytest.mark.parametrize("lost", IN_THE_WORKER)
@pytest.mark.parametrize("name", SOME)
def test_at_each_point_of_the_worker(begin: Begin, name: str, lost: str) -> None:
    """And its end is heard of again and again, or never, and the job is forgotten."""
    for forgets in (False, True):
        isle = begin(name)
        jobs = len(isle.door.cluster.engine.jobs)
        VERBS[name].does(isle)
        isle.door.lost, isle.door.forgets = lost, forgets
        isle.send()
        if lost in {"before", "request"}:
            assert len(isle.door.cluster.engine.jobs) == jobs
        isle.settle(by_events=not forgets)
        ends_well(isle, name)
        assert done(isle, name)
        acts = Operation.objects.last().acts
        assert len(isle.door.cluster.engine.jobs) == jobs + len(acts)
