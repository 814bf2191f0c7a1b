# SPDX-License-Identifier: BSD-2-Clause
"""Instance policies: which sizes a group accepts."""

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

from moorage.disk_templates import FACTS
from moorage.htools.constants import TEMPLATES, Fail
from moorage.policy_sizes import POLICY_SIZES, SPINDLE_RATIO, VCPU_RATIO


class Spec(NamedTuple):
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


class Policy(NamedTuple):
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


_STANDARD = Spec(**{size.field: size.standard for size in POLICY_SIZES})
_MOST = Spec(**{size.field: size.most for size in POLICY_SIZES})
DEFAULT = Policy(
    ranges=((_STANDARD, _MOST),),
    standard=_STANDARD,
    templates=TEMPLATES,
    vcpu_ratio=VCPU_RATIO,
    spindle_ratio=SPINDLE_RATIO,
)
"""Ganeti's, whose least is its standard: of a cluster that says nothing itself."""


class Limit(NamedTuple):
    """A bound of a policy that an instance breaks.

    Attributes
    ----------
    of : str
        The bound's name, a field of `Spec`.
    fail : Fail
        The word that Ganeti's tools use for it.
    asked : int or None
        What the instance has; None where that is unknown.
    """

    of: str
    fail: Fail
    asked: int | None

    @property
    def constraint(self) -> str:
        """Its name in a sentence."""
        return _BOUNDS[self.of][1]

    def allowed(self, policy: Policy) -> list[list[int]]:
        """Return what each range of the policy allows, least and most."""
        return [
            [getattr(low, self.of), getattr(high, self.of)]
            for low, high in policy.ranges
        ]


_BOUNDS: Final = {
    "memory": (Fail.MEMORY, "policy memory"),
    "disk": (Fail.DISK, "policy disk size"),
    "cpus": (Fail.CPU, "policy vcpus"),
    "spindles": (Fail.SPINDLES, "policy spindles"),
    "disks": (Fail.DISK_COUNT, "policy disk count"),
}
"""The bounds of a policy, in the order in which they are looked at."""
_bounds_of: Final = attrgetter(*_BOUNDS)


def breach(policy: Policy, asked: Sized, *, exclusive: bool) -> Fail | None:
    """Return why `policy` refuses `asked`, or None."""
    limit = broken_limit(policy, asked, exclusive=exclusive)
    if limit is not None:
        return limit.fail
    return None if asked.template in policy.templates else Fail.DISK


def broken_limit(policy: Policy, asked: Sized, *, exclusive: bool) -> Limit | None:
    """Return which bound of `policy` an instance breaks; None where a range fits.

    With several ranges it is one of the first. Whose disks are on no node's own volumes
    has no spindles to itself, on no node: its use of spindles counts.
    """
    whole = asked.total_spindles != 0 or FACTS[asked.template].node_disk
    spindles = asked.total_spindles if exclusive and whole else asked.spindle_use
    amounts: tuple[Sequence[int | None], ...] = (
        (asked.mem,),
        asked.sizes,
        (asked.vcpus,),
        (spindles,),
        (len(asked.sizes),) if FACTS[asked.template].has_disks else (),
    )
    found: Limit | None = None
    for low, high in reversed(policy.ranges):
        found = _outside(low, amounts, 1) or _outside(high, amounts, -1)
        if found is None:
            break
    return found


def _outside(
    bounds: Spec, amounts: Iterable[Sequence[int | None]], sign: int
) -> Limit | None:
    """Return the first bound that is broken: downwards, or upwards if `sign` is -1."""
    for name, bound, amount in zip(_BOUNDS, _bounds_of(bounds), amounts, strict=True):
        for asked in amount:
            if asked is None or sign * (bound - asked) > 0:
                return Limit(name, _BOUNDS[name][0], asked)
    return None
