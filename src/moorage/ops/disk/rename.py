# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk rename`` and ``gnt-disk modify``: what a disk is called and allows."""

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, UnsetType, field

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Operation, Task, View, commit
from moorage.model import Change, Disk, successor
from moorage.ops.birth import MODES
from moorage.ops.reach import template
from moorage.storage.words import check_name


def renamed(name: str | None) -> dict[str, Any]:
    """Return the changes of a new name; ``none`` and None take it away."""
    if name is None or name == "none":
        return {"name": None}
    return {"name": check_name("disk", name)}


def reparametrised(disk: Disk, params: dict[str, Any]) -> dict[str, Any]:
    """Return the changes of new parameters; the value ``default`` drops one.

    Raises
    ------
    BadInput
        For ``provider`` and ``access``, which a disk keeps for life, and for what
        the template does not have.
    """
    fixed = sorted({"provider", "access"} & params.keys())
    if fixed:
        raise BadInput(f"a disk's '{fixed[0]}' cannot be changed", disk=disk.uuid)
    kept = {**disk.params, **params}
    wanted = {key: value for key, value in kept.items() if value != "default"}
    return {"params": template(disk).parameters(wanted)}


def _lifted(disk: Disk) -> dict[str, Any]:
    """Return the changes that let a quarantined disk be used again.

    Its epoch rises: what made it suspect must not go on where it stopped.
    """
    if not disk.quarantine:
        raise WrongState(f"disk {disk.label} is not quarantined", disk=disk.uuid)
    return {"quarantine": None, "epoch": disk.epoch + 1}


class DiskRename(Operation, frozen=True, kw_only=True):
    """Give a disk another name; its volume keeps its own."""

    op_id = "OP_DISK_RENAME"

    disk: str
    new_name: str

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk."""
        yield Lock("disk", view.config.disk(self.disk).uuid)

    def check(self, view: View) -> None:
        """Refuse names that would be taken for something else."""
        del view
        renamed(self.new_name)

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the name."""
        disk = view.config.disk(self.disk)
        change = Change((successor(disk, view.now, **renamed(self.new_name)),))
        what = f"rename disk {disk.label} to {self.new_name}"
        yield commit(what, change, view.config.before(change))


class DiskSetParams(Operation, frozen=True, kw_only=True):
    """Change a disk's mode, name or parameters.

    Attributes
    ----------
    mode
        ``rw`` or ``ro``; a running guest sees it at its next start.
    name
        Another name; ``none`` takes it away.
    params
        Parameters of the template or provider; the value ``default`` drops one.
    lift_quarantine
        Let a quarantined disk be used again: somebody looked, and it is safe.
    """

    op_id = "OP_DISK_SET_PARAMS"

    disk: str
    mode: str | UnsetType = UNSET
    name: str | UnsetType | None = UNSET
    params: dict[str, Any] = field(default_factory=dict)
    lift_quarantine: bool = False

    def changes(self, disk: Disk) -> dict[str, Any]:
        """Return the fields that change."""
        found: dict[str, Any] = {}
        if self.mode is not UNSET:
            if self.mode not in MODES:
                raise BadInput(f"a disk's mode is rw or ro, not '{self.mode}'")
            found["mode"] = self.mode
        if self.name is not UNSET:
            found |= renamed(self.name)
        if self.params:
            found |= reparametrised(disk, self.params)
        if self.lift_quarantine:
            found |= _lifted(disk)
        if not found:
            raise BadInput("nothing to change was named", hint="--mode, --name or -D")
        return found

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the disk, and the instance that uses it."""
        disk = view.config.disk(self.disk)
        owner = view.config.owner(disk)
        yield Lock("disk", disk.uuid)
        if owner:
            yield Lock("instance", owner.uuid)

    def check(self, view: View) -> None:
        """Refuse values that a disk cannot have."""
        self.changes(view.config.disk(self.disk))

    def tasks(self, view: View) -> Iterator[Task]:
        """Record the change; a running guest sees it at its next start."""
        disk = view.config.disk(self.disk)
        change = Change((successor(disk, view.now, **self.changes(disk)),))
        yield commit(f"change disk {disk.label}", change, view.config.before(change))
