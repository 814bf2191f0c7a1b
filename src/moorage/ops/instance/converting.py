# SPDX-License-Identifier: BSD-2-Clause
"""Other storage for all disks of an instance: ``gnt-instance modify -t``."""

from collections.abc import Iterator
from functools import cached_property

from moorage.disk_templates import Mirror
from moorage.errors import BadInput, MoorageError, WrongState
from moorage.jobs import Lock, Question, Task, View
from moorage.model import Claim, Disk, Instance, pair_of
from moorage.ops.filling import conversion, conversion_tasks
from moorage.ops.filling.conversion import Conversion
from moorage.ops.guests.foreign import check_ours
from moorage.ops.instance.change_request import Changes
from moorage.ops.instance.mirroring import Mirroring, is_in_place
from moorage.ops.planning import disk_checks
from moorage.ops.volumes import copies
from moorage.ops.volumes.disk_words import DiskSpec, DiskWords
from moorage.storage.templates import template_named


class NewStorage(Changes):
    """The storage that all disks of an instance are to have."""

    @cached_property
    def _disks(self) -> list[tuple[Disk, DiskSpec]]:
        """Each disk with the storage that it is to have."""
        config, asked = self.view.config, self.request
        return [
            (
                disk,
                DiskWords(
                    {"pool": asked.pool, "size": disk.size},
                    template=asked.disk_template,
                    params=asked.ext_params,
                    own=asked.of_disks,
                ).read(config),
            )
            for disk in config.disks_of(self.instance)
        ]

    @cached_property
    def conversions(self) -> list[Conversion]:
        """What is to be done with each disk that is not there already."""
        if not self.request.converts or self.mirroring:
            return []
        second = self.request.remote_node or ""
        if self._mirrors and not second and self.instance.disks:
            self._check_second()
        found = [Conversion(*one, second=second) for one in self._disks]
        return [one for one in found if not one.is_there(self.view)]

    @cached_property
    def mirroring(self) -> Mirroring | None:
        """How second copies come or go, if that is all that is asked for."""
        asked = self.request
        if not asked.converts or not self._disks:
            return None
        if not all(is_in_place(*one) for one in self._disks):
            return None
        return Mirroring(
            self.instance,
            tuple(self._disks),
            asked.remote_node or "",
            waits=asked.wait_for_sync,
            passing=asked.passing,
        )

    @property
    def _parts(self) -> list[Mirroring | Conversion]:
        return [self.mirroring] if self.mirroring else [*self.conversions]

    def locks(self) -> Iterator[Lock]:
        """Hold what conversions need."""
        for one in self._parts:
            yield from one.locks(self.view)

    def questions(self) -> Iterator[Question]:
        """Ask what new storage offers."""
        for one in self._parts:
            yield from one.questions(self.view)

    def check(self) -> None:
        """Raise `Refused` unless each disk can be converted; say which cannot."""
        asked, instance = self.request, self.instance
        if not asked.converts:
            self._check_idle()
            return
        check_ours(self.view, instance, "other storage for its disks")
        if asked.disks:
            raise BadInput(
                "disks are converted, or changed one by one, not both at once"
            )
        if asked.remote_node and not self._mirrors:
            raise BadInput("only mirrored disks have a second node", hint="drop -n")
        if self.mirroring:
            self.mirroring.check(self.view, ignore_capacity=asked.ignore_capacity)
            return
        if not self.conversions:
            to = asked.disk_template or asked.pool
            raise WrongState(_why_none(self.view, instance, to))
        for one in self.conversions:
            _check(self.view, instance, one)
        if asked.remote_node:
            changed = {one.disk.uuid for one in self.conversions}
            self._check_others([d for d in instance.disks if d not in changed])

    @cached_property
    def _mirrors(self) -> bool:
        """Whether the new storage keeps second copies."""
        asked, config = self.request, self.view.config
        if asked.pool:
            template = config.pool(asked.pool).template
        else:
            template = asked.disk_template or ""
        facts = template_named(template).capabilities.facts
        return facts.mirror is Mirror.INTERNAL

    def _check_second(self) -> None:
        if copies.secondary(self.view.config, self.instance) is None:
            raise BadInput(
                f"instance {self.instance.name} has no second node for mirrored disks",
                hint="name one: -n NODE",
            )

    def _check_others(self, stay: list[str]) -> None:
        """Raise `WrongState` if disks that stay as they are have another second node.

        The mirrored disks of an instance follow it to its one secondary node.
        """
        config, name = self.view.config, self.instance.name
        named = config.node(self.request.remote_node or "")
        for pair in filter(None, (pair_of(config.disk(uuid)) for uuid in stay)):
            if named.uuid not in pair.nodes:
                raise WrongState(
                    f"instance {name} has mirrored disks, none of them with a copy on "
                    f"{named.name}: an instance has one secondary node",
                    hint=f"leave -n out; or first: gnt-instance replace-disks -n "
                    f"{named.name} --disks=SLOTS {name}",
                    instance=name,
                )

    def _check_idle(self) -> None:
        asked = self.request
        given = {"ext_params": asked.ext_params, "rate": asked.rate}
        given["remote_node"] = asked.remote_node
        for name, value in given.items():
            if value:
                raise BadInput(
                    f"{name} is for disks that are converted",
                    hint="say to what: -t TEMPLATE",
                )

    def claims(self) -> Iterator[Claim]:
        """Claim the room of new volumes."""
        yield from conversion.claims(self.view, self.conversions)
        if self.mirroring:
            yield from self.mirroring.claims(self.view)

    def warnings(self) -> Iterator[str]:
        """Say which nodes will not reach the new volumes."""
        if self.mirroring:
            yield from self.mirroring.warnings(self.view)
        told = (
            line
            for one in self.conversions
            for line in disk_checks.warnings(
                self.view, one.wanted, one.worker(self.view)
            )
        )
        yield from dict.fromkeys(told)
        yield from conversion_tasks.warnings(self.conversions)

    def tasks(self) -> Iterator[Task]:
        """Yield what gives the disks their new storage."""
        if self.mirroring:
            yield from self.mirroring.tasks(self.view)
        elif self.request.converts:
            rate = self.request.rate
            yield from conversion_tasks.convert(self.view, self.conversions, rate)


def _check(view: View, instance: Instance, one: Conversion) -> None:
    try:
        one.check(view)
    except MoorageError as error:
        slot = instance.disks.index(one.disk.uuid)
        raise type(error)(
            f"disk/{slot} ({one.disk.label}) of {instance.name} cannot be converted: "
            f"{error.message}",
            hint=error.hint,
            **error.facts,
        ) from error


def _why_none(view: View, instance: Instance, to: str | None) -> str:
    if not view.config.disks_of(instance):
        return (
            f"instance {instance.name} has no disks to convert: a disk that is added "
            "names its template"
        )
    return f"all disks of instance {instance.name} are in '{to}' already, as asked for"
