# SPDX-License-Identifier: BSD-2-Clause
"""One device is one disk: what nodes tell of devices, compared with what is recorded.

A device has many names below ``/dev/disk``, and a name may lead to another device on
another node, or tomorrow. So paths prove nothing. What names a device on every node is
its identity (a WWID), which the disk keeps from its adoption on; and on one node, two
paths with one device number are one device, also where a device tells no identity.
"""

from collections.abc import Iterable, Iterator

from moorage.errors import BadInput, Exists, MoorageError, WrongState
from moorage.jobs import Ask, Lock, Question, View
from moorage.model import Config, Device, Disk, Node
from moorage.model.objects import as_text
from moorage.ops.asking.node_tasks import devices_on
from moorage.protocol import GetDevices
from moorage.storage import Can, Where
from moorage.storage.templates import template_named

ADOPTION = Lock("disk", "adoption")
"""Held by whoever adopts: which device a path means is known only when it is asked."""
PART = "-part"
"""Between the identity of a device and the number of a part of it."""
COMPARE = "compare on the nodes: lsblk -o NAME,SIZE,SERIAL,WWN"


def is_adopted(disk: Disk) -> bool:
    """Whether the disk is a device that somebody else made."""
    can = template_named(disk.dev_type).capabilities.can
    return Can.ADOPT in can and Can.CREATE not in can


def adopted(config: Config) -> list[Disk]:
    """Return the disks that are devices of somebody else's."""
    return [disk for disk in config.all(Disk) if is_adopted(disk)]


def ask(config: Config, nodes: Iterable[Node], path: str) -> Iterator[Question]:
    """Ask nodes for a device, and for all that are adopted already."""
    paths = sorted({path, *(disk.volume for disk in adopted(config))})
    for node in nodes:
        yield devices_on(node.uuid, paths)


def devices(view: View, node: Node) -> dict[str, Device]:
    """Return what a node told about paths; those that it was not asked for are absent.

    Raise what came instead of an answer.
    """
    found: dict[str, Device] = {}
    for question in view.answers:
        if isinstance(question.call, GetDevices) and question.node == node.uuid:
            told = view.answer(Ask(node.uuid, question.call)) or []
            found.update(zip(question.call.paths, told, strict=True))
    return found


def device(view: View, node: Node, path: str) -> Device:
    """Return what a node told about one path; nothing is a device of no kind."""
    return devices(view, node).get(path, Device())


def check_at_rest(view: View, disk: Disk, node: Node, at: Where) -> None:
    """Raise `WrongState` unless a node has what the disk's record says, and where.

    `at` is where the data is while nobody has it attached.
    """
    found = devices(view, node).get(str(at.path))
    if found is None:  # nobody asked
        return
    wanted = "block" if at.block else "file"
    if found.kind != wanted:
        word = "block device" if at.block else "file"
        told = found.problem or f"node {node.name} has no {word} {at.path}"
        raise WrongState(told, disk=disk.uuid, node=node.name)
    if not at.block and found.size < disk.size:
        raise WrongState(
            f"file {at.path} of disk {disk.label} has {found.size} MiB on node "
            f"{node.name}, and its record says {disk.size} MiB",
            hint="gnt-cluster repair-disk-sizes",
            disk=disk.uuid,
        )
    if at.block:
        _check_same(disk, node, found)
        _check_unused(view, disk, node, found)


def difference(disk: Disk, found: Device) -> str:
    """Return how a device differs from the one that was adopted; empty if it is it."""
    if disk.identity is not None and disk.identity != found.identity:
        return f"it is {_named(found.identity)} instead of {_named(disk.identity)}"
    if disk.size != found.size:
        return f"it has {found.size} MiB instead of {disk.size}"
    return ""


def remedy(disk: Disk, found: Device) -> str:
    """Return what to type about a :func:`difference`."""
    known = disk.identity is None or disk.identity == found.identity
    return "gnt-cluster repair-disk-sizes" if known else COMPARE


def _check_same(disk: Disk, node: Node, found: Device) -> None:
    wrong = difference(disk, found)
    if wrong:
        raise WrongState(
            f"{disk.volume} on node {node.name} is not the device of disk "
            f"{disk.label}: {wrong}",
            hint=remedy(disk, found),
            disk=disk.uuid,
            node=node.name,
        )


def _check_unused(view: View, disk: Disk, node: Node, found: Device) -> None:
    for other in twins(view, disk, node, found):
        owner = view.config.owner(other)
        if owner:
            raise WrongState(
                f"{disk.volume} is the same device as disk {other.label}, which "
                f"instance {owner.name} has",
                hint=f"gnt-disk detach {other.uuid}",
                disk=disk.uuid,
            )


def twins(view: View, disk: Disk, node: Node, found: Device) -> list[Disk]:
    """Return the other disks that are the same device, as a node tells it."""
    told = devices(view, node)
    return [
        other
        for other in adopted(view.config)
        if other.uuid != disk.uuid and _is_one(other, told.get(other.volume), found)
    ]


def _is_one(disk: Disk, there: Device | None, found: Device) -> bool:
    """Whether a disk, of which a node has `there`, is the device `found`."""
    if found.identity and _overlap(disk.identity or "", found.identity):
        return True
    return there is not None and same(there, found)


def same(one: Device, other: Device) -> bool:
    """Whether two devices of one node are one, or one is a part of the other."""
    known = bool(one.number)
    return (known and one.number == other.number) or _overlap(
        one.identity, other.identity
    )


def whole(identity: str) -> str:
    """Return the identity of the device that a part is a part of."""
    return identity.partition(PART)[0]


def _overlap(one: str, other: str) -> bool:
    return bool(one) and (one == other or one == whole(other) or whole(one) == other)


def _named(identity: str) -> str:
    return identity or "a device without a name"


def check_adoption(view: View, path: str, worker: Node, nodes: list[Node]) -> None:
    """Raise `Refused` unless a path is one device on every node, and nobody else's.

    Parameters
    ----------
    worker
        The node that is to use it first.
    nodes
        The nodes of its group; one that gives no answer does not hold the others up.
    """
    group = view.config.group(worker.group)
    known = adopted(view.config)
    seen: dict[tuple[object, object], str] = {}
    for node in nodes:
        if node != worker and not _reached(view, node):
            continue
        told = devices(view, node)
        found = told.get(path, Device())
        if found.kind != "block":
            raise WrongState(
                f"node {node.name} of group {group.name} has no block device {path}",
                hint="every node of the group must see it under this name"
                if len(nodes) > 1
                else f"on {node.name}: lsblk",
            )
        if found.used:
            raise WrongState(
                f"device {path} is in use on node {node.name}: {found.used}",
                hint=f"a disk has one user: make {node.name} let go of it first",
            )
        seen.setdefault((found.size, found.identity), node.name)
        for disk in known:
            if disk.volume == path or _is_one(disk, told.get(disk.volume), found):
                named = "" if disk.volume == path else f" ({disk.volume})"
                raise Exists(
                    f"device {path} is disk {disk.label} already{named}",
                    hint=f"gnt-disk info {disk.uuid}",
                )
    if len(seen) > 1:
        sides = ", ".join(
            f"{size} MiB{f' ({name})' if name else ''} on {node}"
            for (size, name), node in seen.items()
        )
        raise WrongState(f"{path} is not the same device on every node: {sides}")


def check_unowned(config: Config, disk: Disk, node: Node) -> None:
    """Raise `Exists` if what is adopted is a disk already."""
    for other in config.all(Disk):
        there = not other.nodes or node.uuid in other.nodes
        for part in (other, *other.children):
            same = part.dev_type == disk.dev_type and _named_alike(part, disk)
            if there and same:
                raise Exists(
                    f"volume {disk.volume} is disk {other.label} already",
                    hint=f"gnt-disk info {other.uuid}",
                )


def _named_alike(one: Disk, other: Disk) -> bool:
    """Whether two disks of a template may be one volume: a provider knows two names."""
    if as_text(one.logical_id) == as_text(other.logical_id):
        return True
    if not template_named(one.dev_type).capabilities.provider:
        return False
    if one.logical_id[0] != other.logical_id[0]:
        return False
    names = {one.volume, one.known_as} & {other.volume, other.known_as}
    return bool(names - {""})


def _reached(view: View, node: Node) -> bool:
    return all(
        view.reached(question)
        for question in view.answers
        if isinstance(question.call, GetDevices) and question.node == node.uuid
    )


def check_apart(view: View, paths: list[str], node: Node) -> None:
    """Raise `BadInput` if two paths of one request lead to one device."""
    for number, path in enumerate(paths):
        for other in paths[:number]:
            try:
                told = devices(view, node)
            except MoorageError:
                return  # that the node is silent is refused elsewhere
            if path in told and other in told and same(told[path], told[other]):
                raise BadInput(f"{other} and {path} are one device")
