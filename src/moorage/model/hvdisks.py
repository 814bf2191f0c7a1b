# SPDX-License-Identifier: BSD-2-Clause
"""The parameters of kvm that are about how disks are read and written."""

from typing import Protocol

from moorage.errors import BadInput

from .hvscreen import one_of

CACHES: dict[str, dict[str, bool]] = {
    "none": {"direct": True, "no-flush": False},
    "directsync": {"direct": True, "no-flush": False},
    "writeback": {"direct": False, "no-flush": False},
    "writethrough": {"direct": False, "no-flush": False},
    "unsafe": {"direct": False, "no-flush": True},
}
"""QEMU's options of a block node by Ganeti's word for a cache."""
THROUGH = frozenset({"directsync", "writethrough"})
"""Caches with which each write reaches the storage at once."""
DISCARDS = {
    **dict.fromkeys(("", "default", "unmap", "on"), "unmap"),
    **dict.fromkeys(("ignore", "off"), "ignore"),
}
"""QEMU's word by Ganeti's for what becomes of what a guest discards."""
PARAVIRTUAL = "paravirtual"
DRIVERS = {PARAVIRTUAL: "virtio-blk-pci", "ide": "ide-hd", "scsi-hd": "scsi-hd"}
"""QEMU's device by Ganeti's word for what a disk is; the first on any machine."""
CONTROLLERS = {"lsi": 7, "megasas": 16, "virtio-scsi-pci": 16}
"""How many disks a SCSI controller has, by its word."""
IDE_DISKS = 4
_AIO = frozenset({"threads", "native", "io_uring"})
_DIRECT = frozenset({"default", "none", "directsync"})


class Disks(Protocol):
    """The parameters that these rules look at."""

    @property
    def disk_aio(self) -> str:
        """How QEMU reads and writes."""

    @property
    def disk_cache(self) -> str:
        """Which caches there are."""

    @property
    def disk_type(self) -> str:
        """What a disk is."""

    @property
    def scsi_controller_type(self) -> str:
        """What SCSI disks are on."""

    @property
    def disk_discard(self) -> str:
        """What becomes of what a guest discards."""


def check(given: Disks) -> None:
    """Raise `BadInput` for a value that no disk has, and for two that exclude."""
    one_of("disk_type", given.disk_type, DRIVERS)
    one_of("scsi_controller_type", given.scsi_controller_type, CONTROLLERS)
    one_of("disk_aio", given.disk_aio, _AIO)
    one_of("disk_cache", given.disk_cache, {"default", *CACHES})
    one_of("disk_discard", given.disk_discard, DISCARDS)
    if given.disk_aio == "native" and given.disk_cache not in _DIRECT:
        raise BadInput(
            "disk_aio=native bypasses the node's cache, and disk_cache="
            f"{given.disk_cache} does not",
            hint="disk_cache=none, or disk_aio=threads",
            parameter="disk_aio",
        )
