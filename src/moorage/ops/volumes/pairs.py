# SPDX-License-Identifier: BSD-2-Clause
"""Mirrored disks: which numbers a new one gets, and how the copies of each are.

Numbers are chosen as room is: by operations that plan, one after the other, each with
the claims of the others in sight. So no two disks that are made at once share one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from moorage.errors import BadInput, MoorageError, NoCapacity, WrongState
from moorage.jobs import Ask, Question, View
from moorage.model import (
    Claim,
    Config,
    Disk,
    Instance,
    MirrorState,
    Node,
    Pair,
    pair_of,
)
from moorage.model.facts import UP_TO_DATE
from moorage.model.pair import PORTS, Reserved
from moorage.protocol import GetMirrors
from moorage.storage import Mirror
from moorage.storage.templates import template_named

from .disk_words import DiskSpec
from .exclusive_storage import is_exclusive

SECRET = 40
"""Characters of a secret, as in Ganeti."""


def is_mirrored(template: str) -> bool:
    """Whether disks of a template have two copies, on two nodes."""
    return template_named(template).capabilities.mirror is Mirror.INTERNAL


def chosen(view: View, node: Node, peer: Node, beside: Iterable[Disk] = ()) -> Pair:
    """Return a pair for a new disk, whose data will be on `node` first.

    Parameters
    ----------
    beside
        Other new disks of the same request.

    Raises
    ------
    NoCapacity
        If no port is left.
    """
    check_apart(view.config, node, peer)
    taken = _taken(view, beside)
    minors = (_minor(view, node, taken), _minor(view, peer, taken))
    port = next(_free(view, "", PORTS, taken), None)
    if port is None:
        raise NoCapacity(f"all ports of mirrored disks are taken: {len(PORTS)} in all")
    secret = "".join(view.fresh().replace("-", "") for _ in range(2))[:SECRET]
    return Pair((node.uuid, peer.uuid), port, minors, secret)


def moved(
    view: View, disk: Disk, home: Node, to: Node, beside: Iterable[Disk] = ()
) -> Pair:
    """Return the pair of a disk whose second copy goes to another node.

    The first node of a pair is the one whose data counts: here the one that stays.
    """
    pair = pair_of(disk)
    if pair is None:
        raise BadInput(f"disk {disk.label} has no second copy")
    minors = (pair.minor(home.uuid), _minor(view, to, _taken(view, beside)))
    return Pair((home.uuid, to.uuid), pair.port, minors, pair.secret)


def wanted(
    view: View,
    disk: DiskSpec,
    node: Node,
    peer: Node | None,
    beside: Iterable[Disk] = (),
) -> Pair | None:
    """Return the pair of a new disk; None for a template without a second copy.

    Raise `BadInput` if it needs a second node, and there is none.
    """
    if not disk.mirrored:
        return None
    if peer is None:
        raise BadInput(
            f"a disk of template '{disk.template}' is kept on two nodes",
            hint=f"name both: -n {node.name}:OTHER",
        )
    return chosen(view, node, peer, beside)


def check_apart(config: Config, node: Node, peer: Node) -> None:
    """Raise `Refused` unless two nodes can keep a copy each."""
    if node.uuid == peer.uuid:
        raise BadInput(
            f"both copies of a mirrored disk would be on node {node.name}",
            hint=f"name another one: -n {node.name}:OTHER",
        )
    if node.group != peer.group:
        raise BadInput(
            f"nodes {node.name} and {peer.name} are in different node groups: no "
            "instance could use a disk on both"
        )
    for one in (node, peer):
        if is_exclusive(config, one):
            raise WrongState(
                "mirrored disks are not supported with exclusive storage, which node "
                f"{one.name} has",
                node=one.name,
            )


def check_online(config: Config, pair: Pair, other: str = "-n :OTHER") -> None:
    """Raise `WrongState` unless both nodes can get their copy of a new disk now.

    `other` is the option that names another node.
    """
    for node in map(config.node, pair.nodes):
        if node.offline:
            raise WrongState(
                f"node {node.name} is marked offline: it gets no copy of a new disk",
                hint=f"name another one: {other}",
                node=node.name,
            )


def _taken(view: View, beside: Iterable[Disk]) -> set[Reserved]:
    found = {one for disk in beside for one in reserved(disk)}
    for claim in view.claims:
        found |= {(claim.node, minor) for minor in claim.minors}
        found |= {("", port) for port in claim.ports}
    return found


def reserved(disk: Disk) -> tuple[Reserved, ...]:
    """Return the numbers of a disk; none of one that is not mirrored."""
    pair = pair_of(disk)
    return pair.reserved() if pair else ()


def _minor(view: View, node: Node, taken: set[Reserved]) -> int:
    return next(_free(view, node.uuid, count(), taken))


def _free(
    view: View, place: str, numbers: Iterable[int], taken: set[Reserved]
) -> Iterator[int]:
    known = view.config.mirrors
    for number in numbers:
        if (place, number) not in known and (place, number) not in taken:
            yield number


def claims(pairs: Iterable[Pair | None]) -> Iterator[Claim]:
    """Claim the numbers of new disks; None is one that is not mirrored."""
    minors: dict[str, list[int]] = defaultdict(list)
    for pair in filter(None, pairs):
        for place, number in pair.reserved():
            minors[place].append(number)
    ports = tuple(minors.pop("", ()))
    for node, numbers in minors.items():
        yield Claim(node=node, minors=tuple(numbers), ports=ports)


def check_alike(config: Config, instance: Instance, disk: Disk) -> None:
    """Raise `WrongState` unless a disk can join the mirrored ones of an instance.

    They follow their guest to its secondary node together, so all have one.
    """
    mine = pair_of(disk)
    for other in config.disks_of(instance):
        pair = pair_of(other)
        if mine and pair and set(pair.nodes) != set(mine.nodes):
            raise WrongState(
                f"disk {disk.label} is mirrored on {_names(config, mine)}, and disk "
                f"{other.label} of instance {instance.name} on "
                f"{_names(config, pair)}: an instance has one secondary node",
                disk=disk.uuid,
                instance=instance.name,
            )


def _names(config: Config, pair: Pair) -> str:
    return " and ".join(config.node(uuid).name for uuid in pair.nodes)


def mirrors_on(node: str) -> Ask[list[MirrorState]]:
    """Ask a node for its side of all mirrored disks."""
    return Ask(node, GetMirrors())


def ask(config: Config, disks: Iterable[Disk]) -> Iterator[Question]:
    """Ask the nodes of mirrored disks how the copies are."""
    pairs = filter(None, map(pair_of, disks))
    for uuid in dict.fromkeys(node for pair in pairs for node in pair.nodes):
        if not config.node(uuid).offline:
            yield mirrors_on(uuid)


def state(view: View, disk: Disk, node: Node) -> MirrorState | None:
    """Return a node's side of a mirrored disk; None where it is not set up.

    Raise what came instead of an answer.
    """
    pair = pair_of(disk)
    told: Sequence[MirrorState] = view.answer(mirrors_on(node.uuid)) or ()
    minor = pair.minor(node.uuid) if pair else None
    return next((one for one in told if one.minor == minor), None)


def check_in_sync(view: View, disks: Iterable[Disk], node: Node) -> None:
    """Raise `WrongState` unless both copies of disks are the same, as `node` tells."""
    for disk in disks:
        if pair_of(disk) is None:
            continue
        found = state(view, disk, node)
        if found is None or not found.in_sync:
            raise WrongState(
                f"the copies of disk {disk.label} are not the same: node {node.name} "
                f"says {told(found)}",
                hint=_waiting(view.config, disk, found),
                disk=disk.uuid,
            )


def _waiting(config: Config, disk: Disk, found: MirrorState | None) -> str:
    owner = config.owner(disk)
    if owner is None or (found and found.copying):
        return f"gnt-disk info {disk.label} shows how far they are"
    return f"gnt-instance activate-disks --wait-for-sync {owner.name} connects them"


def check_good(view: View, disks: Iterable[Disk], node: Node) -> None:
    """Raise `WrongState` if the copy of a disk on `node` lacks what was written.

    One that is not set up there tells nothing; DRBD looks itself when it is.
    """
    for disk in disks:
        found = state(view, disk, node) if pair_of(disk) else None
        if found and (found.disk != UP_TO_DATE or found.copying):
            raise WrongState(
                f"the copy of disk {disk.label} on node {node.name} is not up to date "
                f"({told(found)})",
                hint="to go on with what it has: --ignore-consistency",
                disk=disk.uuid,
                node=node.name,
            )


def told(found: MirrorState | None) -> str:
    """Return the state of a mirrored disk, for a sentence."""
    if found is None:
        return "that it is not set up"
    percent = "" if found.percent is None else f", {found.percent:g} % done"
    return f"{found.connection}, {found.disk}/{found.peer_disk}{percent}"


def silent(view: View, disk: Disk, node: Node) -> bool:
    """Whether a node of a mirrored disk gave no answer."""
    try:
        state(view, disk, node)
    except MoorageError:
        return True
    return False
