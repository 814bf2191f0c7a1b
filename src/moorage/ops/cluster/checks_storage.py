# SPDX-License-Identifier: BSD-2-Clause
"""Verify that every node of a group can use the storage that is in use there."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

from moorage.errors import MoorageError
from moorage.model import Disk, Node, NodeFacts, NodeGroup
from moorage.ops.volumes import disk_access
from moorage.ops.volumes.directories import directories as set_directories
from moorage.ops.volumes.directories import setting_of
from moorage.ops.volumes.units import names_its_place
from moorage.storage.provider import provider_called
from moorage.units import counted

from .observation import Finding, Seen, group_uuid


def directories(seen: Seen) -> Iterator[Finding]:
    """Find disks in directories that the cluster has none set for."""
    disks = [disk for disk in seen.config.all(Disk) if not names_its_place(disk)]
    used = Counter(disk.dev_type for disk in disks)
    kinds = {disk.dev_type: disk_access.template(disk) for disk in disks}
    for name in sorted(used):
        setting = setting_of(kinds[name])
        if setting and not getattr(seen.config.cluster, setting):
            yield Finding(
                "cluster",
                f"{setting} is not set, for {counted(used[name], 'disk')} of template "
                f"'{name}'",
                f"gnt-cluster modify --{setting.replace('_', '-')}=DIR",
            )


def units(seen: Seen) -> Iterator[Finding]:
    """Find directories in use that a node lacks, and units told twice."""
    kept = _kept(seen)
    for node, facts in seen.nodes():
        told = Counter(unit.name for unit in facts.units)
        for name in sorted(name for name, count in told.items() if count > 1):
            yield Finding(
                f"node {node.name}",
                f"it tells of the storage unit {'/'.join(name)} {told[name]} times",
                f"gnt-node list -o name,storage {node.name}",
            )
        for template, path in kept.items() if node.vm_capable else ():
            if (template, path) not in told:
                yield _lacking(node, path)


def allowed(seen: Seen) -> Iterator[Finding]:
    """Find nodes whose own list lacks a directory of the cluster."""
    kept, known = _kept(seen), set_directories(seen.config.cluster)
    for node, facts in seen.nodes():
        for template, path in known.items() if node.vm_capable else ():
            if is_forbidden(facts, path):
                yield _forbidden(node, facts, path, warning=template not in kept)


def _kept(seen: Seen) -> dict[str, str]:
    """Return the directories of the cluster's that a disk is in, by template."""
    disks = seen.config.all(Disk)
    used = {disk.dev_type for disk in disks if not names_its_place(disk)}
    known = set_directories(seen.config.cluster)
    return {name: path for name, path in known.items() if name in used}


def _lacking(node: Node, path: str) -> Finding:
    return Finding(
        f"node {node.name}",
        f"it has no directory {path}, where the cluster keeps disks",
        f"mount it on {node.name}",
    )


def _forbidden(node: Node, facts: NodeFacts, path: str, *, warning: bool) -> Finding:
    told, hint = listed(node, facts)
    return Finding(
        f"node {node.name}",
        f"it does not allow disks in {path}: {told}",
        hint,
        warning=warning,
    )


def listed(node: Node, facts: NodeFacts) -> tuple[str, str]:
    """Return what a node's list of directories has, and what to do about it."""
    file = f"file-storage-paths on {node.name}"
    allowed = ", ".join(facts.allowed_directories or ())
    if allowed:
        return f"its list of directories has {allowed}", f"add it to {file}"
    told = "is empty, or not believed because others than root may write it"
    return (
        f"its list of directories {told}",
        f"add it to {file}, which is root's (mode 644), as the directories on the way",
    )


def is_forbidden(facts: NodeFacts, path: str) -> bool:
    """Whether a node has a list of directories, and a path is below none of them."""
    listed = facts.allowed_directories
    if listed is None:
        return False
    return not any(PurePosixPath(path).is_relative_to(one) for one in listed)


def providers(seen: Seen) -> Iterator[Finding]:
    """Find providers in use that some node of the group cannot use.

    Nothing is broken while no instance of the node needs it: such a node is left out
    when a place is sought. So it is with one that is new or drained.
    """
    used: dict[tuple[str, str], int] = defaultdict(int)
    here: set[tuple[str, str]] = set()
    for disk in seen.config.all(Disk):
        group, name = group_uuid(seen.config, disk), str(disk.logical_id[0])
        owner = seen.config.owner(disk)
        if disk_access.able(disk).provider and group:
            used[group, name] += 1
            here |= {(owner.primary_node, name)} if owner else set()
    for (group, name), count in sorted(used.items()):
        for node, problem in _problems(seen, seen.config.group(group), name):
            yield Finding(
                f"node {node.name}",
                f"ExtStorage provider '{name}', of {counted(count, 'disk')} in group "
                f"{seen.config.group(group).name}: {problem}",
                "gnt-storage diagnose",
                warning=(node.uuid, name) not in here,
            )


def _problems(seen: Seen, group: NodeGroup, name: str) -> Iterator[tuple[Node, str]]:
    for node in disk_access.online(seen.config, group):
        problem = _problem(seen, node, name)
        if problem:
            yield node, problem


def _problem(seen: Seen, node: Node, name: str) -> str:
    """Return what is wrong with a provider on a node that answered."""
    try:
        found = provider_called(name, disk_access.providers(seen.view, node))
    except MoorageError:
        return ""  # that the node is silent is a finding of its own
    if found is None:
        return "it is not there"
    return found.problem
