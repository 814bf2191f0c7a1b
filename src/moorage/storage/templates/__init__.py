# SPDX-License-Identifier: BSD-2-Clause
"""The disk templates we ship: one file, one class, and one line here."""

from moorage.errors import NotFound
from moorage.model.templates import FACTS, Mirror
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


def int_mirror() -> frozenset[str]:
    """Return the templates that the cluster itself mirrors (a secondary is needed)."""
    return _mirrored_by(Mirror.INTERNAL)


def ext_mirror() -> frozenset[str]:
    """Return the templates whose data outlives a node without the cluster's help.

    An instance without disks has no data to lose, so ``diskless`` is among them.
    """
    return _mirrored_by(Mirror.EXTERNAL)


def mirrored() -> frozenset[str]:
    """Return the templates whose instances can move to another node."""
    return int_mirror() | ext_mirror()


def _mirrored_by(kind: Mirror) -> frozenset[str]:
    without = [one for one in FACTS.values() if not one.has_disks]
    found = [*(one.capabilities.facts for one in TEMPLATES.values()), *without]
    return frozenset(one.name for one in found if one.mirror is kind)
