# SPDX-License-Identifier: BSD-2-Clause
"""What becomes of each object of an import, and what stands in its way."""

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from msgspec import Struct

from moorage.disk_templates import FACTS, Reach
from moorage.errors import MoorageError
from moorage.hypervisors import HYPERVISORS, KVM
from moorage.model import Config, Disk, Instance, Network, Node, NodeGroup
from moorage.model.ipolicy import group_policy
from moorage.model.objects import as_text
from moorage.ops.cluster import defaults
from moorage.ops.new_names import is_machine_name
from moorage.ops.planning import policy, processors
from moorage.ops.volumes.disk_names import check_disk_name
from moorage.storage import TEMPLATES
from moorage.storage.validation import check_name
from moorage.units import counted

from .importing import Imported, joined

ERROR, WARNING, NOTICE = "ERROR", "WARNING", "NOTICE"
_SHOWN = 5


class Fate(Struct, frozen=True):
    """What becomes of an object.

    Attributes
    ----------
    kind
        ``node group``, ``network``, ``node``, ``instance`` or ``disk``.
    becomes
        In words.
    """

    kind: str
    name: str
    becomes: str


class Finding(Struct, frozen=True):
    """What is to be known before.

    Attributes
    ----------
    level
        ``ERROR`` stands in the way; ``WARNING`` and ``NOTICE`` are only said.
    object
        What it is about, as ``instance web1``.
    """

    level: str
    object: str
    message: str


class Found(Struct, frozen=True):
    """What every node has, by name.

    Attributes
    ----------
    systems
        Operating systems that can be installed, without their variants.
    providers
        ExtStorage providers.
    """

    systems: frozenset[str]
    providers: frozenset[str]


class Plan(Struct, frozen=True):
    """An import, before it is done.

    Attributes
    ----------
    version
        Of the file.
    """

    cluster: str
    version: str
    objects: tuple[Fate, ...]
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        """How many findings stand in the way."""
        return sum(one.level == ERROR for one in self.findings)


def lines(plan: Plan) -> Iterator[str]:
    """Yield a plan as people read it: no word of the file begins a line of its own."""
    for line in _lines(plan):
        yield "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)


def _lines(plan: Plan) -> Iterator[str]:
    yield f"* Cluster {plan.cluster}, written by Ganeti {plan.version}"
    for one in plan.objects:
        yield f"  - {one.kind} {one.name}: {one.becomes}"
    for found in plan.findings:
        yield f"  - {found.level}: {found.object}: {found.message}"
    told = [
        counted(number, level.lower())
        for level in (ERROR, WARNING)
        if (number := sum(one.level == level for one in plan.findings))
    ]
    yield f"* {' and '.join(told)} found" if told else "* Nothing stands in the way"


def fates(config: Config, here: Config) -> Iterator[Fate]:
    """Yield what becomes of each object."""
    for group in config.named(NodeGroup):
        members = len(config.members.get(group.uuid) or ())
        yield Fate("node group", group.name, f"of {counted(members, 'node')}")
    for network in config.named(Network):
        yield Fate("network", network.name, network.network)
    for node in config.named(Node):
        yield Fate("node", node.name, _node(node, here))
    for instance in config.named(Instance):
        home = _name(config, instance.primary_node)
        what = f"{instance.admin_state} on {home}, {instance.hypervisor}"
        disks = counted(len(instance.disks), "disk")
        yield Fate("instance", instance.name, f"{what}, {disks}")
    for disk in sorted(config.all(Disk), key=lambda one: one.uuid):
        owner = config.owner(disk)
        whose = f"{config.iv_name(disk)} of {owner.name}" if owner else "detached"
        where = ":".join(map(str, disk.volumes[0]))
        told = f"{disk.dev_type}, {disk.size} MiB, {where}, {whose}"
        yield Fate("disk", disk.label, told)


def _node(node: Node, here: Config) -> str:
    own = joined(here).get(node.name)
    if own is None:
        return "it is not there: offline"
    role = "master" if own.uuid == here.cluster.master_node else "node"
    if own.master_candidate and role == "node":
        role = "master candidate"
    return f"{role} at {own.primary_ip}, with the key that it joined with"


def _name(config: Config, uuid: str) -> str:
    node = config.objects.get(uuid)
    return node.name if isinstance(node, Node) else uuid


def findings(
    found: Imported,
    here: Config,
    *,
    down: bool,
    run_on: bool = False,
    real: Callable[[str], str] = str,
) -> Iterator[Finding]:
    """Yield what is to be known before an import.

    Parameters
    ----------
    down
        Whether somebody vouches that Ganeti runs no guest any more.
    run_on
        Whether guests that Ganeti runs are to be taken over.
    real
        Returns what a device's path means on this machine: it may have several.
    """
    config = found.config
    yield from (Finding(ERROR, "file", one) for one in found.wrong)
    yield from (Finding(WARNING, of, why) for of, why in found.aside)
    yield from _taken(here)
    for uuid in sorted(here.objects.keys() & config.objects.keys()):
        yield Finding(ERROR, "cluster", f"there is an object {uuid} already")
    yield from _nodes(config, here)
    yield from _instances(config, down=down, run_on=run_on)
    yield from _disks(config)
    yield from _volumes(config, real)
    yield from _names(config)
    if found.wrong:
        return
    for option, error in defaults.problems(config.cluster):
        yield Finding(WARNING, "cluster", f"{option}: {error}")
    yield from _policies(config)
    if config.cluster.hvparams.get(KVM, {}).get("security_model") == "none":
        message = (
            "-H kvm:security_model=none: guests run as root, as with Ganeti. To give "
            "each a user of its own: gnt-cluster modify -H kvm:security_model=pool"
        )
        yield Finding(NOTICE, "cluster", message)
    for instance, why in processors.unfit(config):
        yield Finding(WARNING, f"instance {instance.name}", f"it cannot start: {why}")
    up = sum(one.admin_state == "up" for one in config.all(Instance))
    if up:
        what = "is marked up" if up == 1 else "are marked up"
        message = f"{counted(up, 'instance')} {what}: the watcher starts what is"
        yield Finding(NOTICE, "cluster", message)


def lacking(config: Config, there: Found) -> Iterator[Finding]:
    """Yield what instances and disks need, and some node that is on lacks."""
    for instance in config.named(Instance):
        system = instance.os.partition("+")[0]
        if system and system not in there.systems:
            message = f"no OS '{system}' on every node: gnt-os diagnose {system}"
            yield Finding(WARNING, f"instance {instance.name}", message)
    for disk in sorted(config.all(Disk), key=lambda one: one.label):
        provider = str(disk.logical_id[0]) if disk.dev_type == "ext" else ""
        if provider and provider not in there.providers:
            message = (
                f"no ExtStorage provider '{provider}' on every node: "
                f"gnt-storage diagnose {provider}"
            )
            yield Finding(WARNING, f"disk {disk.label}", message)


def _policies(config: Config) -> Iterator[Finding]:
    for group in config.named(NodeGroup):
        rules = group_policy(config.cluster, group)
        for name, broken in policy.outside(config, group, rules).items():
            message = f"it breaks the policy of node group {group.name}: {broken}"
            yield Finding(WARNING, f"instance {name}", message)


def _taken(here: Config) -> Iterator[Finding]:
    for kind, what in ((Instance, "instance"), (Disk, "disk")):
        names = sorted(getattr(one, "name", None) or one.uuid for one in here.all(kind))
        if names:
            shown = ", ".join(names[:_SHOWN])
            message = f"it has {counted(len(names), what)} already: {shown}"
            yield Finding(ERROR, "cluster", message)


def _nodes(config: Config, here: Config) -> Iterator[Finding]:
    names = {one.name for one in config.all(Node)}
    for own in here.named(Node):
        if own.name not in names:
            way = f"gnt-node remove {own.name}"
            message = f"it is in this cluster, and not in the file: {way}"
            yield Finding(ERROR, f"node {own.name}", message)
    for node in config.named(Node):
        if node.name not in joined(here):
            message = "no node of this name has joined: it is offline"
            yield Finding(WARNING, f"node {node.name}", message)


def _runs(config: Config, instance: Instance, *, run_on: bool) -> str:
    """Return why an instance that is marked up may not come in so; empty if it may."""
    if not run_on:
        return (
            "it is marked up: Ganeti may run its guest, which would be started a "
            "second time. gnt-instance shutdown it there, or --guests-are-down, or "
            "--guests-run-on"
        )
    home = config.objects.get(instance.primary_node)
    if isinstance(home, Node) and home.offline:
        why = "no agent has joined from its node: nobody sees whether Ganeti runs it"
    elif instance.hypervisor != KVM:
        why = f"guests of {instance.hypervisor} are not taken over"
    else:
        return ""
    return f"it is marked up, and {why}. gnt-instance shutdown it there"


def _instances(config: Config, *, down: bool, run_on: bool) -> Iterator[Finding]:
    for instance in config.named(Instance):
        why = "" if down else _runs(config, instance, run_on=run_on)
        if instance.admin_state == "up" and why:
            yield Finding(ERROR, f"instance {instance.name}", why)
        if instance.hypervisor not in HYPERVISORS:
            message = (
                f"nothing here runs guests of {instance.hypervisor}: it cannot start"
            )
            yield Finding(WARNING, f"instance {instance.name}", message)


def _disks(config: Config) -> Iterator[Finding]:
    for disk in config.all(Disk):
        if disk.dev_type not in TEMPLATES:
            message = f"there is no disk template '{disk.dev_type}' here"
            yield Finding(WARNING, f"disk {disk.label}", message)


def _volumes(config: Config, real: Callable[[str], str]) -> Iterator[Finding]:
    """Yield what an adoption refuses, too: a volume that two disks are made of."""
    seen: dict[tuple[str, ...], list[Disk]] = defaultdict(list)
    for disk in sorted(config.all(Disk), key=lambda one: one.uuid):
        for part in disk.children or (disk,):
            if ".." in PurePosixPath(as_text(part.logical_id)[-1]).parts:
                message = "the path of its volume goes up again (..): write it out"
                yield Finding(ERROR, f"disk {disk.label}", message)
            having = seen[_place(part, real)]
            for other in having:
                apart = _is_local(disk) and _is_local(other)
                apart = apart and not {*disk.nodes} & {*other.nodes}
                if not apart and not disk.unproven and not other.unproven:
                    message = (
                        f"its volume {'/'.join(as_text(part.logical_id))} is disk "
                        f"{other.label}'s, too, and goes with either: detach one there"
                    )
                    yield Finding(ERROR, f"disk {disk.label}", message)
                    break
            having.append(disk)


def _is_local(disk: Disk) -> bool:
    """Whether a disk is on known nodes alone."""
    facts = FACTS.get(disk.dev_type)
    return bool(disk.nodes) and facts is not None and facts.reach is not Reach.GROUP


def _place(part: Disk, real: Callable[[str], str]) -> tuple[str, ...]:
    """Return where a volume is: a path is one, whoever drives it, however written."""
    *first, volume = as_text(part.logical_id)
    provided = part.dev_type in TEMPLATES and (
        TEMPLATES[part.dev_type].capabilities.provider
    )
    if "/" not in volume or provided:
        return part.dev_type, *first, volume
    kind = "" if volume.startswith("/") else part.dev_type
    path = posixpath.normpath(f"/{volume.lstrip('/')}")
    return kind, real(path) if path.startswith("/dev/") else path


def _names(config: Config) -> Iterator[Finding]:
    machines = [("node", one.name) for one in config.named(Node)]
    machines += [("instance", one.name) for one in config.named(Instance)]
    for word, name in machines:
        if not is_machine_name(name):
            message = "it could not be made with this name here"
            yield Finding(WARNING, f"{word} {name}", message)
    others = [("node group", one.name) for one in config.named(NodeGroup)]
    others += [("network", one.name) for one in config.named(Network)]
    others += [("disk", one.name) for one in config.all(Disk) if one.name]
    for word, name in sorted(others):
        try:
            check_name(word, name)
            if word == "disk":
                check_disk_name(name)
        except MoorageError as error:
            yield Finding(WARNING, f"{word} {name}", error.message)
