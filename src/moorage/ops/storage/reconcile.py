# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-storage reconcile``: what is stored against what is known, and the repair.

No repair deletes anything. A forgotten volume becomes a disk in quarantine, which a
person adopts or removes; a disk whose volume is missing is quarantined; what a node
holds and nobody uses there is detached.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec import Struct

from moorage.jobs import Lock, Question, Surveyor, Task, View, once
from moorage.model import Disk, Entity, Node, Place, successor
from moorage.model.caller import Role
from moorage.model.objects import as_text
from moorage.ops.asking import node_tasks
from moorage.ops.volumes import directories
from moorage.ops.volumes.disk_names import hold_name
from moorage.ops.volumes.identity import ADOPTION
from moorage.ops.volumes.units import Named, storage_of
from moorage.storage.provider import provider_called, usable
from moorage.units import Mib, counted

from . import survey
from .missing import Missing, Stray, missing, strays
from .reconciled import (
    DETACH,
    QUARANTINE,
    SUSPEND,
    AttachedStill,
    MissingVolume,
    Reconciled,
    Repair,
    SeenVolume,
    Storage,
)
from .survey import BUSY, FORGOTTEN, REFERENCED, UNKNOWN, Found, Look


class StorageReconcile(Surveyor, frozen=True, kw_only=True):
    """Compare what is stored with what is known; repair what was asked for.

    Attributes
    ----------
    providers
        ExtStorage providers to look at besides those that have disks or pools.
    everything
        Whether volumes that are in order are told one by one, too.
    repair
        Steps of an earlier plan that are to be done; those that are not due any more
        are left out.
    """

    op_id = "OP_STORAGE_RECONCILE"
    role = Role.ROOT

    providers: tuple[str, ...] = ()
    everything: bool = False
    repair: tuple[Repair, ...] = ()

    def summary(self) -> str:
        """Return the opcode, and how much it repairs."""
        repairs = f"({len(self.repair)} repairs)" if self.repair else ""
        return f"STORAGE_RECONCILE{repairs}"

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold what is repaired; to look, nothing."""
        for node in view.config.named(Node):
            if any(one.node == node.name for one in self.repair):
                yield Lock("node", node.uuid, shared=True)
        disks = {one.disk for one in self.repair if one.disk}
        for uuid in sorted(disks):
            disk = view.config.objects.get(uuid)
            owner = view.config.owner(disk) if isinstance(disk, Disk) else None
            if owner:
                yield Lock("instance", owner.uuid)
            yield Lock("disk", uuid)
        for name in sorted({one.known_as for one in self.repair}):
            yield from hold_name(name, sole=True)
        if any(one.do == QUARANTINE for one in self.repair):
            yield ADOPTION

    def questions(self, view: View) -> Iterator[Question]:
        """Ask the nodes for their volumes, what they hold, and their providers."""
        for node in view.config.online():
            yield node_tasks.facts_on(node)
            yield node_tasks.providers_on(node.uuid)
        for _, question, _ in survey.ask(view.config, self.providers):
            yield question

    def check(self, view: View) -> None:
        """Refuse nothing: any storage can be looked at. Look at it."""
        self._state(view)

    def warnings(self, view: View) -> Iterator[str]:
        """Say which steps are not due any more."""
        due = {one.key for one, _ in self._state(view).plan}
        for one in self.repair:
            if one.key not in due:
                yield f"left out, for it is not due any more: {one.what or one.do}"

    def tasks(self, view: View) -> Iterator[Task]:
        """Let nodes let go, then record all that is quarantined."""
        asked = {one.key: one for one in self.repair}
        due = [one for one in self._state(view).plan if one[0].key in asked]
        strays = [about for _, about in due if isinstance(about, Stray)]
        yield from let_go(view, strays)
        put: list[Entity] = []
        for step, about in due:
            if isinstance(about, Found):
                held = asked[step.key].known_as
                put.append(quarantined_volume(view, about, held))
            elif isinstance(about, Missing):
                cause = f"job {view.job}: {_lost(about)}"
                put.append(successor(about.disk, view.now, quarantine=cause))
        if put:
            yield view.record(f"quarantine {counted(len(put), 'disk')}", *put)

    def result(self, view: View, _results: Sequence[Any]) -> Reconciled:
        """Return what was found, and the plan: see the reference of the command."""
        return self._state(view).shown(view, everything=self.everything)

    @once
    def _state(self, view: View) -> "State":
        return _state(view, self.providers)


class State(Struct, frozen=True):
    """What was found, and what would repair it."""

    looks: list[Look]
    found: list[Found]
    missing: list[Missing]
    strays: list[Stray]
    doubts: list[str]
    plan: list[tuple[Repair, Found | Missing | Stray]]

    def shown(self, view: View, *, everything: bool) -> Reconciled:
        """Return what clients get."""
        shown = (one for one in self.found if everything or one.state != REFERENCED)
        used = {storage_of(view.config.cluster, one) for one in view.config.all(Disk)}
        return Reconciled(
            storages=[_storage(one, used) for one in self.looks],
            counts=dict(Counter(one.state for one in self.found))
            | {"missing": len(self.missing)},
            volumes=[_volume(view, one) for one in shown],
            missing=[_missing(one) for one in self.missing],
            attached=[_stray(one) for one in self.strays],
            doubts=self.doubts,
            unasked=unasked(view, self.looks),
            plan=[repair for repair, _ in self.plan],
        )


def unasked(view: View, looks: Sequence[Look]) -> list[str]:
    """Return the providers that could tell of volumes, and were not asked.

    No disk and no pool is theirs; by an older state none may be, although there was.
    """
    asked = {str(dict(one.place.params).get("provider")) for one in looks}
    found = {
        one.name
        for node in view.config.online()
        for one in usable(view.told(node_tasks.providers_on(node.uuid)) or ()).values()
        if one.valid and "list" in one.optional
    }
    return sorted(found - asked)


def _state(view: View, providers: Sequence[str]) -> State:
    looks = survey.looks(view, providers)
    found = survey.volumes(view, looks)
    lost, doubts = missing(view, looks)
    held = strays(view)
    plan: list[tuple[Repair, Found | Missing | Stray]] = [
        *((_to_quarantine(view, one), one) for one in found if one.state == FORGOTTEN),
        *((_to_suspend(one), one) for one in lost if not one.disk.quarantine),
        *((_to_detach(one), one) for one in held if one.disk and not one.used),
    ]
    return State(looks, found, lost, held, doubts, plan)


def _to_quarantine(view: View, found: Found) -> Repair:
    return Repair(
        do=QUARANTINE,
        what=f"make a disk in quarantine of volume "
        f"{survey.shown(found.volume.logical_id)}: {_reason(view, found)}",
        node=found.nodes[0].name,
        volume=(found.place.template, *as_text(found.volume.logical_id)),
        known_as=_known_as(view, found),
    )


def _to_suspend(one: Missing) -> Repair:
    what = f"quarantine disk {one.disk.label}: {_lost(one)}"
    return Repair(do=SUSPEND, what=what, disk=one.disk.uuid)


def _lost(one: Missing) -> str:
    nodes = ", ".join(node.name for node in one.nodes)
    return f"there is no volume {survey.shown(one.disk.volumes[0])} on {nodes}"


def _to_detach(one: Stray) -> Repair:
    label = one.disk.label if one.disk else one.held.disk
    what = f"detach disk {label} on {one.node.name}: {one.why}"
    return Repair(do=DETACH, what=what, disk=one.held.disk, node=one.node.name)


def _reason(view: View, found: Found) -> str:
    """Return why a volume is taken for a forgotten one of ours."""
    if not found.disk:
        return "its name is of our kind, and no disk is known to be in it"
    known = view.config.objects.get(found.disk)
    if isinstance(known, Disk):
        return f"disk {known.label} was in it before"
    name = survey.seen(view).called(found.disk)
    return f"it was of disk {name}, which is gone"


def _known_as(view: View, found: Found) -> str:
    """Return what scripts knew a forgotten volume as; empty if that is another's."""
    if not survey.kind_of(found.place).capabilities.provider:
        return ""
    known = survey.seen(view).known_as(found.disk)
    return "" if view.config.volumes_named(known) else known


def quarantined_volume(view: View, found: Found, held: str) -> Disk:
    """Return the disk, in quarantine, that a forgotten volume becomes.

    Of one that no disk is known to have been in, its name alone says that it is ours:
    another cluster may have named it. Its size is as told; 1 MiB where its storage
    tells none, until somebody corrects it. What scripts knew it as, they know it as
    still: no other disk gets that name.

    Parameters
    ----------
    held
        The name that no other job may give away meanwhile; empty for none.
    """
    volume, place = found.volume, found.place
    reason = f"job {view.job}: {_reason(view, found)}"
    if survey.kind_of(place).capabilities.provider:
        known = _known_as(view, found)
        by_uuid = _by_uuid(view, place, found.nodes[0])
        told = {"cname": known if known == held else "", "by_uuid": by_uuid}
        if not (by_uuid or found.disk):
            reason += (
                "; scripts may know it by the name that it was made with: give it that "
                "name again, and no other disk gets it"
            )
    else:
        told = {}
    return disk_of(
        view,
        place,
        volume.logical_id,
        found.nodes,
        size=volume.size or Mib(1),
        quarantine=reason,
        unproven=not found.disk,
        **told,
    )


def _by_uuid(view: View, place: Place, node: Node) -> bool:
    """Whether the provider of a place says that it goes by ``VOL_NAME``."""
    told = view.told(node_tasks.providers_on(node.uuid)) or []
    found = provider_called(str(dict(place.params).get("provider")), told)
    return found is not None and found.by_uuid


def disk_of(
    view: View,
    place: Place,
    logical_id: tuple[Any, ...],
    nodes: Sequence[Node],
    **more: Any,  # noqa: ANN401
) -> Disk:
    """Return a disk in a volume that exists: it is adopted.

    Parameters
    ----------
    nodes
        Those that see it, the first of them first.
    """
    kind, node = survey.kind_of(place), nodes[0]
    pool = directories.pool_at(view.config, view.config.group(node.group), place)
    fields = {
        "uuid": view.fresh(),
        "dev_type": place.template,
        "logical_id": logical_id,
        "nodes": (node.uuid,) if survey.is_local(place) else (),
        "params": kind.parameters(dict(place.params)),
        "pool": pool.uuid if pool else None,
        "group": node.group,
        "last_node": node.uuid,
        "cname": "" if kind.capabilities.provider else None,
        "adopted": True,
        "ctime": view.now,
        "mtime": view.now,
    }
    return Disk(**fields | more)


def let_go(view: View, strays: Sequence[Stray]) -> Iterator[Task]:
    """Yield what detaches disks where they are held and should not be.

    A node may have seen later attachments than the record, if that is from a backup: it
    would take this step, and the next attachment, for late ones.
    """
    late = {
        held.disk.uuid: successor(held.disk, view.now, epoch=held.held.epoch)
        for held in sorted(strays, key=lambda one: one.held.epoch)
        if held.disk and held.disk.epoch < held.held.epoch
    }
    if late:
        what = f"raise the epochs of {len(late)} disks to what their nodes have seen"
        yield view.record(what, *late.values())
    for one in strays:
        if one.disk:
            disk = late.get(one.disk.uuid, one.disk)
            yield node_tasks.let_go(view.config, disk, one.node)


def _storage(look: Look, used: Collection[Named]) -> Storage:
    template, unit = look.unit
    return Storage(
        node=look.node.name,
        template=template,
        unit=unit,
        params=dict(look.place.params),
        used=look.unit in used,
        volumes=len(look.listed.volumes),
        problem=look.listed.problem,
    )


def _volume(view: View, found: Found) -> SeenVolume:
    known = view.config.objects.get(found.disk)
    why = _reason(view, found) if found.state == FORGOTTEN else ""
    if found.state == BUSY:
        why = "a job works on it"
    if found.state == UNKNOWN and isinstance(known, Disk):
        why = f"disk {known.label} has its volume by that name elsewhere"
    return SeenVolume(
        state=found.state,
        template=found.place.template,
        logical_id=list(found.volume.logical_id),
        volume=survey.shown(found.volume.logical_id),
        size=found.volume.size,
        note=found.volume.note,
        nodes=[node.name for node in found.nodes],
        disk=found.disk,
        name=known.name if isinstance(known, Disk) else None,
        why=why,
    )


def _missing(one: Missing) -> MissingVolume:
    return MissingVolume(
        disk=one.disk.uuid,
        name=one.disk.name,
        volume=survey.shown(one.disk.volumes[0]),
        nodes=[node.name for node in one.nodes],
        quarantine=one.disk.quarantine,
    )


def _stray(one: Stray) -> AttachedStill:
    return AttachedStill(
        disk=one.held.disk,
        name=one.disk.name if one.disk else None,
        node=one.node.name,
        path=one.held.path,
        epoch=one.held.epoch,
        why=one.why,
        used=one.used,
    )
