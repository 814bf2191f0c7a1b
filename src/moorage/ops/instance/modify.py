# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance modify``: disks, cards, parameters, all in one job."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from moorage.errors import BadInput, Conflict
from moorage.jobs import Lock, Planner, Question, Sought, Task, View, once
from moorage.jobs.results import Changed
from moorage.model import Claim, Disk, pair_of
from moorage.ops.filling import conversion
from moorage.ops.guests.liveness import check_unused, seek
from moorage.ops.instance import memory
from moorage.ops.instance.base import OnInstance
from moorage.ops.instance.change_request import ChangeRequest
from moorage.ops.instance.changing_cards import CardChanges
from moorage.ops.instance.changing_disks import DiskChanges, after
from moorage.ops.instance.changing_parameters import ParameterChanges
from moorage.ops.instance.converting import NewStorage
from moorage.ops.planning import disk_checks, placement, policy
from moorage.ops.volumes import pairs


class Parts(NamedTuple):
    """What a request comes to: each part knows what it needs, and what it does."""

    storage: NewStorage
    disks: DiskChanges
    cards: CardChanges
    rest: ParameterChanges


class InstanceSetParams(ChangeRequest, Planner, frozen=True, kw_only=True):
    """Modify an instance."""

    op_id = "OP_INSTANCE_SET_PARAMS"

    @once
    def changes(self, view: View) -> Parts:
        """Return what is to be changed."""
        return Parts(
            NewStorage(self, view),
            DiskChanges(self, view),
            CardChanges(self, view),
            ParameterChanges(self, view),
        )

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the instance and its disks, and what the changes need."""
        yield from OnInstance.locks(self, view)
        for part in self.changes(view):
            yield from part.locks()

    def _lets_go(self, view: View) -> bool:
        """Whether volumes are let go of: disks are converted, removed or detached."""
        return self.converts or self.changes(view).disks.lets_go

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask whether another node has its guest.

        If it gets another primary node, or its disks other storage, or none.
        """
        if self.pnode or self._lets_go(view):
            yield from seek(view.config, self.instance(view))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it runs, and what its node reaches."""
        yield from OnInstance.questions(self, view)
        for part in self.changes(view):
            yield from part.questions()

    def check(self, view: View) -> None:
        """Refuse before anything is done, whatever part of the request is off."""
        if not self._anything():
            raise BadInput("nothing to change was named", hint="see --help")
        storage, disks, cards, rest = self.changes(view)
        storage.check()
        disk_checks.check_rate(self.rate)
        rest.check_words()
        if self._lets_go(view):
            check_unused(view, self.instance(view))
        if self.disks:
            disks.check()
            self._check_together(view)
        self._check_folder(view)
        cards.check()
        rest.check()
        self._check_size(view)

    def _check_together(self, view: View) -> None:
        """Raise `BadInput` unless one change of a disk goes with the others."""
        try:
            self._planned(view)
        except Conflict as conflict:
            raise BadInput(f"the changes do not fit together: {conflict}") from conflict

    def _check_folder(self, view: View) -> None:
        """Raise `BadInput` if a directory for image files is named, and none comes."""
        if not self.file_storage_dir:
            return
        storage, disks, _, _ = self.changes(view)
        wishes = [*disks.wishes, *(one.wanted for one in storage.conversions)]
        if not any(wanted.kind.capabilities.images for wanted in wishes):
            raise BadInput(
                "no disk that comes is an image file: it needs no directory",
                hint="leave --file-storage-dir out",
            )

    def _check_size(self, view: View) -> None:
        """Raise unless policy and storage take it as it will be."""
        instance, (storage, disks, _, rest) = self.instance(view), self.changes(view)
        if not self.ignore_capacity:
            what = f"instance {instance.name}"
            placement.check_rooms(view, what, disks.rooms())
            conversion.check_room(view, storage.conversions)
            if rest.gets_memory:
                memory.check_size(view, rest.with_memory)
        if not self.ignore_ipolicy:
            then = after(view, self._planned(view)).config
            group = view.config.group_of(instance)
            wanted = policy.sizes_of(then, then.instance(instance.uuid))
            policy.check_change(view.config, group, instance, wanted)

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the room of new disks, and the memory."""
        storage, disks, cards, rest = self.changes(view)
        yield from disks.rooms()
        if self.disks:
            yield from pairs.claims(map(pair_of, self._new_disks(view)))
        yield from storage.claims()
        yield from rest.claims()
        yield from cards.claims()

    def _new_disks(self, view: View) -> list[Disk]:
        """Return the disks that it makes."""
        then = after(view, self._planned(view)).config
        found = then.disks_of(then.instance(self.instance(view).uuid))
        return [disk for disk in found if disk.uuid not in view.config.objects]

    def warnings(self, view: View) -> Iterator[str]:
        """Name what will have no effect, and what nobody looked at."""
        yield from self.changes(view).rest.warnings()
        yield from self.changes(view).storage.warnings()
        yield from self.changes(view).disks.warnings()

    def _anything(self) -> bool:
        told = (self.disks, self.nics, self.hvparams, self.beparams, self.osparams)
        return (
            any((*told, self.os_name, self.osparams_private, self.pnode))
            or self.converts
            or self.offline is not None
            or self.runtime_mem is not None
        )

    @once
    def _planned(self, view: View) -> list[Task]:
        storage, disks, cards, rest = self.changes(view)
        changed, then = disks.tasks()
        plugged = list(cards.tasks(then))
        then = after(then, plugged)
        more = (*rest.tasks(then), *storage.tasks(), *disks.destroyed(then))
        return [*changed, *plugged, *more]

    def tasks(self, view: View) -> Iterator[Task]:
        """Verify; change disks, one after the other, cards, and the rest; destroy."""
        return iter(self._planned(view))

    def result(self, view: View, _results: Sequence[Any]) -> list[Changed]:
        """Return what was changed, in Ganeti's words."""
        _, disks, cards, rest = self.changes(view)
        return [*disks.told(), *cards.told(), *rest.told()]
