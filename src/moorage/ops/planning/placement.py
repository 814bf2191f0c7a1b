# SPDX-License-Identifier: BSD-2-Clause
"""Where instances go when nobody named a node: the planner's answer, with its reasons.

The cluster asks the same kernel as the programs hail, hbal and hcheck, in its own
process. This module is the bridge: from the configuration, and what the nodes said, to
a fleet, and from a decision back to a node or a refusal.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from moorage import htools
from moorage.errors import MoorageError, NoCapacity, WrongState
from moorage.htools.assignment import add_primary
from moorage.htools.constraints.violation import Violation
from moorage.htools.explain.explain import Answer
from moorage.htools.placement.requests import newcomer
from moorage.jobs import Ask, View
from moorage.model import Claim, Config, Instance, Node, NodeFacts, NodeGroup
from moorage.ops.asking.node_tasks import settings
from moorage.ops.volumes.directories import places, places_on
from moorage.ops.volumes.units import Named, told_as
from moorage.protocol import GetFacts
from moorage.storage.templates import template_named

from . import fleet
from .fleet import Newcomer, Reading
from .reach import Facts

_SHOWN = 5
"""Refusing nodes that a sentence names."""
_VOLUME_GROUP = "lvm-vg"
"""The type of storage units that a node tells all of, empty ones, too."""
_GOING = "another job is taking it to another node group"
ANYWAY = "to do it all the same: --ignore-capacity"
"""The hint of a refusal for want of memory or room."""


def takes(node: Node) -> bool:
    """Whether a node takes instances and second copies."""
    return node.vm_capable and not (node.offline or node.drained)


def check_takes(node: Node) -> None:
    """Raise `WrongState` unless a node takes instances and second copies."""
    if not takes(node):
        raise WrongState(f"node {node.name} is offline, drained or not vm_capable")


def hosts(config: Config, groups: Iterable[NodeGroup]) -> list[Node]:
    """Return the nodes of some groups that may take instances."""
    nodes = [node for group in groups for node in config.nodes_in(group)]
    return [node for node in nodes if takes(node)]


def able(
    hosts: Iterable[Node], check: Callable[[Node], None], nobody: MoorageError
) -> list[Node]:
    """Return the nodes that pass a check; for none, raise what the last one raised.

    If there are no hosts, raise `nobody`.
    """
    found, refusal = [], nobody
    for node in hosts:
        try:
            check(node)
        except MoorageError as error:
            refusal = error
        else:
            found.append(node)
    if not found:
        raise refusal
    return found


def ask_room(config: Config, nodes: Iterable[Node]) -> list[Ask[NodeFacts]]:
    """Ask nodes how much room they have."""
    return [room_on(config, node) for node in nodes]


def room_on(config: Config, node: Node) -> Ask[NodeFacts]:
    """Ask a node how much room it has, for disks too, and not what runs there."""
    return config.follows(_room_on, node.uuid)


def _room_on(config: Config, node: str) -> Ask[NodeFacts]:
    where = places_on(config)(config.node(node))
    return Ask(node, GetFacts(brief=True, places=where))


def room(view: View) -> dict[str, NodeFacts]:
    """Return what the nodes said of their room, by uuid; silent ones are left out."""
    return view.once(_told, view.config)


def _told(config: Config, view: View) -> dict[str, NodeFacts]:
    found = {}
    asked = {one.node for one in view.answers if isinstance(one.call, GetFacts)}
    for question in ask_room(config, map(config.node, asked)):
        answer = view.answers.get(question)
        if isinstance(answer, NodeFacts):
            found[question.node] = answer
    return found


def check_told(view: View, node: Node) -> None:
    """Raise what came instead of an answer, if a node was asked for its room."""
    if node.uuid not in room(view):
        view.answer(room_on(view.config, node))


def place(  # noqa: PLR0913 - what is asked, and where it may be
    view: View,
    wanted: Newcomer,
    allowed: Sequence[Node],
    *,
    count: int = 1,
    any_size: bool = False,
    survival: bool = True,
    named: Sequence[Node] = (),
) -> tuple[Node, ...]:
    """Return the best node for a new instance, and its secondary one if it needs one.

    Parameters
    ----------
    allowed
        The nodes that offer what it needs.
    count
        How many nodes it needs: two if it has mirrored disks.
    any_size
        Whether the groups' policies do not count.
    survival
        Whether the loss of any one node must leave everybody a place.
    named
        The only place to consider, primary node first, which is one of the `allowed`.

    Raises
    ------
    NoCapacity
        If no node can take it; the sentence says why each cannot, the hint what
        smaller request would fit.
    """
    groups = dict.fromkeys(node.group for node in allowed)
    how = Reading(fleet.of_groups(view.config, groups), room(view), any_size=any_size)
    state = fleet.state(view, how)
    request = htools.Allocate(
        fleet.newcomer(wanted, how),
        count,
        restrict=tuple(node.name for node in named or allowed),
    )
    first = named[0].name if named else None
    asking = htools.Asking(capacity=survival, primary=first)
    found = htools.place(state, request, asking)
    if found.best is None:
        raise _refusal(request, found)
    return tuple(view.config.node(state.nodes[at].name) for at in found.best.nodes)


def elsewhere(
    view: View,
    instances: Sequence[Instance],
    allowed: Sequence[Node],
    named: Mapping[str, Node] | None = None,
) -> tuple[dict[str, Node], dict[str, str]]:
    """Return another node for each of some instances of one group, by uuid.

    Parameters
    ----------
    named
        The only node to consider for each, by uuid; None to choose among the `allowed`.

    Returns
    -------
    Where those go that can, and why the others cannot, by uuid.
    """
    config = view.config
    state, index = _among(view, map(config.home, instances), allowed)
    by_index = {index[one.name]: one.uuid for one in instances if one.name in index}
    if named is None:
        found = htools.evacuate(state, list(by_index), "primary-only")
    else:
        places = {node.name: at for at, node in enumerate(state.nodes)}
        only = {at: places[named[uuid].name] for at, uuid in by_index.items()}
        found = htools.evacuate_to(state, only, "primary-only")
    away = {
        by_index[one.inst.idx]: config.node(state.nodes[one.inst.p].name)
        for one in found.away
    }
    # A claim of another job has it elsewhere already.
    going = {one.uuid: _GOING for one in instances if one.name not in index}
    return away, going | {by_index[at]: why for at, why in found.stuck}


def _among(
    view: View, homes: Iterable[Node], allowed: Iterable[Node]
) -> tuple[htools.State, dict[str, int]]:
    """Return the groups of nodes as the planner sees them, and instances by name."""
    nodes = fleet.of_groups(view.config, dict.fromkeys(node.group for node in homes))
    able = frozenset(node.uuid for node in allowed)
    state = fleet.state(view, Reading(nodes, room(view), allowed=able))
    return state, {inst.name: inst.idx for inst in state.insts}


def new_secondary(view: View, instance: Instance, allowed: Sequence[Node]) -> Node:
    """Return the best node for second copies; raise `NoCapacity` for none.

    An allocator names a single one that is allowed.
    """
    config = view.config
    homes = [config.home(instance), *config.secondary_nodes(instance)]
    state, index = _among(view, homes, (*homes, *allowed))
    found = htools.evacuate(state, [index[instance.name]], "secondary-only")
    for why in (why for _, why in found.stuck):
        raise nowhere(instance.name, why)
    return config.node(state.nodes[found.away[0].inst.s].name)


def nowhere(name: str, why: str) -> NoCapacity:
    """Return the refusal of an instance that can go nowhere."""
    return NoCapacity(
        f"no node can take instance {name}: {why}",
        hint="hcheck tells more; to choose yourself: -n NODE",
        instance=name,
    )


def check_arrival(view: View, wanted: Newcomer, node: Node) -> None:
    """Raise `NoCapacity` unless a named node has memory and room for a newcomer."""
    how = _one(view, node)
    row = fleet.newcomer(wanted, how)
    state = fleet.state(view, how)
    inst = newcomer(state, row)
    found = add_primary(state.nodes[0], inst, force=True, names=state)
    if isinstance(found, Violation):
        raise NoCapacity(
            f"node {node.name} cannot take instance {wanted.name}: {found.sentence()}",
            hint=ANYWAY,
            node=node.name,
        )


def check_move(
    view: View, instance: Instance, node: Node, memory: int | None = None
) -> None:
    """Raise `NoCapacity` unless a named node has the memory for one that moves.

    Its disks are made already, and take no room anew. It comes with `memory` MiB, or
    with what is on record.
    """
    if instance.admin_state == "up":
        moved = fleet.on_record(view.config, instance)
        check_arrival(view, replace(moved, memory=memory or moved.memory), node)


def check_rooms(view: View, what: str, claims: Iterable[Claim]) -> None:
    """Raise unless nodes have the room and spindles that are claimed for `what`.

    Raises
    ------
    NoCapacity
        With the numbers; storage that cannot tell its room refuses nothing.
    WrongState
        If the node lacks the volume group.
    """
    for claim in claims:
        _check_rooms(view, what, view.config.node(claim.node), claim)


def _check_rooms(view: View, what: str, node: Node, claim: Claim) -> None:
    row = fleet.row(view, node, room(view))
    if row.exclusive and claim.spindles > row.spindles_free:
        raise NoCapacity(
            f"node {node.name} has no room for {what}: spindles "
            f"(asked {claim.spindles}, free {row.spindles_free})",
            hint=ANYWAY,
            node=node.name,
        )
    units = {unit.name: unit for unit in row.units or ()}
    asked: Counter[Named] = Counter()
    called: dict[Named, Named] = {}
    for name, size in claim.rooms:
        known = told_as(name)  # plain and mirrored disks have one room
        asked[known] += size
        called.setdefault(known, name)
    for room_of, total in asked.items():
        name = called[room_of]
        check_there(view, node, name)
        unit = units.get(name)
        if unit is not None and unit.free is not None and total > unit.free:
            raise NoCapacity(
                f"node {node.name} has no room for {what}: unit "
                f"{'/'.join(unit.name)} (asked {total} MiB, free {unit.free} MiB)",
                hint=ANYWAY,
                node=node.name,
            )


def check_there(view: View, node: Node, unit: Named) -> None:
    """Raise `Refused` if a node that tells all its volume groups lacks one.

    Raises
    ------
    WrongState
        If the node lacks it.
    BadInput
        If nodes are not asked for volume groups: the cluster has none.
    """
    template, group = told_as(unit)
    told = room(view).get(node.uuid)
    kind = template_named(template)
    if told is None or kind.capabilities.facts.unit != _VOLUME_GROUP:
        return
    if group not in {one.key for one in told.units if one.template == template}:
        where = places(view.config, view.config.group(node.group))
        if template not in {one.template for one in where}:
            kind.unit_keys(settings(view.config.cluster, template), {})
        raise WrongState(
            f"node {node.name} has no volume group {group}",
            hint=f"on {node.name}: vgcreate {group} /dev/…",
            node=node.name,
        )


def _one(view: View, node: Node) -> Reading:
    return Reading((node,), room(view), any_size=True)


def stranded(view: View, facts: Facts) -> dict[str, list[str]]:
    """Return who could not restart if a node were lost: instances by node.

    What hcheck counts; nodes that can be lost are not named.
    """
    state = view.once(_whole, facts)
    found: dict[str, list[str]] = {}
    for _, part in state.split():
        for at in htools.unlosable(part):
            lost = htools.survive(part, at, thorough=True)
            names = [state.insts[one].name for one in lost.stranded]
            found[state.nodes[at].name] = names
    return found


def _whole(facts: Facts, view: View) -> htools.State:
    """Return the whole cluster as the planner has it, by what nodes said."""
    groups = [group.uuid for group in view.config.all(NodeGroup)]
    how = Reading(fleet.of_groups(view.config, groups), facts)
    return fleet.state(view, how)


@dataclass(frozen=True, slots=True)
class Short:
    """A node that cannot take over all that it keeps second copies of.

    Attributes
    ----------
    node
        Its name.
    lost
        The name of the node whose instances it could not run.
    needed, free
        MiB of memory.
    """

    node: str
    lost: str
    needed: int
    free: int


def short_of_memory(view: View, facts: Facts) -> Iterator[Short]:
    """Yield the nodes without the memory for a failover: what hcheck counts, too."""
    state = view.once(_whole, facts)
    for node in state.failing:
        if not node.peers:  # overfull, and nobody's failover
            continue
        lost, needed = max(node.peers.items(), key=itemgetter(1))
        yield Short(node.name, state.nodes[lost].name, needed, node.mem_free)


def _refusal(request: htools.Allocate, found: Answer) -> NoCapacity:
    told = [reason.sentence() for reason in found.reasons]
    return NoCapacity(
        f"no node can take instance {request.inst.name}: "
        + "; ".join(told[:_SHOWN])
        + (f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""),
        hint=_hint(found),
        refusals=told,
    )


def _hint(found: Answer) -> str:
    """Return what would help, in words of the commands."""
    if not found.change:
        return "gnt-node list shows the room there is"
    if found.change.what == "capacity check":
        return f"hcheck -L --survive tells who would be stranded; {ANYWAY}"
    return found.change.sentence()
