# SPDX-License-Identifier: BSD-2-Clause
"""Parameters through which a node's root would act for whoever sets them.

They name files, devices or users of a node, or hold arguments of a program that root
starts. All others may be set by whoever may make instances and disks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .hvparams import KNOWN

HYPERVISOR = frozenset(
    (
        *("cdrom_image_path", "cdrom2_image_path", "floppy_image_path"),
        *("kernel_path", "initrd_path", "kvm_extra", "kvm_path", "mem_path"),
        *("security_model", "security_domain", "use_chroot"),
        *("vnc_password_file", "vnc_x509_path", "spice_password_file"),
    )
)
"""Of hypervisors."""
DISK = frozenset({"adopt", "reuse_data", "dir", "path", "device"})
"""Of disks, and of their providers."""

_OURS = (None, "", ".", "hail")
"""What stands for our planner, or for the cluster's default."""


def hypervisor(given: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield those among parameters, which may stand below the hypervisor's name.

    >>> list(hypervisor({"kvm": {"acpi": True, "kvm_extra": "-snapshot"}}))
    ['kvm_extra']
    """
    for name, value in sorted((given or {}).items()):
        if isinstance(value, Mapping) and name not in KNOWN:
            yield from hypervisor(value)
        elif name in HYPERVISOR and value not in ("", None, "default"):
            yield name


def disk(given: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield those among the parameters of a disk, a provider or a storage pool."""
    for name, value in sorted((given or {}).items()):
        if isinstance(value, Mapping):
            yield from disk(value)
        elif name.lower() in DISK and value not in ("", None):
            yield name.lower()  # scripts see names in capitals, however they came


def allocator(given: str | None) -> Iterator[str]:
    """Yield the field that names an allocator which is a program: not our planner.

    >>> list(allocator("hail")), list(allocator("least-used"))
    ([], ['iallocator'])
    """
    if given not in _OURS:
        yield "iallocator"


def default_allocator(given: str | None) -> Iterator[str]:
    """Yield the field of a default allocator that is a program."""
    if given not in _OURS:
        yield "default_iallocator"


def disks(given: Iterable[Any] | None) -> Iterator[str]:
    """Yield those among disks, or changes of disks: each ends with its parameters."""
    for one in given or ():
        last = one[-1] if isinstance(one, Sequence) and one else one
        if isinstance(last, Mapping):
            yield from disk(last)
