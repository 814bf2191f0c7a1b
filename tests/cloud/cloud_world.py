# SPDX-License-Identifier: BSD-2-Clause
"""The service, two clusters, and the hands of whoever lets something happen to them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any, ClassVar

from cloud_berths import Berth, Killed
from cloud_model import Known, Model, Rest, Wish
from django.db import connection
from django.utils import timezone
from docks import Docks
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from msgspec import Struct

from moorage_cloud.errors import Refusal
from moorage_cloud.models import (
    Backend,
    Limit,
    Operation,
    Outbox,
    Server,
    Snapshot,
    StorageDomain,
    Transfer,
    Usage,
    Volume,
    VolumeType,
)
from moorage_cloud.verbs import Caller

PICK = st.integers(0, 7)
WHERE = st.sampled_from("ab")
MOST = 4
"""Volumes at a time."""


class Records(Struct, frozen=True):
    """What is on record; read once, as long as nothing is written.

    Attributes
    ----------
    busy
        Volumes, or snapshots of them, of which a verb is under way.
    """

    version: int
    volumes: list[Volume]
    copies: list[Snapshot]
    under_way: list[Operation]
    messages: set[int]
    usage: dict[tuple[str, str], int]

    @property
    def busy(self) -> set[tuple[int | None, int | None]]:
        return {(one.volume_id, one.snapshot_id) for one in self.under_way}

    @classmethod
    def read(cls, version: int) -> "Records":
        """Read them."""
        volumes = Volume.objects.select_related("attachment__server__backend")
        messages = Outbox.objects.values_list("operation", flat=True)
        return cls(
            version,
            list(volumes.order_by("pk")),
            list(Snapshot.objects.order_by("pk")),
            list(Operation.objects.filter(ended=None)),
            set(messages.order_by()),
            {(one.project, one.resource): one.in_use for one in Usage.objects.all()},
        )


def step(**choices: Any) -> Callable[[Any], Any]:
    """Make a rule of a method: after it the worker may go on for a moment.

    What is silent or off is so for some steps. The method can be called without that.
    """

    def made(method: Any) -> Any:
        def stepped(self: "World", *, worked: bool, **chosen: Any) -> None:
            method(self, **chosen)
            if worked:
                self.flows()
            self.tick()

        stepped.__name__ = method.__name__
        name = f"_{method.__name__}_"
        return Both(name, method, rule(worked=st.booleans(), **choices)(stepped))

    return made


class Both:
    """A method, and beside it the rule that is made of it."""

    def __init__(self, name: str, method: Any, made: Any) -> None:
        self._name, self._method, self._made = name, method, made

    def __set_name__(self, owner: type, name: str) -> None:
        setattr(owner, self._name, self._made)
        setattr(owner, name, self._method)


class World(RuleBasedStateMachine):
    """The service in front of two clusters, and the model of both."""

    steps: ClassVar[int] = 0

    def found(self, *, poor: bool) -> None:
        """Found it; a poor cluster cannot have a disk that no instance has."""
        empty()
        self.docks = Docks(Berth)
        self.model = Model()
        self.berths: dict[str, Berth] = {}
        self.written = 0
        self.off: set[str] = set()
        self._read: Records | None = None
        self._looks = False
        self.seen: set[int] = set()
        self.fresh = count(1)
        self.servers = list(self.docks.servers.values())
        self.offers: list[tuple[Transfer, str]] = []
        for name, pier in self.docks.piers.items():
            assert isinstance(pier, Berth)
            self.berths[name] = pier
            pier.model = self.model
            if poor:
                self._impoverish(pier)

    def _impoverish(self, pier: Berth) -> None:
        backend = Backend.objects.get(clustername=pier.name)
        Backend.objects.filter(pk=backend.pk).update(features=[])
        pier.statuses["snf-helper-1"] = "ADMIN_down"
        Server.objects.create(
            name="helper",
            instance="snf-helper-1",
            backend=backend,
            helper=True,
            operstate=Server.State.STOPPED,
        )

    # -- hands -------------------------------------------------------------------------

    def who(self, project: str = "red") -> Caller:
        """Return somebody with a request of its own."""
        return Caller("anna", project, request_id=f"req-{next(self.fresh)}")

    @property
    def records(self) -> Records:
        """What is on record now."""
        version = connection.connection.total_changes
        if self._read is None or self._read.version != version:
            self._looks = True
            self._read = Records.read(version)
            self._looks = False
        return self._read

    def volume(self, one: int) -> Volume | None:
        """Return a volume that is there."""
        known = [volume for volume in self.records.volumes if not volume.deleted]
        return known[one % len(known)] if known else None

    def snapshot(self, one: int) -> Snapshot | None:
        """Return a snapshot that is there."""
        known = [copy for copy in self.records.copies if not copy.deleted]
        return known[one % len(known)] if known else None

    def server(self, one: int) -> Server:
        """Return a server of a user."""
        return self.servers[one % len(self.servers)]

    def backend(self, where: str) -> Backend:
        """Return the record of a cluster."""
        return Backend.objects.get(clustername=where)

    def wishes(
        self, thing: Volume | Snapshot, wish: Wish, verb: Callable[[Any], object]
    ) -> None:
        """Let somebody want something; tell the model if it was granted."""
        self.observe()
        thing = self._now(thing)
        with suppress(Refusal, Killed):
            verb(thing)
        now = self._now(thing)
        if (now.generation, now.size, now.deleted) == (
            *(thing.generation, thing.size, thing.deleted),
        ):
            return  # it was refused, or so already
        known = self.known_of(now)
        self.granted(known, wish, stored=thing.initialized)
        self.observe()

    def granted(self, known: Known, wish: Wish, *, stored: bool = False) -> None:
        """Tell the model of a wish; `stored` says whether it was known to have data."""
        if wish.verb == "no data":
            known.rest, known.unsure, known.doomed = Rest("available"), False, False
        elif wish.verb == "cut off":
            self.model.cut_off(known, stored=stored)
        else:
            self.model.begins(known, wish)

    def _now(self, thing: Volume | Snapshot) -> Volume | Snapshot:
        every = [*self.records.volumes, *self.records.copies]
        return next(one for one in every if one == thing)

    def known_of(self, thing: Volume | Snapshot) -> Known:
        """Return what the model knows of it."""
        known = self.model.volumes
        return (known if isinstance(thing, Volume) else self.model.copies)[thing.pk]

    def observe(self) -> None:
        """Let the model take note of what has ended."""
        raise NotImplementedError

    # -- the machinery -----------------------------------------------------------------

    def run_job(
        self, where: str, which: int = 0, *, cancel: bool = False, ends: str = ""
    ) -> None:
        """Let a cluster run one of its jobs."""
        berth = self.berths[where]
        if where in self.off or not berth.waiting:
            return
        numbers = sorted(berth.waiting)
        berth.late, berth.half = ends == "late", ends == "half-way"
        berth.run(numbers[which % len(numbers)], cancel=cancel)
        berth.late = berth.half = False

    def time_passes(self) -> None:
        """Let whatever waits for a time be due, and every lease be over."""
        now = timezone.now()
        if self.records.messages:
            Outbox.objects.update(not_before=now, taken_until=None)
        if self.records.under_way:
            Operation.objects.filter(ended=None).exclude(job=None).update(look_at=now)

    @contextmanager
    def dying(self, at: int) -> Iterator[None]:
        """Die before a statement; nobody else does, nor who looks at the records.

        Parameters
        ----------
        at
            Which one, counted from 0; below 0 for the one after the first commit.
        """
        left, within = count(at, -1), False

        def die(run: Any, *asked: Any) -> Any:
            nonlocal within
            if self._looks:
                return run(*asked)
            committed = within and not connection.in_atomic_block
            within = within or connection.in_atomic_block
            if next(left) == 0 or (at < 0 and committed):
                raise Killed
            return run(*asked)

        with suppress(Killed), connection.execute_wrapper(die):
            yield

    def end_everything(self) -> None:
        """Let everything come to its end, with nothing going wrong any more."""
        for _ in range(30):
            self.time_passes()
            self.docks.send()
            for where in self.berths:
                while self.berths[where].waiting and where not in self.off:
                    self.run_job(where)
            self.docks.look()
            while self.removes_one():
                pass
            off = {self.backend(where).pk for where in self.off}
            if {one.backend_id for one in self.records.under_way} <= off:
                break

    def flows(self) -> None:
        """Let the worker and the clusters go on for a moment."""
        raise NotImplementedError

    def tick(self) -> None:
        """Let what is silent answer again, and what is off come back, in time."""
        raise NotImplementedError

    def removes_one(self) -> bool:
        """Go on with the removal of servers."""
        raise NotImplementedError


def empty() -> None:
    """Forget all that an earlier run left."""
    for model in (Outbox, Operation, Transfer, Snapshot, Volume, Server):
        model.objects.all().delete()
    for model in (Limit, Usage, VolumeType, StorageDomain, Backend):
        model.objects.all().delete()
