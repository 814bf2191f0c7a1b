# SPDX-License-Identifier: BSD-2-Clause
"""Users, a worker that dies, and clusters that are silent, late or forgetful.

Whatever happens, in whatever order: no byte of a volume is lost, no two clusters can
write to one, the quota is what there is, and in the end every verb has ended.
"""

import os
from contextlib import suppress
from typing import Any

from django.db import connection
from django.utils import timezone
from docks import Docks
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from moorage_cloud.clusters import ClusterSilent, Heard, JobState
from moorage_cloud.errors import Refusal
from moorage_cloud.models import (
    Backend,
    Limit,
    Operation,
    Outbox,
    Server,
    StorageDomain,
    Usage,
    Volume,
    VolumeType,
)
from moorage_cloud.requests import from_json
from moorage_cloud.verbs import (
    NewVolume,
    attach,
    create,
    delete,
    detach,
    extend,
    force_detach,
    quota,
)
from moorage_cloud.work import hear, look_next, send_next

STEPS = 60
COUNTED = (Limit, Usage)
PICK = st.integers(0, 7)
RESTS = {"available", "in-use", "deleted", "error", "error_deleting"}


class Harbour(RuleBasedStateMachine):
    """The service, two clusters and everything that can go wrong between them."""

    @initialize()
    def begin(self) -> None:
        empty()
        self.docks = Docks()
        self.bytes: dict[str, bytes] = {}
        self.written = 0
        self.cut: set[tuple[str, str]] = set()
        for size in (1, 2):
            self.creates(size)

    # -- users -------------------------------------------------------------------------

    @rule(size=st.integers(1, 3))
    def creates(self, size: int) -> None:
        if Volume.objects.filter(deleted=False).count() < 4:
            create(self.docks.anna, NewVolume(size=size, volume_type=self.docks.type))

    @rule(one=PICK, where=PICK)
    def attaches(self, one: int, where: int) -> None:
        server = list(self.docks.servers.values())[where % 4]
        self._user(one, lambda volume: attach(self.docks.anna, volume, server))

    @rule(one=PICK)
    def detaches(self, one: int) -> None:
        self._user(one, lambda volume: detach(self.docks.anna, volume))

    @rule(one=PICK)
    def deletes(self, one: int) -> None:
        self._user(one, lambda volume: delete(self.docks.anna, volume))

    @rule(one=PICK, more=st.integers(0, 2))
    def extends(self, one: int, more: int) -> None:
        self._user(
            one, lambda volume: extend(self.docks.anna, volume, volume.size + more)
        )

    @rule(one=PICK)
    def forces(self, one: int) -> None:
        volume = self._volume(one)
        if volume is None or volume.server is None:
            return
        pier = self.docks.connect(volume.server.backend)
        with suppress(Refusal):
            force_detach(self.docks.anna, volume)
            if volume.server.backend.offline:
                self.cut.add((pier.name, volume.backend_volume_uuid))

    @rule(one=PICK)
    def writes(self, one: int) -> None:
        """A guest writes to a disk that it has."""
        known = [
            (pier, disk)
            for pier in self.docks.piers.values()
            for disk in pier.known.values()
            if disk.instance and (pier.name, disk.name) not in self.cut
        ]
        if known:
            _pier, disk = known[one % len(known)]
            self.written += 1
            text = b"%08d" % self.written
            self.docks.storage[disk.name][:8] = text
            self.bytes[disk.name] = text

    @rule(one=PICK, where=PICK)
    def goes_all_the_way(self, one: int, where: int) -> None:
        """Nothing goes wrong for a while: so that deep states are reached."""
        self.attaches(one, where)
        self.flows()
        self.writes(one)

    @rule(
        one=PICK,
        where=PICK,
        verb=st.sampled_from(["attaches", "detaches", "deletes", "extends"]),
        how=st.sampled_from(["runs", "fails", "cancels", "dies_after_asking"]),
        heard=st.sampled_from(["forgets", "loses", "listens"]),
    )
    def goes_wrong(self, one: int, where: int, verb: str, how: str, heard: str) -> None:
        """A verb goes wrong at one step, and what is told of it is lost."""
        more = (where,) if verb in {"attaches", "extends"} else ()
        getattr(self, verb)(one, *more)
        if how == "dies_after_asking":
            self.dies_after_asking()
        self.sends()
        for name in "ab":
            if how != "dies_after_asking":
                getattr(self, how)(name, 0)
            getattr(self, heard)(name)
        self.looks()

    # -- the worker --------------------------------------------------------------------

    @rule()
    def sends(self) -> None:
        Outbox.objects.update(not_before=timezone.now())
        send_next(self.docks.connect)

    @rule()
    def flows(self) -> None:
        self.sends()
        for where in "ab":
            self._run(where, 0)
            self.listens(where)

    @rule()
    def dies_after_asking(self) -> None:
        """The cluster has the request; nobody wrote down the job."""
        message = Outbox.objects.filter(backend__offline=False).first()
        if message:
            pier = self.docks.connect(message.backend)
            with suppress(ClusterSilent):
                pier.submit(from_json(message.request), message.key, "a worker")

    @rule()
    def looks(self) -> None:
        Operation.objects.exclude(job=None).update(look_at=timezone.now())
        look_next(self.docks.connect)

    @rule(where=st.sampled_from("ab"))
    def listens(self, where: str) -> None:
        backend = Backend.objects.get(clustername=where)
        pier = self.docks.connect(backend)
        with suppress(ClusterSilent):
            for heard in pier.events(backend.event_number):
                hear(backend, heard, pier)

    @rule(where=st.sampled_from("ab"), which=PICK)
    def hears_again(self, where: str, which: int) -> None:
        """An entry comes twice, or late."""
        backend = Backend.objects.get(clustername=where)
        pier = self.docks.connect(backend)
        if pier.heard:
            old = pier.heard[which % len(pier.heard)]
            number = backend.event_number
            with suppress(ClusterSilent):
                hear(backend, old, pier)
            Backend.objects.filter(pk=backend.pk).update(event_number=number)

    @rule(where=st.sampled_from("ab"))
    def loses(self, where: str) -> None:
        """What was told meanwhile is never heard."""
        backend = Backend.objects.get(clustername=where)
        pier = self.docks.connect(backend)
        with suppress(ClusterSilent):
            hear(backend, Heard(len(pier.heard), reset=True), pier)

    # -- clusters ----------------------------------------------------------------------

    @rule(where=st.sampled_from("ab"), which=PICK)
    def runs(self, where: str, which: int) -> None:
        self._run(where, which)

    @rule(where=st.sampled_from("ab"), which=PICK)
    def cancels(self, where: str, which: int) -> None:
        self._run(where, which, cancel=True)

    @rule(where=st.sampled_from("ab"), which=PICK)
    def fails(self, where: str, which: int) -> None:
        pier = self.docks.piers[where]
        pier.fails = lambda _request: True
        self._run(where, which)
        pier.fails = lambda _request: False

    @rule(where=st.sampled_from("ab"))
    def forgets(self, where: str) -> None:
        """Ended jobs are archived; no feed tells of them any more."""
        pier = self.docks.piers[where]
        for number, job in list(pier.jobs.items()):
            if job.state is not JobState.UNDER_WAY:
                del pier.jobs[number]
        pier.heard = [Heard(one.number) for one in pier.heard]

    @rule(where=st.sampled_from("ab"), deaf=st.booleans())
    def falls_silent(self, where: str, deaf: bool) -> None:
        self.docks.piers[where].silent = True
        self.docks.piers[where].deaf = deaf

    @rule(where=st.sampled_from("ab"))
    def speaks(self, where: str) -> None:
        self._speak(where)

    @rule(where=st.sampled_from("ab"))
    @precondition(lambda self: any(one.silent for one in self.docks.piers.values()))
    def is_off(self, where: str) -> None:
        """An administrator has switched it off, and says so."""
        pier = self.docks.piers[where]
        if pier.silent:
            pier.deaf = True
            Backend.objects.filter(clustername=where).update(offline=True)

    # -- what must be so ---------------------------------------------------------------

    @invariant()
    def no_byte_is_lost(self) -> None:
        for volume in Volume.objects.all():
            name = volume.backend_volume_uuid
            if volume.deleted or volume.status in {"deleting", "error_deleting"}:
                self.bytes.pop(name, None)
            elif name in self.bytes:
                assert self.docks.storage[name][:8] == self.bytes[name], volume.status

    @invariant()
    def one_cluster_writes(self) -> None:
        have = [
            disk.name
            for pier in self.docks.piers.values()
            for disk in pier.known.values()
            if (pier.name, disk.name) not in self.cut
        ]
        assert len(have) == len(set(have))

    @invariant()
    def the_quota_is_what_there_is(self) -> None:
        assert list(quota.drifts()) == []

    @invariant()
    def shown_is_what_the_guest_has(self) -> None:
        for volume in Volume.objects.filter(status="in-use").select_related(
            "attachment__server__backend"
        ):
            assert volume.server is not None
            pier = self.docks.connect(volume.server.backend)
            disk = pier.known[volume.backend_volume_uuid]
            assert disk.instance == volume.server.instance

    def teardown(self) -> None:
        if not hasattr(self, "docks"):
            return
        for where in self.docks.piers:
            self._speak(where)
        for volume in Volume.objects.filter(attachment__server__backend__offline=True):
            force_detach(self.docks.anna, volume)
        self._end_everything()
        off = Operation.objects.filter(backend__offline=True, ended=None)
        for volume in Volume.objects.exclude(operations__in=off):
            assert volume.status in RESTS, volume.status
        self.no_byte_is_lost()
        self.the_quota_is_what_there_is()
        connection.close()

    def _end_everything(self) -> None:
        for _ in range(20):
            Outbox.objects.update(not_before=timezone.now(), taken_until=None)
            self.docks.send()
            for where, pier in self.docks.piers.items():
                if not Backend.objects.get(clustername=where).offline:
                    pier.run()
            self.docks.look()

    # -- hands -------------------------------------------------------------------------

    def _volume(self, one: int) -> Volume | None:
        known = list(Volume.objects.filter(deleted=False).order_by("pk"))
        return known[one % len(known)] if known else None

    def _user(self, one: int, verb: Any) -> None:
        volume = self._volume(one)
        if volume:
            with suppress(Refusal):
                verb(volume)

    def _run(self, where: str, which: int, *, cancel: bool = False) -> None:
        pier = self.docks.piers[where]
        if Backend.objects.get(clustername=where).offline:
            return  # it is off
        if pier.waiting:
            numbers = sorted(pier.waiting)
            pier.run(numbers[which % len(numbers)], cancel=cancel)

    def _speak(self, where: str) -> None:
        if not Backend.objects.get(clustername=where).offline:
            pier = self.docks.piers[where]
            pier.silent = pier.deaf = False


def empty() -> None:
    """Forget all that an earlier run left."""
    for model in (Outbox, Operation, Volume, Server, *COUNTED, VolumeType):
        model.objects.all().delete()
    StorageDomain.objects.all().delete()
    Backend.objects.all().delete()


def test_whatever_happens_no_byte_is_lost(database, request):
    assert database
    steps = int(os.environ.get("MOORAGE_CLOUD_STEPS", "1200"))
    seed = request.config.getoption("--stateful-seed")
    Harbour._hypothesis_internal_use_seed = seed
    run_state_machine_as_test(
        Harbour,
        settings=settings(
            max_examples=max(steps // STEPS, 1),
            stateful_step_count=STEPS,
            deadline=None,
            phases=(Phase.generate,),  # to make an example smaller takes minutes
            database=None,
        ),
    )
