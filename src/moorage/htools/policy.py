# SPDX-License-Identifier: BSD-2-Clause
"""Instance policies: which sizes a group accepts."""

from dataclasses import dataclass
from typing import Protocol

from moorage.htools.words import TEMPLATES, Fail


@dataclass(frozen=True, slots=True)
class Spec:
    """One size of instance.

    Attributes
    ----------
    memory, disk : int
        MiB; `disk` is the size of one disk.
    cpus, disks, nics, spindles : int
        Virtual processors, number of disks, of network cards, spindle use.
    """

    memory: int
    cpus: int
    disk: int
    disks: int
    nics: int
    spindles: int


class Sized(Protocol):
    """What a policy looks at."""

    mem: int
    vcpus: int
    spindle_use: int
    template: str
    sizes: tuple[int, ...]
    total_spindles: int | None


@dataclass(frozen=True, slots=True)
class Policy:
    """The sizes, templates and ratios that a group accepts.

    Attributes
    ----------
    ranges : tuple of (Spec, Spec)
        Pairs of smallest and largest; an instance must lie within one pair.
    standard : Spec
        The size that capacity is counted in.
    templates : tuple of str
        Allowed disk templates, the preferred one first.
    vcpu_ratio : float
        Virtual processors per processor; negative for no limit.
    spindle_ratio : float
        Instance spindles per spindle of a node.
    """

    ranges: tuple[tuple[Spec, Spec], ...]
    standard: Spec
    templates: tuple[str, ...]
    vcpu_ratio: float
    spindle_ratio: float


DEFAULT = Policy(
    ranges=((Spec(128, 1, 1024, 1, 1, 1), Spec(32768, 8, 1048576, 16, 8, 12)),),
    standard=Spec(128, 1, 1024, 1, 1, 1),
    templates=TEMPLATES,
    vcpu_ratio=4.0,
    spindle_ratio=32.0,
)


def breach(policy: Policy, asked: Sized, *, exclusive: bool) -> Fail | None:
    """Return why `policy` refuses `asked`, or None.

    With several ranges the first one's reason is given when none fits.
    """
    found: Fail | None = None
    for low, high in reversed(policy.ranges):
        found = _outside(low, high, asked, exclusive=exclusive)
        if found is None:
            break
    if found is None and asked.template not in policy.templates:
        return Fail.DISK
    return found


def _outside(low: Spec, high: Spec, asked: Sized, *, exclusive: bool) -> Fail | None:
    """Return the first bound of one range that `asked` breaks."""
    sizes = asked.sizes
    counted = asked.template != "diskless"
    spindles = asked.total_spindles if exclusive else asked.spindle_use
    checks = (
        (Fail.MEMORY, asked.mem < low.memory),
        (Fail.DISK, any(size < low.disk for size in sizes)),
        (Fail.CPU, asked.vcpus < low.cpus),
        (Fail.SPINDLES, spindles is None or spindles < low.spindles),
        (Fail.DISK_COUNT, counted and len(sizes) < low.disks),
        (Fail.MEMORY, asked.mem > high.memory),
        (Fail.DISK, any(size > high.disk for size in sizes)),
        (Fail.CPU, asked.vcpus > high.cpus),
        (Fail.SPINDLES, spindles is None or spindles > high.spindles),
        (Fail.DISK_COUNT, counted and len(sizes) > high.disks),
    )
    return next((fail for fail, broken in checks if broken), None)
