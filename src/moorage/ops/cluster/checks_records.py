# SPDX-License-Identifier: BSD-2-Clause
"""Verify what the configuration alone tells: defaults, names and sizes."""

from collections.abc import Iterator

from moorage.consistency import complaints_of_objects
from moorage.errors import BadInput, MoorageError, NotFound
from moorage.model import Disk, NodeGroup, ipolicy
from moorage.ops.planning import allocators, processors
from moorage.ops.planning.policy import outside
from moorage.ops.volumes.disk_names import check_disk_name

from .defaults import problems
from .observation import Finding, Seen


def presets(seen: Seen) -> Iterator[Finding]:
    """Find defaults that no request could be met with."""
    cluster = seen.config.cluster
    found = list(problems(cluster))
    try:
        allocators.check_there(seen.view, cluster.default_iallocator)
    except NotFound as missing:
        found.append(("-I", missing))
    except MoorageError:
        pass  # other checks tell of a name that is none, and of a node that is silent
    for option, error in found:
        yield Finding(
            "cluster",
            f"the default that {option} sets stops new disks or guests: "
            f"{error.message}",
            "gnt-cluster info",
        )


def consistent(seen: Seen) -> Iterator[Finding]:
    """Find all that Ganeti's own check of a configuration finds."""
    for one in complaints_of_objects(seen.config.objects.values()):
        yield Finding(one.object, one.message, ecode=one.code)


def disks(seen: Seen) -> Iterator[Finding]:
    """Find disks that share a name, or are called what no disk may be called now."""
    for disk in seen.config.named(Disk):
        why = _wrong(seen, disk)
        if why:
            hint = f"gnt-disk rename {disk.uuid} NEW_NAME"
            yield Finding(f"disk {disk.uuid}", why, hint, warning=True)


def _wrong(seen: Seen, disk: Disk) -> str:
    if not disk.name:
        return ""
    others = seen.config.namesakes(
        disk.name, seen.config.owner(disk), sole=disk.by_name, but=disk
    )
    if any(one.name == disk.name or one.known_as == disk.known_as for one in others):
        return f"another disk is named '{disk.name}' too"
    try:
        check_disk_name(disk.name)
    except BadInput as error:
        return error.message
    return ""


def starts(seen: Seen) -> Iterator[Finding]:
    """Find instances whose next start would be refused for their parameters."""
    for instance, why in processors.unfit(seen.config):
        yield Finding(
            f"instance {instance.name}",
            f"it cannot start: {why}",
            f"gnt-instance modify -H NAME=VALUE {instance.name}",
        )


def sizes(seen: Seen) -> Iterator[Finding]:
    """Find instances that were made or changed in spite of the policy, or before it."""
    for group in seen.config.named(NodeGroup):
        rules = ipolicy.group_policy(seen.config.cluster, group)
        for name, why in outside(seen.config, group, rules).items():
            yield Finding(
                f"instance {name}",
                f"it breaks the instance policy of node group {group.name}: {why}",
                f"gnt-group info {group.name}",
                warning=True,
            )
