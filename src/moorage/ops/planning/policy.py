# SPDX-License-Identifier: BSD-2-Clause
"""Keeping instances to the policy of their node group."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from moorage import htools
from moorage.errors import BadInput
from moorage.htools.constants import TEMPLATES
from moorage.htools.policy import Spec
from moorage.model import Config, Disk, Instance, NodeGroup, ipolicy
from moorage.ops.asking.node_tasks import beparams
from moorage.units import shortened

_NO_MEASURE = 2**40
"""More than any instance has."""


def sizes_of(
    config: Config,
    instance: Instance,
    disks: Iterable[Disk] | None = None,
    more: Sequence[tuple[str, int]] = (),
) -> ipolicy.Sizes:
    """Return an instance as a policy sees it.

    Parameters
    ----------
    disks
        Its disks, where they are not those of the configuration.
    more
        Template and MiB of disks that it gets besides.
    """
    full = beparams(config, instance)
    have = config.disks_of(instance) if disks is None else disks
    return ipolicy.Sizes(
        memory=int(full["maxmem"]),
        vcpus=int(full["vcpus"]),
        disks=(*((disk.dev_type, disk.size) for disk in have), *more),
        nics=len(instance.nics),
        spindle_use=int(full["spindle_use"]),
    )


def check(config: Config, group: NodeGroup, name: str, sizes: ipolicy.Sizes) -> None:
    """Raise `BadInput` if an instance is not of a size that its group takes."""
    found = ipolicy.violations(ipolicy.group_policy(config.cluster, group), sizes)
    if found:
        raise _breach(group, name, found)


def check_change(
    config: Config, group: NodeGroup, instance: Instance, after: ipolicy.Sizes
) -> None:
    """Raise `BadInput` if a change of an instance breaks what it keeps to by now.

    What was outside of the policy before is nobody's fault now.
    """
    policy = ipolicy.group_policy(config.cluster, group)
    old = set(ipolicy.violations(policy, sizes_of(config, instance)))
    found = [one for one in ipolicy.violations(policy, after) if one not in old]
    if found:
        raise _breach(group, instance.name, found)


def outside(
    config: Config, group: NodeGroup, rules: Mapping[str, Any]
) -> dict[str, str]:
    """Return what a policy refuses of a group's instances as they are, by name."""
    found: dict[str, str] = {}
    for node in config.nodes_in(group):
        for instance in config.instances_on(node):
            broken = ipolicy.violations(rules, sizes_of(config, instance))
            if broken:
                found[instance.name] = "; ".join(broken)
    return found


def warnings(
    config: Config,
    group: NodeGroup,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> Iterator[str]:
    """Say which instances keep to a group's policy now and break it afterwards."""
    old = outside(config, group, before)
    new = [name for name in outside(config, group, after) if name not in old]
    if new:
        yield (
            f"the new policy of node group {group.name} is broken by "
            f"{shortened(new, 5)}; they stay as they are"
        )


def _breach(group: NodeGroup, name: str, found: Sequence[str]) -> BadInput:
    return BadInput(
        f"instance {name} would break the instance policy of node group "
        f"{group.name}: {'; '.join(found)}",
        hint="to do it all the same: --ignore-ipolicy; "
        f"the policy: gnt-group info {group.name}",
        group=group.name,
    )


def as_planned(told: Mapping[str, Any], *, any_size: bool = False) -> htools.Policy:
    """Return an instance policy as the planner has it; one without bounds, if asked."""
    ranges = tuple((_spec(p["min"]), _spec(p["max"])) for p in told["minmax"])
    return htools.Policy(
        ranges=((_all(0), _all(_NO_MEASURE)),) if any_size else ranges,
        standard=_spec(told["std"]),
        templates=TEMPLATES if any_size else tuple(told["disk-templates"]),
        vcpu_ratio=float(told["vcpu-ratio"]),
        spindle_ratio=float(told["spindle-ratio"]),
    )


def _all(amount: int) -> Spec:
    return Spec(*(amount for _ in ipolicy.SIZES))


def _spec(told: Mapping[str, int]) -> Spec:
    return Spec(*(told[name] for name in ipolicy.SIZES))
