# SPDX-License-Identifier: BSD-2-Clause
"""What disks may be called, and which disk a name or uuid means.

A disk is asked for by slot, by name or by uuid. So a name is unique among the disks of
an instance, and among those that belong to none, and is nothing that could be read as
one of the other two, or as a word of ``--disk``. Where storage may know volumes by the
names of disks (``VOL_CNAME``), one name is one volume, unique in the cluster.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import count
from typing import Any

from moorage.errors import BadInput, Exists, NotFound
from moorage.jobs import Lock, View
from moorage.model import Config, Disk, Instance, Provider
from moorage.storage.validation import check_name

from .disk_access import able

LONGEST = 64
"""Characters of a name; tables show it whole."""
_UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)
_TAKEN = frozenset({"add", "attach", "default", "detach", "modify", "none", "remove"})
"""Words that mean something else where a disk's name is expected."""
_DETACHED = "detached"
"""Before a name, in a lock: of the disks that belong to no instance."""


def check_disk_name(name: str) -> str:
    """Return `name` if a disk can be called so, or raise `BadInput`.

    It must not be too long, nor what could be a slot, a uuid or an action.
    """
    check_name("disk", name)
    if len(name) > LONGEST:
        raise BadInput(
            f"a disk's name has at most {LONGEST} characters, not {len(name)}"
        )
    if name.isdecimal():
        raise BadInput(f"a disk cannot be called '{name}': numbers are slots")
    if _UUID.fullmatch(name):
        raise BadInput(f"a disk cannot be called '{name}': it looks like a uuid")
    if name in _TAKEN:
        raise BadInput(f"a disk cannot be called '{name}': the word has a meaning")
    return name


class _Told(dict[str, bool]):
    """Whether each provider knows volumes by uuid, as a node of it said last."""


def note(view: View, provider: Provider) -> bool:
    """Return whether a provider knows volumes by uuid; later jobs lock names by it."""
    view.kept.of(_Told)[provider.name] = provider.by_uuid
    return provider.by_uuid


def may_be_sole(view: View, driver: object, *, provided: bool) -> bool:
    """Whether the names of disks may be those of volumes; so while nobody has told."""
    return provided and not view.kept.of(_Told).get(str(driver), False)


def check_unused(
    config: Config,
    name: str,
    owner: Instance | None = None,
    *,
    sole: bool = False,
    disk: Disk | None = None,
    renamed: Collection[str] = (),
) -> None:
    """Raise `Exists` if a disk other than `disk` keeps it from being called `name`.

    Parameters
    ----------
    owner
        The instance that has it, or is to have it; None if none does.
    sole
        Whether its storage knows it by that name.
    renamed
        Uuids of disks that get other names at the same moment.
    """
    others = [
        one
        for one in config.namesakes(name, owner, sole=sole, but=disk)
        if one.uuid not in renamed or (sole and name in _at_storage(one))
    ]
    if others:
        leaves = others[0].uuid in renamed
        raise _taken(config, name, others[0], owner, leaves=leaves)


def _at_storage(disk: Disk) -> set[str]:
    """Return what storage may know a disk by, whatever it is called."""
    return {disk.known_as} & disk.sole_names


def _taken(
    config: Config,
    name: str,
    other: Disk,
    owner: Instance | None = None,
    *,
    leaves: bool = False,
) -> Exists:
    """Return why a disk, of an instance if one is to have it, cannot have a name.

    Parameters
    ----------
    leaves
        Whether the other one is to be called otherwise; its volume is not.
    """
    hint = f"gnt-disk info {config.word_for(other)}"
    if leaves or other.name != name:
        return Exists(
            f"the volume of disk {other.label} was made as '{name}', and storage "
            "scripts still know it by that name",
            hint="choose another name",
            name=name,
        )
    has = config.owner(other)
    if owner and has == owner:
        return Exists(
            f"instance {owner.name} has a disk named '{name}' already",
            hint=hint,
            name=name,
        )
    return Exists(f"a disk named '{name}' exists already", hint=hint, name=name)


def check_sole(
    config: Config, name: str, *, sole: bool, disk: Disk | None = None
) -> None:
    """Raise `Exists` if a disk's name would be that of another volume by its name.

    Whether another one has the name where the disk is to be, is another question: see
    :func:`check_unused`.
    """
    others = config.volumes_named(name) - {disk.uuid if disk else ""}
    if sole and others:
        raise _taken(config, name, config.disk(min(others)))


def hold_name(name: object, *, sole: bool, owned: bool = False) -> Iterator[Lock]:
    """Hold a name, so that no other job gives it to a disk where it is to be alone.

    Parameters
    ----------
    sole
        Whether storage may know the disk by it: it is to be alone in the cluster.
    owned
        Whether an instance is to have the disk: whoever names its disks holds it.
    """
    if not name or name == "none":
        return
    if sole:
        yield Lock("disk", str(name))
    if not owned:
        yield Lock("disk", f"{_DETACHED}/{name}")


def freed_name(
    config: Config, disk: Disk, others: Collection[str | None] = ()
) -> str | None:
    """Return what a disk is called once it belongs to no instance.

    It keeps its name, unless another one that belongs to none has it.

    Parameters
    ----------
    others
        What disks are called that leave with it.

    >>> freed_name(Config(), Disk(uuid="u", dev_type="ext", logical_id=(), size=1))
    """
    name = disk.name
    free = name not in others and not config.beside(name or "", None) - {disk.uuid}
    if not name or free:
        return name
    stem = name[: LONGEST - 8]
    tried = (f"{stem}-{number}" for number in count(2))
    return next(
        one
        for one in tried
        if not config.called(Disk, one)
        and not config.soles.get(one)
        and one not in others
    )


def freed_names(config: Config, disks: Iterable[Disk]) -> dict[str, str | None]:
    """Return what disks are called once they belong to no instance, by uuid.

    They leave one after the other, or all at once.
    """
    found: dict[str, str | None] = {}
    for disk in disks:
        found[disk.uuid] = freed_name(config, disk, found.values())
    return found


def named(disk: Disk, name: str | None) -> dict[str, Any]:
    """Return the changes that a new name makes of a disk.

    To its storage the volume stays what it was: a provider that knows volumes by the
    names of disks would take another one for it.
    """
    kept = {"cname": disk.known_as} if able(disk).provider else {}
    return {"name": name, **kept}


def freed(config: Config, disks: Iterable[Disk]) -> dict[str, dict[str, Any]]:
    """Return the changes of their names when disks come to belong to no instance."""
    disks = list(disks)
    names = freed_names(config, disks)
    return {
        one.uuid: {} if names[one.uuid] == one.name else named(one, names[one.uuid])
        for one in disks
    }


def leaving(config: Config, disk: Disk) -> dict[str, Any]:
    """Return the changes of its name when a disk belongs to nobody until it is gone.

    Many may go at once, and none waits for the other: one whose name others have, too,
    has none then.
    """
    return named(disk, None) if config.shares_name(disk) else {}


def told_freed(config: Config, disks: Iterable[Disk]) -> Iterator[str]:
    """Say which disks are called otherwise once they belong to no instance."""
    disks = list(disks)
    names = freed_names(config, disks)
    for disk in disks:
        name = names[disk.uuid]
        if name != disk.name:
            yield (
                f"disk {disk.uuid} is named '{name}' from now on: another detached "
                f"disk is named '{disk.name}'"
            )


def hold_leaving(disk: Disk) -> Iterator[Lock]:
    """Hold the name of a disk that belongs to nobody until it is gone."""
    if disk.name:
        yield Lock("disk", f"{_DETACHED}/{disk.name}", shared=True)


def hold_freed(config: Config, disks: Iterable[Disk]) -> Iterator[Lock]:
    """Hold the names that disks have, and get once they belong to no instance."""
    disks = list(disks)
    names = freed_names(config, disks)
    for disk in disks:
        for name in {disk.name, names[disk.uuid]}:
            yield from hold_name(name, sole=disk.by_name)


def sought(config: Config, word: str, value: str) -> Disk:
    """Return the disk to attach that ``name=value`` or ``uuid=value`` means.

    Raise `NotFound` if there is none, for a name is no uuid, and a uuid no name; and
    `Ambiguous` if it could be several.
    """
    found = config.objects.get(value)
    if word == "uuid" and isinstance(found, Disk):
        return found
    if word == "uuid" or not config.called(Disk, value):
        raise NotFound(
            f"no disk has the {word} '{value}'", hint="gnt-disk list", ref=value
        )
    return to_attach(config, value)


def to_attach(config: Config, ref: str) -> Disk:
    """Return the disk that a word means where one that nobody has is meant.

    Raise `NotFound` if there is none, and `Ambiguous` if it could be several.
    """
    found = config.objects.get(ref)
    free = () if isinstance(found, Disk) else tuple(config.unowned.get(ref, ()))
    return config.disk(free[0] if len(free) == 1 else ref)
