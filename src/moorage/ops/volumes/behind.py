# SPDX-License-Identifier: BSD-2-Clause
"""Which copy of a mirrored disk may lack what was written last, and what that forbids.

DRBD knows it while both copies see each other. A node that was off, or cut off, while
the other one wrote comes back with a copy that DRBD takes for good until they meet. So
the record of the disk keeps what was last seen of its writer, and a copy of which
nobody can tell becomes the first one only if somebody insists.
"""

from collections.abc import Iterable, Iterator

from moorage.errors import MoorageError, WrongState
from moorage.jobs import Question, Task, View
from moorage.model import Config, Disk, Instance, MirrorState, Node, pair_of, successor
from moorage.model.facts import UP_TO_DATE

from . import copies, pairs

_INSIST = "to go on with what it has: --ignore-consistency"


def ask(config: Config, instance: Instance) -> Iterator[Question]:
    """Ask the node that writes how the copies are, or without it the others."""
    home, disks = config.home(instance), config.disks_of(instance)
    if home.offline:
        yield from pairs.ask(config, disks)
    elif any(map(pair_of, disks)):
        yield pairs.mirrors_on(home.uuid)


def known(view: View, disk: Disk, home: Node, *, alone: bool = False) -> str | None:
    """Return the node whose copy is behind, as far as can be told now.

    Parameters
    ----------
    home
        The node that writes, or did last.
    alone
        Whether it is going to write although the other copy may not follow.
    """
    pair = pair_of(disk)
    if pair is None or home.uuid not in pair.nodes:
        return None
    mine, other = side(view, disk, home), pair.other(home.uuid)
    if mine is None:
        return other if alone else disk.behind
    if mine.in_sync:
        return None
    if mine.disk == UP_TO_DATE:
        return other
    return home.uuid if mine.peer_disk == UP_TO_DATE else disk.behind


def freed(view: View, disk: Disk, home: Node, *, active: bool) -> str | None:
    """Return the node whose copy is behind, of a disk that its instance loses.

    Of a node that is lost nobody can tell later what it wrote: the other copy is good
    only if it is known to be now.

    Parameters
    ----------
    home
        The node that writes, or did last.
    active
        Whether the disk is in use by the record.
    """
    pair = pair_of(disk)
    if pair is None or home.uuid not in pair.nodes or not home.offline:
        return known(view, disk, home)
    if disk.behind == home.uuid:
        return disk.behind
    other = view.config.node(pair.other(home.uuid))
    try:
        lack = _lack(view, disk, other, home, active=active)
    except MoorageError:
        lack = "cannot be seen" * active
    return other.uuid if lack else disk.behind


def recorded(view: View, disks: Iterable[Disk], node: Node) -> Iterator[Task]:
    """Yield the task that records which copies miss what is going to be written."""
    marked = []
    for disk in disks:
        lags = known(view, disk, node, alone=copies.lonely(view.config, disk, node))
        if lags != disk.behind:
            marked.append(successor(disk, view.now, behind=lags))
    if marked:
        names = ", ".join(one.label for one in marked)
        yield view.record(f"record how the copies of {names} are", *marked)


def side(view: View, disk: Disk, node: Node) -> MirrorState | None:
    """Return a node's side of a mirrored disk; None if it is not set up, or unknown."""
    try:
        return pairs.state(view, disk, node)
    except MoorageError:
        return None


def check_current(
    view: View,
    disks: Iterable[Disk],
    node: Node,
    home: Node,
    *,
    active: bool,
    hint: str = _INSIST,
) -> None:
    """Raise `WrongState` unless the copies on `node` are known to be up to date.

    Parameters
    ----------
    home
        The node that writes, or did last.
    active
        Whether the disks are in use by the record: then both sides were set up.
    hint
        What to do about it.
    """
    for disk in disks:
        lack = _lack(view, disk, node, home, active=active) if pair_of(disk) else ""
        if lack:
            ways = (_connecting(view.config, disk, home), hint)
            raise WrongState(
                f"the copy of disk {disk.label} on node {node.name} {lack}",
                hint="; ".join(filter(None, ways)),
                disk=disk.uuid,
                node=node.name,
            )


def _connecting(config: Config, disk: Disk, home: Node) -> str:
    """Return what brings a copy up to date, while the node that writes is there."""
    owner = config.owner(disk)
    if home.offline or owner is None:
        return ""
    return f"gnt-instance activate-disks --wait-for-sync {owner.name} connects them"


def _lack(view: View, disk: Disk, node: Node, home: Node, *, active: bool) -> str:
    """Return why a copy may be old; empty if it is not."""
    written = None if home.offline else side(view, disk, home)
    if written is not None:
        good = written.connected and written.peer_disk == UP_TO_DATE
        told = f"node {home.name} says {pairs.told(written)}"
        return "" if good else f"is not up to date: {told}"
    if disk.behind == node.uuid:
        return f"missed what node {home.name} wrote without it"
    found = pairs.state(view, disk, node)
    if found is None:
        told = "is not set up there: it may have missed what was written"
        return f"{told} since it was, and node {home.name} cannot tell" * active
    if found.disk != UP_TO_DATE or found.copying:
        return f"is not up to date ({pairs.told(found)})"
    return ""


def check_source(view: View, disks: Iterable[Disk], node: Node, name: str) -> None:
    """Raise `WrongState` if a copy that is to be the only good one missed writes."""
    for disk in disks:
        if disk.behind == node.uuid:
            others = copies.others(view.config, disk, node)
            names = ", ".join(one.name for one in others)
            raise WrongState(
                f"the copy of disk {disk.label} on node {node.name} missed what node "
                f"{names} wrote without it",
                hint=f"gnt-instance activate-disks --wait-for-sync {name}, then "
                f"gnt-instance deactivate-disks {name}",
                disk=disk.uuid,
                node=node.name,
            )
