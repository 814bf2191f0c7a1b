# SPDX-License-Identifier: BSD-2-Clause
"""What disks may be called, and which disk a name or uuid means.

A disk is asked for by slot, by name or by uuid. So a name is unique in the cluster, and
nothing that could be read as one of the other two, or as a word of ``--disk``.
"""

import re

from moorage.errors import BadInput, Exists, NotFound
from moorage.jobs import Lock
from moorage.model import Config, Disk
from moorage.storage.validation import check_name

LONGEST = 64
"""Characters of a name; tables show it whole."""
_UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)
_TAKEN = frozenset({"add", "attach", "default", "detach", "modify", "none", "remove"})
"""Words that mean something else where a disk's name is expected."""


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


def check_unused(config: Config, name: str, disk: Disk | None = None) -> None:
    """Raise `Exists` if a disk other than `disk` goes by `name`."""
    others = {other.uuid for other in config.called(Disk, name)}
    if isinstance(config.objects.get(name), Disk):
        others.add(name)
    others -= {disk.uuid} if disk else set()
    if others:
        raise Exists(
            f"a disk named '{name}' exists already",
            hint=f"gnt-disk info {min(others)}",
            name=name,
        )


def check_unknown(config: Config, name: str) -> None:
    """Raise `Exists` if storage scripts know the volume of another disk as `name`.

    A provider that goes by the names of disks would take that one for the new disk's.
    """
    known = config.known_as(name)
    if known:
        raise Exists(
            f"the volume of disk {known[0].label} was made as '{name}', and storage "
            "scripts still know it by that name",
            hint="choose another name",
            name=name,
        )


def hold_names(*names: object) -> list[Lock]:
    """Hold names, so that no other job gives them to a disk meanwhile."""
    return [Lock("disk", str(name)) for name in names if name]


def sought(config: Config, word: str, value: str) -> Disk:
    """Return the disk that ``name=value`` or ``uuid=value`` means.

    Raise `NotFound` if there is none, for a name is no uuid, and a uuid no name; and
    `Ambiguous` if several disks of an old configuration share the name.
    """
    if word == "uuid":
        found = config.objects.get(value)
        named = [found] if isinstance(found, Disk) else []
    else:
        named = config.called(Disk, value)
    if len(named) > 1:
        raise config.ambiguous(value, named)
    if not named:
        raise NotFound(
            f"no disk has the {word} '{value}'", hint="gnt-disk list", ref=value
        )
    return named[0]
