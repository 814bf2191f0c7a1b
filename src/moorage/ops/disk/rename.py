# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk rename`` and ``gnt-disk modify``: what a disk is called and allows."""

from collections.abc import Collection, Iterator
from typing import Annotated, Any

from msgspec import UNSET, UnsetType, field

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Operation, Question, Task, View, rights
from moorage.model import Config, Disk, Node, successor
from moorage.model.kinds import DiskMode
from moorage.ops.asking import node_tasks
from moorage.ops.volumes import copies, disk_words
from moorage.ops.volumes.disk_access import can, candidates
from moorage.ops.volumes.disk_names import check_unused, hold_name, named
from moorage.ops.volumes.disk_params import (
    ask_listed,
    check_listed,
    reparametrised,
    verified,
)
from moorage.storage import Can


def renamed(
    config: Config, disk: Disk, name: object, others: Collection[str] = ()
) -> dict[str, Any]:
    """Return the changes of a new name; ``none`` and None take it away.

    Raise `Refused` for a name that no disk can have, or another one has; but for
    `others`, by uuid, which get other names at the same moment.
    """
    new = disk_words.checked_name(name)
    if new:
        owner, sole = config.owner(disk), disk.by_name
        check_unused(config, new, owner, sole=sole, disk=disk, renamed=others)
    return named(disk, new)


def hold_rename(config: Config, disk: Disk, name: object) -> Iterator[Lock]:
    """Hold what a disk is called and will be, and the instance that it has it of."""
    owner = config.owner(disk)
    if owner:
        yield Lock("instance", owner.uuid)
    for one in (disk.name, name):
        yield from hold_name(one, sole=disk.by_name, owned=owner is not None)


def _lifted(disk: Disk) -> dict[str, Any]:
    """Return the changes that let a quarantined disk be used again.

    Its volume is its own then: somebody looked. Its epoch rises: what made it suspect
    must not go on where it stopped.
    """
    if not disk.quarantine:
        raise WrongState(f"disk {disk.label} is not quarantined", disk=disk.uuid)
    return {"quarantine": None, "unproven": False, "epoch": disk.epoch + 1}


def _noting(config: Config, disk: Disk) -> Node | None:
    """Return the node that is to write a disk's name beside its volume.

    What is attached bears the name of its instance; None where nobody can write it.
    """
    if config.owner(disk) or not can(disk, Can.SETINFO):
        return None
    return next(iter(candidates(config, disk)), None)


def _hold_noting(config: Config, disk: Disk) -> Iterator[Lock]:
    node = _noting(config, disk)
    if node:
        yield Lock("node", node.uuid, shared=True)


def _noted(config: Config, disk: Disk) -> Iterator[Task]:
    """Yield what writes the name of a disk beside its volume; nobody fails for it."""
    node = _noting(config, disk)
    if node:
        yield node_tasks.setinfo(config, disk, node)


class DiskRename(Operation, frozen=True, kw_only=True):
    """Give a disk another name; its volume keeps its own.

    Attributes
    ----------
    disk
        Name or uuid.
    new_name
        One that no other disk of its instance has, or that belongs to none as it does;
        ``none`` takes the name away.
    """

    op_id = "OP_DISK_RENAME"

    disk: str
    new_name: str

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk, and both names."""
        disk = view.config.disk(self.disk)
        yield from _hold_noting(view.config, disk)
        yield Lock("disk", disk.uuid)
        yield from hold_rename(view.config, disk, self.new_name)

    def check(self, view: View) -> None:
        """Refuse names that are taken, or would be for something else."""
        renamed(view.config, view.config.disk(self.disk), self.new_name)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the name, and note it beside the volume of a detached disk."""
        disk = view.config.disk(self.disk)
        after = successor(disk, view.now, **renamed(view.config, disk, self.new_name))
        yield view.record(f"rename disk {disk.label} to {self.new_name}", after)
        yield from _noted(view.config, after)


class DiskSetParams(Operation, frozen=True, kw_only=True):
    """Change a disk's mode, name or parameters.

    Attributes
    ----------
    disk
        Name or uuid.
    mode
        ``rw`` or ``ro``; a running guest sees it at its next start.
    name
        Another name; ``none`` takes it away.
    params
        Parameters of the template or provider; the value ``default`` drops one.
    force_params
        Accept parameters that the provider does not list.
    lift_quarantine
        Let a quarantined disk be used again: somebody looked, and it is safe.
    """

    op_id = "OP_DISK_SET_PARAMS"

    disk: str
    mode: DiskMode | UnsetType = UNSET
    name: str | UnsetType | None = UNSET
    params: Annotated[dict[str, Any], rights.DISK] = field(default_factory=dict)
    force_params: bool = False
    lift_quarantine: bool = False

    def changes(self, config: Config, disk: Disk) -> dict[str, Any]:
        """Return the fields that change."""
        found: dict[str, Any] = {}
        if self.mode is not UNSET:
            found["mode"] = self.mode
        if self.name is not UNSET:
            found |= renamed(config, disk, self.name)
        if self.params:
            found |= reparametrised(disk, self.params)
        if self.lift_quarantine:
            found |= _lifted(disk)
        if not found:
            raise BadInput("nothing to change was named", hint="--mode, --name or -D")
        return found

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk, the instance that uses it, and the names it has and gets."""
        disk = view.config.disk(self.disk)
        owner = view.config.owner(disk)
        yield Lock("disk", disk.uuid)
        if self.name is not UNSET:
            yield from _hold_noting(view.config, disk)
            yield from hold_rename(view.config, disk, self.name)
        if owner:
            yield Lock("instance", owner.uuid)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask what the provider takes."""
        if self.params:
            yield from ask_listed(view.config, view.config.disk(self.disk))

    def check(self, view: View) -> None:
        """Refuse values that a disk cannot have."""
        disk = view.config.disk(self.disk)
        self.changes(view.config, disk)
        if not self.force_params:
            check_listed(view, disk, self.params)

    def tasks(self, view: View) -> Iterator[Task]:
        """Verify and record it, and tell nodes that use it of live parameters."""
        disk = view.config.disk(self.disk)
        new = self.changes(view.config, disk)
        changed = successor(disk, view.now, **new)
        if self.params:
            yield from verified(view, changed)
        yield view.record(f"change disk {disk.label}", changed)
        if self.params:
            yield from copies.retuned(view.config, view.config, (changed,))
        if self.name is not UNSET:
            yield from _noted(view.config, changed)
