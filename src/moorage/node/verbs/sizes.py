# SPDX-License-Identifier: BSD-2-Clause
"""How large a disk is that is attached here, whatever leads to it."""

import json
from dataclasses import replace

from moorage.errors import MoorageError
from moorage.model import Device
from moorage.storage import Command, Where, limits
from moorage.storage.uri import image_name
from moorage.units import Mib

from .context import NodeContext

URI = "uri"
"""The kind of a device that is none: storage that QEMU reaches by itself."""
_LOOK = Command(
    ("qemu-img", "info", "--force-share", "--output=json"),
    reads=True,
    limit=limits.LOOK,
)


async def measured(at: NodeContext, where: Where, hypervisor: str) -> Device:
    """Return what a disk is here; one of no kind if nobody can tell.

    That a guest uses the disk is no hindrance.
    """
    if where.path:
        return await at.machine.device(where.path)
    uri = where.uris.get(hypervisor.lower()) or where.uris.get("kvm")
    if not uri:
        return Device()
    try:
        look = replace(_LOOK, argv=(*_LOOK.argv, image_name(uri)))
        told = json.loads((await at.run(look)).stdout)
        return Device(kind=URI, size=Mib(int(told["virtual-size"]) >> 20))
    except (MoorageError, ValueError, KeyError, TypeError):
        return Device()
