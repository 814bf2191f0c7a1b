# SPDX-License-Identifier: BSD-2-Clause
"""Verify that a disk's name means that disk: what older versions let through."""

from collections.abc import Iterator

from moorage.errors import BadInput
from moorage.model import Disk
from moorage.ops.disk_names import check_disk_name

from .observation import Finding, Seen


def disks(seen: Seen) -> Iterator[Finding]:
    """Find disks that share a name, or are called what no disk may be called now."""
    for disk in seen.config.named(Disk):
        why = _wrong(seen, disk)
        if why:
            hint = f"gnt-disk rename {disk.uuid} NEW_NAME"
            yield Finding(f"disk {disk.uuid}", why, hint, warning=True)


def _wrong(seen: Seen, disk: Disk) -> str:
    if not disk.name:
        return ""
    if len(seen.config.called(Disk, disk.name)) > 1:
        return f"another disk is named '{disk.name}' too"
    try:
        check_disk_name(disk.name)
    except BadInput as error:
        return error.message
    return ""
