# SPDX-License-Identifier: BSD-2-Clause
"""Instance policies in Ganeti's layout: which sizes a group of nodes is meant for.

A group's own policy covers the cluster's, part by part, and that one the default.
Sizes are MiB.

The default's upper bounds are Ganeti's. Its lower bounds are not: there a disk has at
least 1 GiB and an instance at least one network card. Disks are objects of their own
here, small ones are usual, and a bound that nobody chose should refuse nobody.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from moorage.disk_templates import driven
from moorage.errors import BadInput
from moorage.policy_sizes import POLICY_SIZES, SPINDLE_RATIO, VCPU_RATIO
from moorage.units import LARGEST, MOST

from .objects import DISKLESS, Cluster, NodeGroup

SIZES = tuple(size.name for size in POLICY_SIZES)
"""What a specification holds."""
RATIOS = ("vcpu-ratio", "spindle-ratio")
PARTS = ("minmax", "std", "disk-templates", *RATIOS)
"""What a policy holds; only the cluster's own has ``std``."""
_MIB = {size.name for size in POLICY_SIZES if size.is_size}
DEFAULT: dict[str, Any] = {
    "minmax": [
        {
            "min": {size.name: size.least for size in POLICY_SIZES},
            "max": {size.name: size.most for size in POLICY_SIZES},
        }
    ],
    "std": {size.name: size.standard for size in POLICY_SIZES},
    "disk-templates": driven(),
    "vcpu-ratio": VCPU_RATIO,
    "spindle-ratio": SPINDLE_RATIO,
}


class Sizes(Struct, frozen=True, kw_only=True):
    """An instance as a policy sees it.

    Attributes
    ----------
    disks
        Template and size of each of its disks.
    """

    memory: int
    vcpus: int
    disks: tuple[tuple[str, int], ...] = ()
    nics: int = 0
    spindle_use: int = 1


def cluster_policy(cluster: Cluster) -> dict[str, Any]:
    """Return the policy of groups that have none of their own."""
    return DEFAULT | _with_all_sizes(cluster.ipolicy)


def group_policy(cluster: Cluster, group: NodeGroup) -> dict[str, Any]:
    """Return the policy that holds in a group."""
    return cluster_policy(cluster) | _with_all_sizes(group.ipolicy)


def _with_all_sizes(own: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored parts; a size that is newer than they are has its defaults."""
    found = dict(own)
    if "minmax" in own:
        (usual,) = DEFAULT["minmax"]
        found["minmax"] = [
            {side: usual[side] | pair[side] for side in usual} for pair in own["minmax"]
        ]
    if "std" in own:
        found["std"] = DEFAULT["std"] | own["std"]
    return found


def violations(policy: Mapping[str, Any], sizes: Sizes) -> list[str]:
    """Return what a policy refuses of an instance, each in words; nothing if it fits.

    It fits when it lies between one pair of bounds, and each template is listed. With
    several pairs, the least that any of them refuses is told.
    """
    tried = [list(_outside(pair, sizes)) for pair in policy["minmax"]]
    found = min(tried, key=len, default=[])
    names = dict.fromkeys(name for name, _ in sizes.disks) or {DISKLESS: None}
    for name in names:
        if name not in policy["disk-templates"]:
            allowed = ", ".join(policy["disk-templates"])
            found.append(f"disk template {name} is not among {allowed}")
    return found


def _outside(pair: Mapping[str, Any], sizes: Sizes) -> Iterator[str]:
    for name, value in _values(sizes):
        least, most = pair["min"][name], pair["max"][name]
        if not least <= value <= most:
            yield f"{name} {value} is not in {least}..{most}"


def _values(sizes: Sizes) -> Iterator[tuple[str, int]]:
    yield "memory-size", sizes.memory
    yield "cpu-count", sizes.vcpus
    for _, size in sizes.disks:
        yield "disk-size", size
    if sizes.disks:
        yield "disk-count", len(sizes.disks)
    yield "nic-count", sizes.nics
    yield "spindle-use", sizes.spindle_use


def changed(
    own: Mapping[str, Any],
    given: Mapping[str, Any],
    below: Mapping[str, Any] = DEFAULT,
    *,
    of_group: bool = False,
) -> dict[str, Any]:
    """Return a policy of one's own with some parts changed.

    Parameters
    ----------
    own
        The parts that were set so far.
    given
        New parts; the value ``default`` lets go of one.
    below
        The policy that shows where a part is not set.

    Raises
    ------
    BadInput
        If there is no such part, or a value cannot be one.
    """
    parts = tuple(part for part in PARTS if not of_group or part != "std")
    for name in given:
        if name not in parts:
            raise BadInput(
                f"an instance policy has no part '{name}': it has {', '.join(parts)}"
            )
    kept = {**_with_all_sizes(own), **given}
    found = {name: value for name, value in kept.items() if value != "default"}
    _check({**below, **found}, of_group=of_group)
    return found


def _check(policy: Mapping[str, Any], *, of_group: bool) -> None:
    pairs = policy["minmax"]
    if not isinstance(pairs, list) or not pairs:
        raise BadInput("the bounds of an instance policy are a list of min and max")
    for pair in pairs:
        _check_pair(pair)
    _check_spec("std", policy["std"])
    if not of_group and not any(_within(policy["std"], pair) for pair in pairs):
        raise BadInput(
            "the standard specification lies outside of all bounds",
            hint="--ipolicy-std-specs=… between min and max, in one command with them",
        )
    for name in RATIOS:
        if not _is_number(policy[name]) or not 1 <= policy[name] <= MOST:
            raise BadInput(f"{name} is a number from 1 to {MOST}, not '{policy[name]}'")
    _check_templates(policy["disk-templates"])


def _check_templates(templates: Any) -> None:  # noqa: ANN401 - whatever came
    if not isinstance(templates, list) or not templates:
        raise BadInput("an instance policy allows at least one disk template")
    known = DEFAULT["disk-templates"]
    for name in templates:
        if name not in known:
            told = ", ".join(sorted(known))
            raise BadInput(f"there is no disk template '{name}': there is {told}")


def _check_pair(pair: Any) -> None:  # noqa: ANN401 - whatever came
    if not isinstance(pair, dict) or pair.keys() != {"min", "max"}:
        raise BadInput("a pair of bounds has min and max, and nothing else")
    for side in ("min", "max"):
        _check_spec(side, pair[side])
    for name in SIZES:
        if pair["min"][name] > pair["max"][name]:
            least, most = pair["min"][name], pair["max"][name]
            raise BadInput(f"{name}: the minimum {least} is above the maximum {most}")


def _check_spec(which: str, spec: Any) -> None:  # noqa: ANN401 - whatever came
    if not isinstance(spec, dict) or spec.keys() != set(SIZES):
        raise BadInput(f"{which} holds each of {', '.join(SIZES)}, and nothing else")
    for name, value in spec.items():
        most = LARGEST if name in _MIB else MOST
        if not isinstance(value, int) or isinstance(value, bool):
            raise BadInput(f"{which} {name} is a whole number, not '{value}'")
        if not 0 <= value <= most:
            raise BadInput(f"{which} {name} is 0 to {most}, not {value}")


def _within(spec: Mapping[str, int], pair: Mapping[str, Any]) -> bool:
    return all(pair["min"][n] <= spec[n] <= pair["max"][n] for n in SIZES)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
