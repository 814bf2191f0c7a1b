# SPDX-License-Identifier: BSD-2-Clause
"""Volumes that cannot be read without another one: both are bound.

The other one is not destroyed before them, and none of them grows.
"""

from collections.abc import Iterable, Iterator

from moorage.errors import NotSupported, WrongState
from moorage.jobs import Ask, Question, View
from moorage.model import Config, Disk
from moorage.model.facts import Volume
from moorage.ops.volumes.directories import place_of
from moorage.ops.volumes.disk_access import able, can
from moorage.protocol import Listed, ListVolumes
from moorage.storage import Can


def ask_dependents(config: Config, disks: Iterable[Disk]) -> Iterator[Question]:
    """Ask the nodes of disks for volumes that may need them."""
    yield from (question for _, question in _questions(config, disks))


def check_no_dependents(view: View, disks: Iterable[Disk]) -> None:
    """Raise `WrongState` if a disk's volume has snapshots that need it.

    A node that gave no answer proves nothing: its storage looks again, at the end.
    """
    for disk, question in _questions(view.config, disks):
        found = _needing(view, disk, question)
        if found:
            raise WrongState(
                f"disk {disk.label} has snapshots, which cannot be read without it: "
                f"{', '.join(found)}",
                hint=f"first: gnt-disk remove {' '.join(found)}",
                disk=disk.uuid,
            )


def check_unbound(view: View, disk: Disk) -> None:
    """Raise `Refused` if a disk's volume can have no other size: others share it."""
    check_no_snapshot(view, disk, "it cannot grow")
    for _, question in _questions(view.config, [disk]):
        found = _needing(view, disk, question)
        if found:
            raise WrongState(
                f"disk {disk.label} has snapshots, and cannot grow with them: "
                f"{', '.join(found)}",
                hint=f"first: gnt-disk remove {' '.join(found)}",
                disk=disk.uuid,
            )


def check_no_snapshot(view: View, disk: Disk, what: str) -> None:
    """Raise `NotSupported` if a disk's volume is one that needs another one.

    Parameters
    ----------
    what
        What follows from that.
    """
    for _, question in _questions(view.config, [disk]):
        for one in _volumes(view, question):
            if one.origin and tuple(one.logical_id) == disk.logical_id:
                raise NotSupported(
                    f"disk {disk.label} is a snapshot that is bound to its origin, "
                    f"volume {one.origin}: {what}",
                    hint=f"a copy that stands alone: gnt-disk clone {disk.label}",
                    disk=disk.uuid,
                )


def _questions(
    config: Config, disks: Iterable[Disk]
) -> Iterator[tuple[Disk, Ask[list[Listed]]]]:
    for disk in disks:
        if _lends(disk) and not config.node(disk.nodes[0]).offline:
            places = (place_of(config, disk),)
            yield disk, Ask(disk.nodes[0], ListVolumes(places=places))


def _lends(disk: Disk) -> bool:
    """Whether snapshots of a disk need it, and its own node knows them."""
    if not can(disk, Can.SNAPSHOT) or not can(disk, Can.LIST) or can(disk, Can.CLONE):
        return False
    return bool(disk.nodes) and not (able(disk).images or able(disk).provider)


def _needing(view: View, disk: Disk, question: Ask[list[Listed]]) -> list[str]:
    """Return what the snapshots of a disk are called; volumes, where they are none."""
    called = {one.logical_id: one.label for one in view.config.all(Disk)}
    return sorted(
        called.get(tuple(one.logical_id), str(one.logical_id[-1]))
        for one in _volumes(view, question)
        if one.origin and one.origin == disk.volume
    )


def _volumes(view: View, question: Ask[list[Listed]]) -> tuple[Volume, ...]:
    (listed,) = view.told(question) or (Listed(),)
    return listed.volumes
