# SPDX-License-Identifier: BSD-2-Clause
"""The text that describes an export: read within bounds, for anybody may write one."""

import re
from typing import Any

from msgspec import DecodeError, json
from msgspec.structs import replace

from moorage.errors import BadInput
from moorage.model.export import Export, check_name

LARGEST = 1 << 19
"""Characters of a description; one of sixteen disks has about ten thousand."""
_DEEPEST = 8
"""Levels of a parameter's value."""
_MOST = 64
"""Disks, and network cards."""
_SYSTEM = re.compile(r"[A-Za-z0-9._+-]{0,200}", re.ASCII)
"""A name of an OS, with its variant."""


def bounded(name: str, text: str) -> str:
    """Return a description that is not too long; raise `BadInput` for another one."""
    if len(text) > LARGEST:
        raise BadInput(
            f"the manifest of export {name} is larger than {LARGEST >> 10} KiB"
        )
    return text


def decoded(name: str, text: str) -> Export:
    """Return what a manifest says.

    Raises
    ------
    BadInput
        If it is none, is too large or too deep, or names what is not in its directory.
    """
    try:
        found = json.decode(bounded(name, text), type=Export)
    except (DecodeError, UnicodeError, RecursionError) as error:
        raise BadInput(
            f"the manifest of export {name} cannot be read: {str(error)[:200]}"
        ) from None
    return checked(replace(found, name=name))


def checked(export: Export) -> Export:
    """Return an export whose dumps are all within its directory, and not too many."""
    instance = export.instance
    given: list[dict[str, Any]] = [one.params for one in export.dumps]
    if instance:
        given += [instance.hvparams, instance.beparams, instance.osparams]
        given += [nic.nicparams for nic in instance.nics]
    many = max(len(export.dumps), len(instance.nics) if instance else 0)
    if many > _MOST or not all(_is_flat(one, _DEEPEST) for one in given):
        raise BadInput(
            f"the manifest of export {export.name} has more disks, cards or levels "
            "than an instance can have"
        )
    if instance and not _SYSTEM.fullmatch(instance.os):
        raise BadInput(f"the manifest of export {export.name} names no OS there can be")
    for dump in export.dumps:
        check_name(dump.file)
        if dump.bytes < 0:
            raise BadInput(f"dump {dump.file} of export {export.name} has no length")
    return export


def _is_flat(value: object, levels: int) -> bool:
    if not levels:
        return False
    if isinstance(value, dict):
        return all(_is_flat(one, levels - 1) for one in value.values())
    if isinstance(value, list):
        return all(_is_flat(one, levels - 1) for one in value)
    return True
