# SPDX-License-Identifier: BSD-2-Clause
"""Other storage for all disks of an instance: ``gnt-instance modify -t``."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from moorage.disk_templates import Mirror
from moorage.errors import BadInput, MoorageError, WrongState
from moorage.jobs import Lock, Question, View
from moorage.model import Disk, Instance, pair_of
from moorage.model.kinds import Rate
from moorage.ops.filling import conversion_tasks
from moorage.ops.filling.conversion import Conversion
from moorage.ops.instance.base import OnInstance
from moorage.ops.instance.mirroring import Mirroring, is_in_place
from moorage.ops.planning import disk_checks
from moorage.ops.volumes import copies, disk_spec
from moorage.storage.templates import template_named


class ConvertingDisks(OnInstance, frozen=True, kw_only=True):
    """An operation that can give all disks of an instance other storage.

    Attributes
    ----------
    disks
        Changes of disks one by one.
    disk_template
        With new disks among the changes, the template of those that name none; without
        any, what all disks are to be converted to.
    pool
        The storage pool that all disks are to be in.
    ext_params
        Parameters of the template or the provider, for disks that are converted.
    remote_node
        The second node, for a template whose data the cluster mirrors.
    rate
        How much is copied in a second at most; 0 for no limit.
    force_params
        Accept parameters that a disk's provider does not list.
    wait_for_sync
        Whether the job lasts until both copies of new mirrored disks are the same.
    ignore_capacity
        Whether it may get more memory or larger disks than there is room for.
    file_storage_dir
        For new image files: a directory below the cluster's.
    passing
        Whether second copies come or go for a journey alone: no template need be
        enabled for that.
    """

    disks: list[list[int | str | dict[str, Any] | None]] = []
    disk_template: str | None = None
    pool: str | None = None
    ext_params: dict[str, Any] = {}
    remote_node: str | None = None
    rate: Rate = 0
    force_params: bool = False
    wait_for_sync: bool = True
    ignore_capacity: bool = False
    file_storage_dir: str | None = None
    passing: bool = False

    @property
    def converts(self) -> bool:
        """Whether disks get other storage."""
        adds = any(one[0] == "add" for one in self.disks)
        return bool(self.disk_template or self.pool) and not adds

    def conversions(self, view: View) -> list[Conversion]:
        """Return what is to be done with each disk that is not there already."""
        if not self.converts or self.mirroring(view):
            return []
        instance = self.instance(view)
        disks = view.config.disks_of(instance)
        if self._mirrors(view) and not self.remote_node and disks:
            self._check_second(view, instance)
        second = self.remote_node or ""
        found = [
            Conversion(disk, self._storage(view, disk), second=second) for disk in disks
        ]
        return [one for one in found if not one.is_there(view)]

    def mirroring(self, view: View) -> Mirroring | None:
        """Return how second copies come or go, if that is all that is asked for."""
        if not self.converts:
            return None
        instance = self.instance(view)
        disks = view.config.disks_of(instance)
        wishes = tuple((disk, self._storage(view, disk)) for disk in disks)
        if not disks or not all(is_in_place(*one) for one in wishes):
            return None
        return Mirroring(
            instance,
            wishes,
            self.remote_node or "",
            waits=self.wait_for_sync,
            passing=self.passing,
        )

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the instance with its disks, and what conversions need."""
        yield from OnInstance.locks(self, view)
        found = self.mirroring(view)
        if found:
            yield from found.locks(view)
        for one in self.conversions(view):
            yield from one.locks(view)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether it runs, and what new storage offers."""
        yield from OnInstance.questions(self, view)
        mirroring = self.mirroring(view)
        if mirroring:
            yield from mirroring.questions(view)
        for one in self.conversions(view):
            yield from one.questions(view)

    def _storage(self, view: View, disk: Disk) -> disk_spec.DiskSpec:
        wanted = disk_spec.specified(
            view.config,
            {"pool": self.pool, "size": disk.size},
            template=self.disk_template,
            params=self.ext_params,
        )
        return self.completed(wanted)

    def completed(self, wanted: disk_spec.DiskSpec) -> disk_spec.DiskSpec:
        """Return a disk that is wanted, with what is said for all of them."""
        folder = self.file_storage_dir or ""
        return replace(wanted, force=self.force_params, folder=folder)

    def check_conversions(self, view: View) -> None:
        """Raise `Refused` unless each disk can be converted; say which cannot."""
        if not self.converts:
            self._check_idle()
            return
        instance = self.instance(view)
        if self.disks:
            raise BadInput(
                "disks are converted, or changed one by one, not both at once"
            )
        if self.remote_node and not self._mirrors(view):
            raise BadInput("only mirrored disks have a second node", hint="drop -n")
        mirroring = self.mirroring(view)
        if mirroring:
            mirroring.check(view, ignore_capacity=self.ignore_capacity)
            return
        found = self.conversions(view)
        if not found:
            raise WrongState(_why_none(view, instance, self.disk_template or self.pool))
        for one in found:
            _check(view, instance, one)
        if self.remote_node:
            changed = {one.disk.uuid for one in found}
            self._check_others(view, [d for d in instance.disks if d not in changed])

    def _mirrors(self, view: View) -> bool:
        if self.pool:
            template = view.config.pool(self.pool).template
        else:
            template = self.disk_template or ""
        facts = template_named(template).capabilities.facts
        return facts.mirror is Mirror.INTERNAL

    def _check_second(self, view: View, instance: Instance) -> None:
        if copies.secondary(view.config, instance) is None:
            raise BadInput(
                f"instance {instance.name} has no second node for mirrored disks",
                hint="name one: -n NODE",
            )

    def _check_others(self, view: View, stay: list[str]) -> None:
        """Raise `WrongState` if disks that stay as they are have another second node.

        The mirrored disks of an instance follow it to its one secondary node.
        """
        config = view.config
        named = config.node(self.remote_node or "")
        for pair in filter(None, (pair_of(config.disk(uuid)) for uuid in stay)):
            if named.uuid not in pair.nodes:
                name = self.instance(view).name
                raise WrongState(
                    f"instance {name} has mirrored disks, none of them with a copy on "
                    f"{named.name}: an instance has one secondary node",
                    hint=f"leave -n out; or first: gnt-instance replace-disks -n "
                    f"{named.name} --disks=SLOTS {name}",
                    instance=name,
                )

    def _check_idle(self) -> None:
        given = {"ext_params": self.ext_params, "rate": self.rate}
        given["remote_node"] = self.remote_node
        for name, value in given.items():
            if value:
                raise BadInput(
                    f"{name} is for disks that are converted",
                    hint="say to what: -t TEMPLATE",
                )

    def conversion_warnings(self, view: View) -> Iterator[str]:
        """Say which nodes will not reach the new volumes."""
        mirroring = self.mirroring(view)
        if mirroring:
            yield from mirroring.warnings(view)
        told = (
            line
            for one in self.conversions(view)
            for line in disk_checks.warnings(view, one.wanted, one.worker(view))
        )
        yield from dict.fromkeys(told)
        yield from conversion_tasks.warnings(self.conversions(view))


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
