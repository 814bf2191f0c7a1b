# SPDX-License-Identifier: BSD-2-Clause
"""Verify that every instance runs where it should, once, with its own disks."""

from collections.abc import Iterator

from moorage.model import GuestState, Instance, Node
from moorage.model.standstill import NO_ANSWER, remedy, told
from moorage.ops.asking.silence import rescue
from moorage.ops.guests.foreign import LACKS
from moorage.ops.guests.liveness import may_power_off

from .observation import Finding, Seen


def instances(seen: Seen) -> Iterator[Finding]:
    """Find instances that do not run as they should."""
    for instance in seen.config.named(Instance):
        yield from _instance(seen, instance)


def _instance(seen: Seen, instance: Instance) -> Iterator[Finding]:
    home = seen.config.home(instance)
    found = seen.running.get(instance.uuid, [])
    title = f"instance {instance.name}"
    names = " and ".join(node.name for node, _ in found)
    if len(found) > 1:
        yield Finding(
            title,
            f"it runs on {names} at once: both may write to its disks",
            f"power off all of them but one, then: "
            f"gnt-instance migrate --cleanup {instance.name}",
        )
    elif found and found[0][0].uuid != home.uuid:
        yield Finding(
            title,
            f"it runs on node {names} and should be on {home.name}",
            f"gnt-instance migrate --cleanup {instance.name}",
        )
    elif found and instance.admin_state != "up":
        yield Finding(
            title,
            f"it runs on node {names} and should not run",
            f"gnt-instance shutdown {instance.name}",
        )
    elif not found and instance.admin_state == "up":
        yield from _asleep(seen, instance, home)


def _powered_off(seen: Seen, instance: Instance) -> bool:
    """Whether the guest powered itself off, as it may: the watcher records that."""
    itself = instance.uuid in seen.facts[instance.primary_node].powered_off
    return itself and may_power_off(seen.config, instance)


def _asleep(seen: Seen, instance: Instance, home: Node) -> Iterator[Finding]:
    title = f"instance {instance.name}"
    if home.offline:
        yield Finding(
            title,
            f"it should run, and its node {home.name} is marked offline",
            rescue(seen.config, instance),
        )
    elif home.uuid in seen.facts and not _powered_off(seen, instance):
        yield Finding(
            title,
            f"it should run on node {home.name}, and does not",
            f"gnt-instance startup {instance.name}",
        )


def standing_still(seen: Seen) -> Iterator[Finding]:
    """Find guests that have a process and do not run."""
    for _, node, guest in _running(seen):
        if guest.state == "paused":
            yield Finding(
                f"instance {guest.name}",
                f"on node {node.name} it stands still ({told(guest.cause)})",
                remedy(guest.cause, guest.name),
            )


def _running(seen: Seen) -> Iterator[tuple[Instance, Node, GuestState]]:
    for uuid, found in seen.running.items():
        instance = seen.config.objects.get(uuid)
        if isinstance(instance, Instance):
            yield from ((instance, node, guest) for node, guest in found)


def ganetis(seen: Seen) -> Iterator[Finding]:
    """Count the guests that Ganeti started, and those that nobody has taken over."""
    guests = [guest for _, _, guest in _running(seen)]
    adopted = sorted(one.name for one in guests if one.origin == "adopted")
    if adopted:
        yield Finding(
            "cluster",
            f"{_many(adopted)} as Ganeti started it: {LACKS}",
            f"gnt-instance reboot {' '.join(adopted)}",
            warning=True,
        )
    foreign = sorted(one.name for one in guests if one.origin == "foreign")
    if foreign:
        yield Finding(
            "cluster",
            f"{_many(foreign)} in a process that Ganeti started, and that nobody has "
            "taken over: it gets no orders",
            "moorage adopt-guests",
        )


def _many(names: list[str]) -> str:
    count = len(names)
    guests = "1 guest runs" if count == 1 else f"{count} guests run, each"
    return f"{guests} ({', '.join(names)})"


def strangers(seen: Seen) -> Iterator[Finding]:
    """Find guests that belong to no instance, and what is left of moves."""
    for node, facts in seen.nodes():
        for guest in facts.guests:
            yield from _guest(seen, node, guest)


def _guest(seen: Seen, node: Node, guest: GuestState) -> Iterator[Finding]:
    known = isinstance(seen.config.objects.get(guest.uuid), Instance)
    if not known and guest.origin:
        yield Finding(
            f"node {node.name}",
            f"it has a guest {guest.name} that Ganeti started and the configuration "
            "does not know: it is left alone",
            "moorage adopt-guests --dry-run",
        )
    elif not known:
        yield Finding(
            f"node {node.name}",
            f"it has a guest {guest.name or guest.uuid} ({guest.state}) that the "
            "configuration does not know",
            f"gnt-node shutdown-orphan {node.name} {guest.uuid}",
        )
    elif guest.state in ("incoming", "moved"):
        yield Finding(
            f"instance {guest.name}",
            f"a process of a migration ({guest.state}) is left on node {node.name}",
            f"if no job migrates it: gnt-instance migrate --cleanup {guest.name}",
            warning=True,
        )


def plugged(seen: Seen) -> Iterator[Finding]:
    """Find running guests that have other disks than their instance.

    Of one whose QEMU says nothing, or is not asked, nobody knows what it has.
    """
    for instance, node, guest in _running(seen):
        if guest.cause != NO_ANSWER and guest.origin != "foreign":
            yield from _disks(seen, instance, node, guest)


def _disks(
    seen: Seen, instance: Instance, node: Node, guest: GuestState
) -> Iterator[Finding]:
    for uuid in sorted(set(guest.disks) - set(instance.disks)):
        disk = seen.config.objects.get(uuid)
        label = getattr(disk, "label", uuid)
        yield Finding(
            f"instance {instance.name}",
            f"on node {node.name} it uses disk {label}, which is not attached to it",
            f"gnt-instance reboot -t hard {instance.name}",
        )
    for uuid in sorted(set(instance.disks) - set(guest.disks)):
        yield Finding(
            f"instance {instance.name}",
            f"on node {node.name} it runs without its disk "
            f"{seen.config.disk(uuid).label}",
            f"gnt-instance reboot -t hard {instance.name}",
            warning=True,
        )
