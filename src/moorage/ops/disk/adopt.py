# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk adopt``: a volume that is there becomes a disk, with its data."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import field

from moorage.errors import BadInput, Exists, MoorageError, NotFound, WrongState
from moorage.jobs import Ask, Lock, Question, Surveyor, Task, View, once
from moorage.model import Disk, Node, Place, StoragePool, Volume
from moorage.model.caller import Role
from moorage.model.kinds import DiskMode, Epoch, Mebibytes
from moorage.model.objects import as_text
from moorage.ops.asking import node_tasks
from moorage.ops.asking.silence import check_online
from moorage.ops.planning import disk_checks
from moorage.ops.storage import survey
from moorage.ops.storage.reconcile import disk_of
from moorage.ops.volumes import directories, disk_spec, disk_words, pools
from moorage.ops.volumes.disk_access import check_within, only_group, some_online
from moorage.ops.volumes.disk_names import (
    check_sole,
    check_unused,
    hold_name,
    may_be_sole,
    note,
)
from moorage.ops.volumes.identity import ADOPTION
from moorage.protocol import Listed, ListVolumes
from moorage.storage import Can
from moorage.storage.provider import provider_called
from moorage.units import Mib


class DiskAdopt(Surveyor, frozen=True, kw_only=True):
    """Make a disk of a volume that its storage tells of and no disk is in.

    Whoever made the volume: from now on it is the cluster's, and goes with its disk.

    Attributes
    ----------
    name
        A name that no other detached disk has; without one it has its uuid alone.
    mode
        ``rw``, or ``ro`` for a disk that no guest writes to.
    volume
        Its name in the storage, or its path.
    disk_template
        How it is stored; not needed with a provider or a pool.
    provider
        The ExtStorage provider of a disk of template ``ext``.
    pool
        The storage pool that it is in: it says template and provider.
    params
        Parameters of the template or the provider.
    size
        Its size, for storage that does not tell it.
    epoch
        The epoch that the disk starts with, where its storage has seen others.
    node
        The node that sees it, for a template that stays on one.
    group
        The node group that sees it; the only one when there is one.
    """

    op_id = "OP_DISK_ADOPT"
    role = Role.ROOT

    volume: str
    name: str | None = None
    disk_template: str | None = None
    provider: str | None = None
    pool: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    size: Mebibytes | None = None
    epoch: Epoch = 0
    mode: DiskMode = "rw"
    node: str | None = None
    group: str | None = None

    @once
    def place(self, view: View) -> Place:
        """Return where the volume is."""
        config = view.config
        group = config.group(self.node_of(view).group)
        given = disk_words.unused(self.params)  # it is reused, in whatever words
        params = disk_words.named_params(given, provider=self.provider)
        wanted = disk_words.DiskWords(
            {"pool": self.pool}, template=self.disk_template, params=params
        ).read(config)
        if Can.LIST not in wanted.kind.capabilities.can:
            raise WrongState(
                f"disk template '{wanted.template}' does not tell which volumes there "
                "are: nothing can be adopted this way",
                hint=disk_checks.how_to_adopt(wanted, "VOLUME"),
            )
        disk_spec.units(config, wanted, group)  # without any there is no place
        held = disk_spec.parameters(config, wanted, group)
        return directories.place_with(config, wanted.template, held)

    @once
    def pool_of(self, view: View) -> StoragePool | None:
        """Return the storage pool that is named, or the only one that is there."""
        config = view.config
        if self.pool:
            return config.pool(self.pool)
        group = config.group(self.node_of(view).group)
        return directories.pool_at(config, group, self.place(view))

    @once
    def node_of(self, view: View) -> Node:
        """Return the node that is to look, and to attach it once."""
        config = view.config
        if self.node:
            node = config.node(self.node)
            check_within(config, node, self.group)
            return node
        group = config.group(self.group) if self.group else only_group(config)
        return some_online(config, group)[0]

    @once
    def question(self, view: View) -> Ask[list[Listed]]:
        """Return what the node is asked."""
        verb = ListVolumes(places=(self.place(view),))
        return Ask(self.node_of(view).uuid, verb)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the name, and all that others might adopt; share node and pool."""
        place = self.place(view)
        if survey.is_local(place) and not self.node:
            raise BadInput(
                f"a disk of template '{place.template}' stays on one node",
                hint="say which: -n NODE",
            )
        yield Lock("node", self.node_of(view).uuid, shared=True)
        yield ADOPTION
        provider = dict(place.params).get("provider")
        sole = may_be_sole(view, provider, provided=provider is not None)
        yield from hold_name(disk_words.checked_name(self.name), sole=sole)
        pool = self.pool_of(view)
        yield from pools.hold([pool.uuid if pool else None])

    def questions(self, view: View) -> Iterator[Question]:
        """Ask the node for the volumes there, and for what the disk's use needs."""
        yield self.question(view)
        yield node_tasks.providers_on(self.node_of(view).uuid)

    def check(self, view: View) -> None:
        """Refuse a volume that is not there, or is somebody's."""
        node = self.node_of(view)
        check_online(node)
        name = disk_words.checked_name(self.name)
        if name:
            check_unused(view.config, name)
        disk = self.disk(view)
        if name:
            check_sole(view.config, name, sole=disk.by_name)
        pools.check_used_in(view.config, disk, view.config.group(node.group))
        for one in view.config.all(Disk):
            if set(survey.keys_of(one)) & set(survey.keys_of(disk)):
                raise _taken(self.volume, one)
        if survey.seen(view).busy.intersection(disk.volumes):
            raise WrongState(f"a job works on volume '{self.volume}'")

    @once
    def disk(self, view: View) -> Disk:
        """Return the new disk."""
        found, node = self._found(view), self.node_of(view)
        pool = self.pool_of(view)
        size = found.size or disk_words.checked_size(self.size)
        if not size:
            raise BadInput(
                f"its storage does not tell how large volume '{self.volume}' is",
                hint="say it: -s SIZE",
            )
        return disk_of(
            view,
            self.place(view),
            found.logical_id,
            (node,),
            pool=pool.uuid if pool else None,
            size=Mib(size),
            name=disk_words.checked_name(self.name),
            mode=self.mode,
            epoch=disk_words.checked_epoch(self.epoch, adopts=True),
            by_uuid=self._by_uuid(view),
        )

    def _by_uuid(self, view: View) -> bool:
        """Whether a provider, if there is one, says that it goes by ``VOL_NAME``."""
        named = dict(self.place(view).params).get("provider")
        told = view.told(node_tasks.providers_on(self.node_of(view).uuid)) or []
        found = provider_called(str(named), told)
        return found is not None and note(view, found)

    def _found(self, view: View) -> Volume:
        """Return the volume, as its storage tells it."""
        node = self.node_of(view)
        (listed,) = view.answer(self.question(view)) or (Listed(),)
        if listed.problem:
            raise WrongState(
                f"node {node.name} lists no volumes: {listed.problem}",
                hint=f"gnt-disk add -t TEMPLATE -p NAME -s SIZE --adopt {self.volume}",
            )
        for one in listed.volumes:
            words = as_text(one.logical_id)
            if self.volume in (words[-1], "/".join(words)):
                return one
        raise NotFound(
            f"node {node.name} sees no volume '{self.volume}'",
            hint="gnt-storage reconcile",
        )

    def tasks(self, view: View) -> Iterator[Task]:
        """Look whether it can be attached, then record the disk."""
        config, node, disk = view.config, self.node_of(view), self.disk(view)
        yield node_tasks.attach(config, disk, node)
        yield node_tasks.setinfo(config, disk, node)
        yield node_tasks.detach(config, disk, node)
        yield view.record(f"adopt volume {self.volume}", disk)

    def result(self, _view: View, results: Sequence[Any]) -> str:
        """Return the uuid of the disk."""
        return str(results[-1][0])


def _taken(volume: str, disk: Disk) -> MoorageError:
    lift = f"gnt-disk modify --lift-quarantine {disk.uuid}"
    return Exists(
        f"volume '{volume}' is that of disk {disk.label}",
        hint=lift if disk.quarantine else f"gnt-disk info {disk.uuid}",
        disk=disk.uuid,
    )
