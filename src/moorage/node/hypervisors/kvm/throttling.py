# SPDX-License-Identifier: BSD-2-Clause
"""What a guest may ask of its disks, told to its QEMU.

QEMU keeps it with the device: it stays when the drive gets other storage below it.
"""

from collections.abc import Iterable, Mapping

from moorage.errors import Failed
from moorage.node.hypervisors.base import Drive

from . import blockdev, devices, shapes
from .guest_dir import Home
from .monitor import Monitor, conversation


async def throttle(monitor: Monitor, disk: str, limits: Mapping[str, int]) -> None:
    """Let a guest ask no more of a disk than its limits; of none, anything.

    Raises
    ------
    Failed
        If the guest does not have the disk.
    """
    name = blockdev.device_name(disk)
    device = f"{devices.PLACE}/{name}/"
    told = await monitor.read(shapes.Drives, "query-block")
    found = [
        one.qdev
        for one in told
        if one.qdev == name or f"{one.qdev}/".startswith(device)
    ]
    if not found:
        raise Failed(f"guest {monitor.guest} does not have disk {disk}")
    await monitor.ask(
        "block_set_io_throttle",
        id=found[0],
        bps=limits.get("total_bytes_sec", 0),
        iops=limits.get("total_iops_sec", 0),
        **dict.fromkeys(("bps_rd", "bps_wr", "iops_rd", "iops_wr"), 0),
    )


async def start(home: Home, drives: Iterable[Drive]) -> None:
    """Throttle the drives of a guest whose process has just begun."""
    limited = [drive for drive in drives if drive.limits]
    if limited:
        async with conversation(home) as monitor:
            await begin(monitor, limited)


async def begin(monitor: Monitor, drives: Iterable[Drive]) -> None:
    """Throttle the drives of a guest that has just got them."""
    for drive in drives:
        if drive.limits:
            await throttle(monitor, drive.disk, drive.limits)
