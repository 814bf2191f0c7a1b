# SPDX-License-Identifier: BSD-2-Clause
"""Where instances go when nobody named a node: the planner's answer, with its reasons.

The cluster asks the same kernel as the programs hail, hbal and hcheck, in its own
process. This module is the bridge: from the configuration, and what the nodes said, to
a fleet, and from a decision back to a node or a refusal.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import convert

from moorage import htools
from moorage.errors import BadInput, MoorageError, NoCapacity
from moorage.htools.policy import DEFAULT, Spec
from moorage.htools.why.explain import Answer
from moorage.jobs import Question, View
from moorage.model import DISKLESS, Config, Instance, Node, NodeFacts, NodeGroup, Unit
from moorage.storage import Mirror, Reach
from moorage.storage.templates import template_named

from .calls import beparams
from .storage.directories import directories

NAMES = frozenset({"hail", "."})
"""What an operator may call the allocator; there is one."""
_ANY_SHARED, _ANY_LOCAL = "ext", "file"
"""Templates that stand for disks of several: all reach other nodes, or some do not."""
_LARGEST = 2**40
_ANY_SIZE = replace(DEFAULT, ranges=((Spec(*[0] * 6), Spec(*[_LARGEST] * 6)),))
"""The policy of every group: Ganeti's ratios, and no limits to sizes."""
_SHOWN = 5
"""Refusing nodes that a sentence names."""


@dataclass(frozen=True, slots=True)
class Newcomer:
    """An instance that is to be placed; sizes in MiB.

    Attributes
    ----------
    disks
        Template and size of each of its disks.
    """

    name: str
    memory: int
    vcpus: int
    disks: tuple[tuple[str, int], ...] = ()
    tags: tuple[str, ...] = ()


def check_allocator(name: str | None) -> None:
    """Raise `BadInput` for an allocator that there is not."""
    if name and name not in NAMES:
        raise BadInput(f"there is no allocator '{name}': hail is the one there is")


# -- asking ----------------------------------------------------------------------------


def hosts(config: Config, groups: Iterable[NodeGroup]) -> list[Node]:
    """Return the nodes of some groups that may take instances."""
    nodes = [node for group in groups for node in config.nodes_in(group)]
    return [n for n in nodes if n.vm_capable and not (n.offline or n.drained)]


def able(
    hosts: Iterable[Node], check: Callable[[Node], None], nobody: MoorageError
) -> list[Node]:
    """Return the nodes that pass a check.

    Raises
    ------
    MoorageError
        What the last one raised, when none passes; `nobody` when there is none.
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


def ask_room(config: Config, nodes: Iterable[Node]) -> Iterator[Question]:
    """Ask nodes how much room they have."""
    for node in nodes:
        yield room_on(config, node)


def room_on(config: Config, node: Node) -> Question:
    """Ask a node how much room it has, for disks too, and not what runs there."""
    where = tuple(directories(config.cluster).items())
    return Question(node.uuid, "facts", (("brief", True), ("directories", where)))


def room(view: View) -> dict[str, NodeFacts]:
    """Return what the nodes said of their room, by uuid; silent ones are left out."""
    found = {}
    for question, answer in view.answers.items():
        asked = question == room_on(view.config, view.config.node(question.node))
        if asked and isinstance(answer, dict):
            found[question.node] = convert(answer, NodeFacts)
    return found


# -- answers ---------------------------------------------------------------------------


def place(view: View, wanted: Newcomer, allowed: Sequence[Node]) -> Node:
    """Return the best node for a new instance.

    Parameters
    ----------
    allowed
        The nodes that reach its disks.

    Raises
    ------
    NoCapacity
        If no node can take it; the sentence says why each cannot, the hint what
        smaller request would fit.
    """
    state = _state(view, {node.group for node in allowed}, room(view))
    request = htools.Allocate(
        _newcomer(view.config, wanted), 1, restrict=tuple(node.name for node in allowed)
    )
    asking = _asking(allowed)
    found = htools.place(state, request, asking)
    if found.best is None:
        raise _refusal(request, found)
    return view.config.node(state.nodes[found.best.nodes[0]].name)


def elsewhere(
    view: View, instances: Sequence[Instance], allowed: Sequence[Node]
) -> dict[str, Node]:
    """Return another node for each of some instances of one group, by uuid.

    Raises
    ------
    NoCapacity
        If one of them has nowhere to go.
    """
    config = view.config
    groups = {config.node(one.primary_node).group for one in instances}
    state = _state(view, groups, room(view), {node.name for node in allowed})
    index = {inst.name: inst.idx for inst in state.insts}
    asked = [index[one.name] for one in instances]
    found = htools.evacuate(state, asked, "primary-only")
    for at, why in found.stuck:
        raise NoCapacity(
            f"no node can take instance {state.insts[at].name}: {why}",
            hint="hcheck tells more; to choose yourself: -n NODE",
            instance=state.insts[at].name,
        )
    return {
        one.uuid: config.node(state.nodes[away.inst.p].name)
        for one, away in zip(instances, found.away, strict=True)
    }


def stranded(view: View, facts: Mapping[str, NodeFacts]) -> dict[str, list[str]]:
    """Return who could not restart if a node were lost: instances by node.

    What hcheck counts; nodes that can be lost are not named.

    Parameters
    ----------
    facts
        What the nodes said, by uuid.
    """
    groups = {group.uuid for group in view.config.all(NodeGroup)}
    state = _state(view, groups, facts)
    found: dict[str, list[str]] = {}
    for _, part in state.split():
        for at in htools.unlosable(part):
            lost = htools.survive(part, at, thorough=True)
            names = [state.insts[one].name for one in lost.stranded]
            found[state.nodes[at].name] = names
    return found


def _asking(allowed: Sequence[Node]) -> htools.Asking:
    # One node alone has nowhere to fail over to, with or without the newcomer.
    return htools.Asking(capacity=len(allowed) > 1)


def _refusal(request: htools.Allocate, found: Answer) -> NoCapacity:
    told = [reason.sentence() for reason in found.reasons]
    return NoCapacity(
        f"no node can take instance {request.inst.name}: "
        + "; ".join(told[:_SHOWN])
        + (f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""),
        hint=found.change.sentence()
        if found.change
        else "gnt-node list shows the room there is",
        refusals=told,
    )


# -- the fleet -------------------------------------------------------------------------


def _state(
    view: View,
    groups: set[str],
    facts: Mapping[str, NodeFacts],
    allowed: set[str] | None = None,
) -> htools.State:
    """Return what the planner works on: some groups, as they are now.

    Parameters
    ----------
    allowed
        Names of the only nodes that instances may go to; all when None.
    """
    config = view.config
    rows = [config.group(uuid) for uuid in sorted(groups)]
    nodes = [node for group in rows for node in config.nodes_in(group)]
    at = {node.uuid: number for number, node in enumerate(nodes)}
    residents = [(n, one) for n in nodes for one in config.instances_on(n)]
    fleet = htools.Fleet(
        groups=tuple(
            htools.Group(
                one.name, one.uuid, one.alloc_policy, one.tags, policy=_ANY_SIZE
            )
            for one in rows
        ),
        nodes=tuple(
            _node(config, one, rows, None if _closed(one, allowed) else facts)
            for one in nodes
        ),
        instances=tuple(_instance(config, one, at[n.uuid]) for n, one in residents),
        tags=config.cluster.tags,
        policy=_ANY_SIZE,
    )
    return htools.load(fleet, htools.Reading(kvm_memory=0)).state


def _closed(node: Node, allowed: set[str] | None) -> bool:
    return allowed is not None and node.name not in allowed


def _node(
    config: Config,
    node: Node,
    groups: list[NodeGroup],
    facts: Mapping[str, NodeFacts] | None,
) -> htools.NodeRow:
    """Return a node's row; a silent or closed one counts as off: nothing goes there."""
    said = (facts or {}).get(node.uuid)
    told = said or NodeFacts(version="")
    residents = config.instances_on(node)
    up = sum(_memory(config, one) for one in residents if one.admin_state == "up")
    return htools.NodeRow(
        node.name,
        group=[group.uuid for group in groups].index(node.group),
        mem_total=float(told.memory_total),
        mem_own=max(0, told.memory_total - told.memory_free - up),
        mem_free=told.memory_free,
        cpus=float(told.cpus),
        cpus_own=0,
        offline=node.offline or said is None,
        tags=node.tags,
        units=tuple(map(_unit, told.units)) or None,
    )


def _unit(unit: Unit) -> htools.Unit:
    """Return a storage unit; where a template reaches the group, nodes share it."""
    reach = template_named(unit.template).capabilities.reach
    name = (unit.template, unit.key)
    return htools.Unit(name, unit.free, unit.total, reach is Reach.GROUP)


def _memory(config: Config, instance: Instance) -> int:
    return int(beparams(config, instance)["maxmem"])


def _instance(config: Config, instance: Instance, home: int) -> htools.InstanceRow:
    backend, disks = beparams(config, instance), config.disks_of(instance)
    up = instance.admin_state == "up"
    return htools.InstanceRow(
        instance.name,
        mem=int(backend["maxmem"]),
        disk=sum(disk.size for disk in disks),
        vcpus=int(backend["vcpus"]),
        primary=home,
        status="running" if up else f"ADMIN_{instance.admin_state}",
        auto_balance=bool(backend["auto_balance"]),
        spindle_use=int(backend["spindle_use"]),
        template=_template([disk.dev_type for disk in disks]),
        tags=instance.tags,
        disks=_disks(config, [(disk.dev_type, disk.size) for disk in disks]),
    )


def _newcomer(config: Config, wanted: Newcomer) -> htools.InstanceRow:
    return htools.InstanceRow(
        wanted.name,
        mem=wanted.memory,
        disk=sum(size for _, size in wanted.disks),
        vcpus=wanted.vcpus,
        template=_template([name for name, _ in wanted.disks]),
        tags=wanted.tags,
        disks=_disks(config, wanted.disks),
    )


def _disks(config: Config, disks: Iterable[tuple[str, int]]) -> tuple[htools.Disk, ...]:
    """Return the disks that take room of a node's directories, and where they do."""
    kept = directories(config.cluster)
    return tuple(
        htools.Disk(size, unit=(name, kept[name]))
        for name, size in disks
        if name in kept
    )


def _template(names: Iterable[str]) -> str:
    """Return the template that the planner is told: by what the disks can do."""
    found = [template_named(name).capabilities for name in names]
    if not found:
        return DISKLESS
    mobile = all(
        one.mirror is Mirror.EXTERNAL and one.reach is Reach.GROUP for one in found
    )
    return _ANY_SHARED if mobile else _ANY_LOCAL
