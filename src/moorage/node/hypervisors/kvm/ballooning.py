# SPDX-License-Identifier: BSD-2-Clause
"""A guest's balloon: memory that it gives back to the node, and gets again.

QEMU tells the guest how much it is to have; the guest's own driver does it, if it has
one, as fast as it can spare it.
"""

import asyncio

from moorage.errors import Failed
from moorage.units import Mib

from . import shapes
from .guest_dir import Home
from .monitor import Monitor, Refusal, conversation

DEVICE = "virtio-balloon-pci"
_MIB = 1 << 20
_POLL = 0.1


async def held(monitor: Monitor, whole: Mib) -> Mib | None:
    """Return how much memory a guest has; None without a balloon.

    Parameters
    ----------
    whole
        What it started with: it has no more, whatever its QEMU says.
    """
    try:
        told = await monitor.read(shapes.Balloon, "query-balloon")
    except Refusal:
        return None
    return Mib(min(told.actual // _MIB, whole))


async def fill(home: Home, memory: Mib, patience: float) -> None:
    """Let a guest have so much memory, and wait until it has.

    Raises
    ------
    Failed
        If it does not come to that in `patience` seconds: it keeps what it had then.
    """
    spec = home.spec()
    async with conversation(home) as monitor:
        before = await held(monitor, spec.memory)
        if before is None:
            raise Failed(f"guest {spec.name} has no balloon")
        await monitor.ask("balloon", value=memory * _MIB)
    if await _comes_to(home, memory, patience):
        return
    async with conversation(home) as monitor:
        has = await held(monitor, spec.memory)
        await monitor.ask("balloon", value=before * _MIB)
    raise Failed(
        f"guest {spec.name} has {has} MiB, and not {memory}, after {patience:.0f} s: "
        "it needs them itself, is starting, or has no driver (virtio_balloon)",
        guest=home.uuid,
    )


async def _comes_to(home: Home, memory: Mib, patience: float) -> bool:
    clock = asyncio.get_running_loop().time
    end = clock() + patience
    while True:
        async with conversation(home) as monitor:
            if await held(monitor, home.spec().memory) == memory:
                return True
        if clock() > end:
            return False
        await asyncio.sleep(_POLL)
