# SPDX-License-Identifier: BSD-2-Clause
"""The disk templates we ship: one file, one class, and one line here."""

from moorage.disk_templates import FACTS, Mirror
from moorage.errors import NotFound
from moorage.model import Disk
from moorage.storage.base import Template

from .blockdev import BlockDevice
from .drbd import Drbd
from .ext import Ext
from .file import File
from .gluster import Gluster
from .plain import Plain
from .rbd import Rbd
from .sharedfile import SharedFile

TEMPLATES: dict[str, type[Template]] = {
    template.name: template
    for template in (BlockDevice, Drbd, Ext, File, Gluster, Plain, Rbd, SharedFile)
}
"""Every template by its name."""


def template_named(name: str) -> type[Template]:
    """Return the template called `name`.

    Raises
    ------
    NotFound
        If there is none; the sentence names those that exist.
    """
    if name not in TEMPLATES:
        known = ", ".join(sorted(TEMPLATES))
        raise NotFound(
            f"no disk template is called '{name}'", hint=f"known are: {known}"
        )
    return TEMPLATES[name]


def check_made(disk: Disk) -> None:
    """Raise `BadInput` unless a disk, and each part of it, is as its template has it.

    Raises
    ------
    NotFound
        If there is no such template.
    """
    template_named(disk.dev_type).check_made(disk)
    for child in disk.children:
        check_made(child)
