# SPDX-License-Identifier: BSD-2-Clause
"""A guest's memory in huge pages: ``mem_path`` names where the node has mounted them.

QEMU takes them from the kernel's pool, without a file there: so it needs no right to
the directory. The mount says how large they are.
"""

import os
from pathlib import Path

from moorage.errors import Failed
from moorage.units import Mib

_MOUNTS = Path("/proc/self/mounts")
_POOLS = Path("/sys/kernel/mm/hugepages")
_KIND = "hugetlbfs"


def page_size(path: str, memory: Mib, mounts: Path = _MOUNTS) -> int:
    """Return the size of the huge pages at a path in KiB; a guest's memory fits.

    Parameters
    ----------
    memory
        Of the guest.
    mounts
        Lists what is mounted.

    Raises
    ------
    Failed
        If there are none, or too few are free.
    """
    if not _is_there(path, mounts):
        raise Failed(
            f"mem_path {path} has no huge pages: nothing of the kind {_KIND} is "
            "mounted there",
            hint=f"on the node: mount -t {_KIND} {_KIND} {path}",
        )
    size = os.statvfs(path).f_bsize // 1024
    if memory * 1024 % size:
        raise Failed(
            f"{memory} MiB of memory are no whole number of huge pages: those at "
            f"{path} have {size} KiB"
        )
    free = free_memory(size)
    if free < memory:
        raise Failed(
            f"{memory} MiB of memory do not fit into the huge pages at {path}: "
            f"{free} MiB of them are free",
            hint=f"on the node: {_POOLS}/hugepages-{size}kB/nr_hugepages",
        )
    return size


def free_memory(size: int, pools: Path = _POOLS) -> Mib:
    """Return how much memory is free in pages of so many KiB.

    What a process has been promised, and has not touched yet, is not free.
    """
    pool = pools / f"hugepages-{size}kB"
    free, promised = (
        int((pool / name).read_text()) for name in ("free_hugepages", "resv_hugepages")
    )
    return Mib((free - promised) * size // 1024)


def _is_there(path: str, mounts: Path) -> bool:
    """Whether what is mounted at a path, or above it, are huge pages."""
    real = Path(os.path.realpath(path))
    kinds: dict[str, str] = {}
    for line in mounts.read_text().splitlines():
        _, where, kind, *_ = line.split(" ")
        kinds[where.encode().decode("unicode_escape")] = kind
    found = next((str(at) for at in (real, *real.parents) if str(at) in kinds), "")
    return real.is_dir() and kinds.get(found) == _KIND
