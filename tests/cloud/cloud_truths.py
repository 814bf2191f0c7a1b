# SPDX-License-Identifier: BSD-2-Clause
"""What must be so after each step, whatever happened."""

from collections import Counter

from cloud_berths import Berth
from cloud_model import ENDED, MIB, OFFERED, Known, Rest, Wish
from cloud_world import World
from django.db import connection
from hypothesis.stateful import invariant

from moorage_cloud.models import Backend, Snapshot, Volume
from moorage_cloud.verbs import force_detach
from moorage_cloud.work import compare, remove_next


class Truths(World):
    """Compares the service with the model, and both with the clusters."""

    # -- what has come to its end ------------------------------------------------------

    def observe(self) -> None:
        """Let the model take note of what has ended, and of what servers let go of."""
        records = self.records
        for volume in records.volumes:
            known = self.model.volumes.get(volume.pk)
            if known is None or known.gone:
                continue
            self._left_a_server(volume, known)
            if (volume.pk, None) not in records.busy:
                place = volume.place
                server = place.server_id if place else None
                self._rests(known, Rest(volume.status, server))
        for copy in records.copies:
            known = self.model.copies.get(copy.pk)
            busy = (copy.volume_id, copy.pk) in records.busy
            if known and not known.gone and not busy:
                self._rests(known, Rest(copy.status))

    def _rests(self, known: Known, now: Rest) -> None:
        if known.wish:
            stored = self.docks.storage.get(known.name)
            size = None if stored is None else len(stored)
            self.model.ended(known, now, size)
        assert now == known.rest, (known, now)
        assert now.status in {*ENDED, OFFERED}

    def _left_a_server(self, volume: Volume, known: Known) -> None:
        """Take note of what the removal of a server did with its volumes."""
        if known.rest.server not in self.model.leaving or known.wish:
            return
        last = volume.operations.filter(snapshot=None).last()
        if volume.status == "deleted" and known.starts_server:
            self.model.begins(known, Wish("perish"))
        elif last and last.verb in {"detach", "delete"} and last.pk not in self.seen:
            self.seen.add(last.pk)
            if last.verb == "delete":
                assert known.goes_with_server
                assert not volume.snapshots.filter(deleted=False).exists()
            self.model.begins(known, Wish(last.verb))

    def the_model_agrees(self) -> None:
        """It knows each volume, and each is where it may be."""
        self.observe()
        assert {one.pk for one in self.records.volumes} == self.model.volumes.keys()
        assert {one.pk for one in self.records.copies} == self.model.copies.keys()

    # -- what must be so ---------------------------------------------------------------

    @invariant()
    def all_is_well(self) -> None:
        """Look at everything; an example that failed names this and not each."""
        type(self).steps += 1
        self.the_model_agrees()
        self.no_byte_is_lost()
        self.one_cluster_writes()
        self.the_quota_is_what_there_is()
        self.shown_is_what_the_guest_has()
        self.everything_under_way_goes_on()
        self.no_cluster_does_it_twice()

    def no_byte_is_lost(self) -> None:
        for name, data in self.model.data.items():
            assert self.docks.storage[name][:8] == data, name

    def one_cluster_writes(self) -> None:
        wide = [name for berth in self.berths.values() for name in berth.wide]
        assert len(wide) == len(set(wide))
        steady = [berth for berth in self.berths.values() if not berth.was_off]
        wide = [name for berth in steady for name in berth.wide]
        for known in self.model.volumes.values():
            if known.wish is None and known.rest.server is None:
                assert known.name not in wide, f"a guest has {known.name}"

    def the_quota_is_what_there_is(self) -> None:
        for project in ("red", "blue"):
            for resource, number in self.model.usage(project).items():
                for row in (resource, f"{resource}_fast"):
                    used = self.records.usage.get((project, row), 0)
                    assert used == number, (project, row, used, number)

    def shown_is_what_the_guest_has(self) -> None:
        """And what is deleted, is nowhere; what has data, is known to have it."""
        for volume in self.records.volumes:
            known = self.model.volumes[volume.pk]
            if volume.server and not known.wish:
                berth = self.berths[volume.server.backend.clustername]
                disk = berth.known[known.name]
                assert disk.instance == volume.server.instance
            self._storage_agrees(volume, known)
        for copy in self.records.copies:
            self._storage_agrees(copy, self.model.copies[copy.pk])

    def _storage_agrees(self, thing: Volume | Snapshot, known: Known) -> None:
        stored = self.docks.storage.get(known.name)
        if known.gone:
            assert stored is None, f"{known.name} was deleted, and is there"
        elif known.wish is None and not known.unsure:
            assert thing.initialized == (stored is not None), known
            size = known.size * MIB if stored is None else len(stored)
            assert size == known.size * MIB or (known.roomy and size < known.size * MIB)
            assert thing.size == known.size

    def everything_under_way_goes_on(self) -> None:
        """A verb waits for a message or a job: for one of them, and never for none."""
        messages = set(self.records.messages)
        for one in self.records.under_way:
            assert (one.pk in messages) != (one.job is not None), one
            messages.discard(one.pk)
        assert not messages, "a message of what is over"

    def no_cluster_does_it_twice(self) -> None:
        """Of a wish, each act is one job, however often it was asked for."""
        made = Counter(
            said
            for berth in self.berths.values()
            for key, said in berth.reasons.items()
            if not key.startswith("leave-")
        )
        assert max(made.values(), default=1) == 1, made

    # -- the end -----------------------------------------------------------------------

    def removes_one(self) -> bool:
        found = remove_next(self.docks.connect)
        self.observe()
        return found

    def rest(self) -> None:
        """Let everything end that can, and see that everything has."""
        self.end_everything()
        off = {self.backend(where).pk for where in self.off}
        held = {
            (one.volume_id, one.snapshot_id)
            for one in self.records.under_way
            if one.backend_id in off
        }
        for number, known in self.model.volumes.items():
            assert (number, None) in held or known.wish is None, known
        for copy in self.records.copies:
            known = self.model.copies[copy.pk]
            assert (copy.volume_id, copy.pk) in held or known.wish is None, known

    def everything_is_set_right(self) -> None:
        """What a comparison finds is set right by it: a second one finds nothing."""
        self.sets_right(list(Backend.objects.filter(offline=False)))
        self.end_everything()
        self.sets_right(list(Backend.objects.filter(offline=False)))
        self.end_everything()
        on = list(Backend.objects.filter(offline=False))
        left = [one for one in compare(on, self.docks.connect) if one.repair]
        assert left == [], left
        assert [one for one in self.model.volumes.values() if one.wish] == []
        for berth in self.berths.values():
            assert berth.name in self.off or berth.was_off or self._tidy(berth)

    def _tidy(self, berth: Berth) -> bool:
        """Whether a cluster has only what somebody wants it to have."""
        wanted = {
            self.model.volumes[one.pk].name
            for one in self.records.volumes
            if one.server and one.server.backend.clustername == berth.name
        }
        return berth.known.keys() <= wanted

    def sets_right(self, backends: list[Backend]) -> None:
        """Have everything set right that a comparison finds."""
        self.observe()
        for one in list(compare(backends, self.docks.connect)):
            if one.repair is None:
                continue
            one.repair()
            self.was_found()

    def was_found(self) -> None:
        """Let the model believe what a comparison found of volumes that rest."""
        for volume in self.records.volumes:
            known = self.model.volumes[volume.pk]
            if known.wish is None and not known.gone:
                place = volume.place
                known.rest = Rest(volume.status, place.server_id if place else None)
                if known.roomy:  # until somebody has it, nobody can tell
                    known.size = volume.size

    def teardown(self) -> None:
        if not hasattr(self, "model"):
            return
        for where, berth in self.berths.items():
            if where not in self.off:
                berth.silent = berth.deaf = False
            berth.meanwhile, berth.kills = None, False
        for volume in self.records.volumes:
            if self.waits_for_what_is_off(volume):
                self.forces(volume)
        self.rest()
        self.all_is_well()
        self.everything_is_set_right()
        self.all_is_well()
        connection.close()

    def forces(self, volume: Volume) -> None:
        """Take a volume from its server by force."""
        verb = "cut off" if self.waits_for_what_is_off(volume) else "detach"
        who = self.who()
        self.wishes(volume, Wish(verb), lambda one: force_detach(who, one))

    def waits_for_what_is_off(self, volume: Volume) -> bool:
        """Whether a cluster that is off has it, or works on it."""
        off = {self.backend(where).pk for where in self.off}
        ways = [one for one in self.records.under_way if one.volume_id == volume.pk]
        works = next((one.backend_id for one in ways if not one.snapshot_id), None)
        return (volume.server.backend_id if volume.server else works) in off
