# SPDX-License-Identifier: BSD-2-Clause
"""What users and administrators want, and what guests write."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from cloud_berths import Killed
from cloud_model import Known, Rest, Wish
from cloud_truths import Truths
from cloud_world import MOST, PICK, step
from hypothesis import strategies as st

from moorage_cloud.errors import Refusal
from moorage_cloud.models import Attachment, Server, Snapshot, Volume
from moorage_cloud.verbs import (
    NewVolume,
    accept,
    attach,
    check_data,
    create,
    delete,
    delete_snapshot,
    detach,
    extend,
    offer,
    remove,
    reset_status,
    take_snapshot,
    withdraw,
    without_data,
)


class Users(Truths):
    """Everything that can be wanted."""

    @step(
        size=st.integers(1, 3),
        where=st.one_of(st.none(), PICK),
        legacy=st.booleans(),
        goes=st.booleans(),
        at=st.integers(-10, 60),
    )
    def creates(
        self, size: int, where: int | None, legacy: bool, goes: bool, at: int
    ) -> None:
        """Make a volume, perhaps with its server; an earlier version's has its name."""
        if _many(self.records.volumes):
            return
        server = None if where is None else self.server(where)
        new = NewVolume(
            size=size,
            volume_type=self.docks.type,
            server=server,
            delete_on_termination=goes,
        )
        before = {one.pk for one in self.records.volumes}
        with self.dying(at), suppress(Refusal):
            create(self.who(), new)
        for volume in [one for one in self.records.volumes if one.pk not in before]:
            known = Known(f"snf-vol-{volume.pk}", "red", size, Rest("available"))
            known.goes_with_server = goes
            if legacy and server is None:
                known.name = f"uuid-{volume.pk}.ext.disk0"
                volume.legacy_backend_volume_uuid = known.name
                volume.save()
            self.model.volumes[volume.pk] = known
            if server:
                self.granted(known, Wish("attach", server.pk))

    @step(one=PICK, where=PICK)
    def attaches(self, one: int, where: int) -> None:
        server, who = self.server(where), self.who()
        self._wants(
            one,
            Wish("attach", server.pk),
            lambda volume: attach(who, volume, server),
        )

    @step(one=PICK)
    def detaches(self, one: int) -> None:
        who = self.who()
        self._wants(one, Wish("detach"), lambda volume: detach(who, volume))

    @step(one=PICK)
    def deletes(self, one: int) -> None:
        who = self.who()
        self._wants(one, Wish("delete"), lambda volume: delete(who, volume))

    @step(one=PICK, more=st.integers(0, 2))
    def extends(self, one: int, more: int) -> None:
        volume, who = self.volume(one), self.who()
        if volume:
            size = volume.size + more
            self.wishes(
                volume, Wish("extend", size=size), lambda it: extend(who, it, size)
            )

    @step(one=PICK)
    def takes_by_force(self, one: int) -> None:
        volume = self.volume(one)
        if volume:
            self.forces(volume)

    @step(one=PICK)
    def has_it_looked_for(self, one: int) -> None:
        who = self.who()
        self._wants(one, Wish("check"), lambda volume: check_data(who, volume))

    @step(one=PICK)
    def says_that_there_is_no_data(self, one: int) -> None:
        """An administrator knows, and does not say so of data that is there."""
        volume, who = self.volume(one), self.who()
        if volume and self.known_of(volume).name not in self.docks.storage:
            self.wishes(volume, Wish("no data"), lambda it: without_data(who, it))

    @step(one=PICK)
    def says_that_it_is_in_error(self, one: int) -> None:
        volume = self.volume(one)
        if volume is None:
            return
        self.observe()
        known = self.known_of(volume)
        with suppress(Refusal):
            reset_status(self.who(), volume, "error")
            known.rest = Rest("error", known.rest.server)

    # -- snapshots ---------------------------------------------------------------------

    @step(one=PICK)
    def takes_a_snapshot(self, one: int) -> None:
        volume = self.volume(one)
        if volume is None or _many(self.records.copies):
            return
        self.observe()
        with suppress(Refusal):
            copy = take_snapshot(self.who(volume.project), volume)
            name = f"snf-snap-{volume.pk}-{copy.number}"
            known = Known(name, volume.project, volume.size, Rest("creating"))
            self.model.copies[copy.pk] = known
            self.granted(known, Wish("copy"))

    @step(one=PICK)
    def deletes_a_snapshot(self, one: int) -> None:
        copy, who = self.snapshot(one), self.who()
        if copy:
            self.wishes(copy, Wish("delete"), lambda it: delete_snapshot(who, it))

    # -- transfers ---------------------------------------------------------------------

    @step(one=PICK)
    def offers_it(self, one: int) -> None:
        volume = self.volume(one)
        if volume is None:
            return
        self.observe()
        with suppress(Refusal):
            self.offers.append(offer(self.who(), volume))
            known = self.known_of(volume)
            known.rest = Rest("awaiting-transfer", known.rest.server)

    @step(one=PICK, takes=st.booleans(), project=st.sampled_from(["red", "blue"]))
    def ends_an_offer(self, one: int, takes: bool, project: str) -> None:
        """Somebody takes what was offered, or it is not offered any more."""
        if not self.offers:
            return
        self.observe()
        made, key = self.offers.pop(one % len(self.offers))
        known = self.model.volumes[made.volume_id]
        with suppress(Refusal):
            if takes:
                accept(self.who(project), made, key)
                known.project = project
                for copy in made.volume.snapshots.all():
                    self.model.copies[copy.pk].project = project
            else:
                withdraw(self.who(), made)
            assert known.rest.server is None, "an offered volume is on a server"
            known.rest = Rest("available")

    # -- servers -----------------------------------------------------------------------

    @step(one=PICK)
    def starts_from_it(self, one: int) -> None:
        """A server that has a volume starts from it."""
        volume = self.volume(one)
        place = volume.place if volume else None
        if volume is None or place is None or volume.status != "in-use":
            return
        if not Attachment.objects.filter(server=place.server, index=0).exists():
            Attachment.objects.filter(pk=place.pk).update(index=0)
            self.known_of(volume).starts_server = True

    @step(one=PICK)
    def removes_a_server(self, one: int) -> None:
        """And another one is there instead, when its cluster has done so."""
        self.observe()
        with suppress(Refusal, Killed):
            self.model.leaving.add(self.server(one).pk)
            remove(self.who(), self.server(one))
        self.observe()

    @step(one=PICK)
    def makes_a_server(self, one: int) -> None:
        old = Server.objects.get(pk=self.server(one).pk)
        if not old.deleted:
            return
        name = f"snf-new-{next(self.fresh)}"
        self.berths[old.backend.clustername].statuses[name] = "running"
        made = Server.objects.create(
            name=name,
            instance=name,
            userid="anna",
            project="red",
            backend=old.backend,
        )
        self.servers[one % len(self.servers)] = made

    # -- guests ------------------------------------------------------------------------

    @step(one=PICK)
    def writes(self, one: int) -> None:
        """A guest writes to a disk that it has."""
        wide = sorted(name for berth in self.berths.values() for name in berth.wide)
        if wide:
            name = wide[one % len(wide)]
            self.written += 1
            text = b"%08d" % self.written
            self.docks.storage[name][:8] = text
            self.model.data[name] = text

    @step(one=PICK)
    def moves(self, one: int) -> None:
        for berth in self.berths.values():
            for name in sorted(berth.wide)[one:]:
                berth.moves(name)

    def _wants(self, one: int, wish: Wish, verb: Any) -> None:
        volume = self.volume(one)
        if volume:
            self.wishes(volume, wish, verb)


def _many(things: Sequence[Volume | Snapshot]) -> bool:
    return len([one for one in things if not one.deleted]) >= MOST
