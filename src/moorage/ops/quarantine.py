# SPDX-License-Identifier: BSD-2-Clause
"""Disks in quarantine: who may not use them, and the ways out."""

from moorage.errors import WrongState
from moorage.model import Disk


def check_sound(disk: Disk) -> None:
    """Raise `WrongState` if a disk is quarantined."""
    if disk.quarantine:
        raise WrongState(
            f"disk {disk.label} is quarantined: {disk.quarantine}",
            hint=f"gnt-disk info {disk.label}; when somebody has looked and it is "
            f"sound: gnt-disk modify --lift-quarantine {disk.label}",
            disk=disk.uuid,
        )
