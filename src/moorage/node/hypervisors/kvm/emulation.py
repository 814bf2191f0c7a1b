# SPDX-License-Identifier: BSD-2-Clause
"""What QEMU's emulator (TCG) does not do as KVM does: guests that move while they run.

It can lose what a guest writes to its memory while the page is sent, and the guest goes
on elsewhere with what was there before. Seen here on QEMU 7.2 (Debian's), as the kernel
of a guest that booted meanwhile and panicked after it had moved.
"""

from . import shapes
from .monitor import Monitor

WARNING = (
    "Warning: guest {} is emulated and runs while it is sent, for the node has "
    "unsafe_live_emulation: what it writes meanwhile may be lost"
)


async def may_lose_writes(monitor: Monitor) -> bool:
    """Whether a guest must stand still while it is sent, for QEMU would lose writes.

    That is any that is emulated: no version of QEMU is known to be sound.

    - Before 9.0, the vCPUs' TLBs are not brought up to date when QEMU clears the marks
      of pages that were written: "memory corruption / lost updates during migration
      from a TCG host" (QEMU's commit 03bfc2188f06, of March 2024, which mends it; it
      mends one of 2015, aa8dc044772). Debian's 7.2.22 does not name it among what it
      took from later versions.
    - From 9.0 on that one is mended. Its author wrote in the same thread (qemu-devel,
      20 and 23 February 2024) that he had found another race of the emulator with these
      marks, and would send a fix when it is tested. None is known that says it does.

    Who knows of one compares ``query-version`` here, and says where it is proven.
    """
    return not (await monitor.read(shapes.Kvm, "query-kvm")).enabled
