# SPDX-License-Identifier: BSD-2-Clause
"""Kernel modules: which ones the guest loads, in an order in which they load.

Each module names what it depends on in its own ``.modinfo``, so no index is needed.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

WANTED = (
    *("virtio_pci", "virtio_blk", "virtio_console", "virtio_net", "virtio_rng"),
    *("button", "evdev"),  # the power button
    *("nls_cp437", "nls_ascii", "vfat"),  # the disk that it was booted from
    *("crc32c_generic", "ext4"),
)
"""What the guest can use; a module that the kernel has built in is passed over."""

_DEPENDS = re.compile(rb"(?:^|\0)depends=([^\0]*)\0")


def modules_in(root: Path) -> dict[str, Path]:
    """Return the file of each module of an unpacked kernel package, by its name."""
    found = (root / "lib" / "modules").glob("*/kernel/**/*.ko")
    return {path.stem.replace("-", "_"): path for path in found}


def depends(module: bytes) -> list[str]:
    """Return what the module says that it depends on."""
    found = _DEPENDS.search(module)
    names = found[1].decode().split(",") if found else []
    return [name.replace("-", "_") for name in names if name]


def load_order(
    wanted: Iterable[str], needs: Callable[[str], list[str] | None]
) -> list[str]:
    """Return the modules to load, each after those that it depends on.

    Parameters
    ----------
    wanted
        Names of modules.
    needs
        What a module depends on; None for one that is built in or unknown.

    >>> load_order(["b"], {"a": [], "b": ["a", "x"]}.get)
    ['a', 'b']
    """
    order: dict[str, None] = {}

    def visit(name: str) -> None:
        below = needs(name)
        if below is None or name in order:
            return
        for other in below:
            visit(other)
        order[name] = None

    for name in wanted:
        visit(name)
    return list(order)
