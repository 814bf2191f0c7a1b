# SPDX-License-Identifier: BSD-2-Clause
"""From a fleet to a state: tags read, instances put on nodes, totals made."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from moorage.errors import BadInput
from moorage.htools import inst as insts_of
from moorage.htools import node as nodes_of
from moorage.htools.assignment import spindles_after
from moorage.htools.fleet import Fleet
from moorage.htools.inst import NO_LOAD, NOWHERE, Inst, Load
from moorage.htools.node import Node
from moorage.htools.policy import Policy
from moorage.htools.state import State
from moorage.htools.units import Units, units_by_type, wishes
from moorage.hypervisors import KVM

if TYPE_CHECKING:  # loaded by who measures
    from moorage.htools.utilization import Measured

EXCLUSION_TAGS: Final = "htools:iextags:"
DESIRED_LOCATION: Final = "htools:desiredlocation:"
LOCATION: Final = "htools:nlocation:"
MIGRATION: Final = "htools:migration:"
ALLOW_MIGRATION: Final = "htools:allowmigration:"

MISSING_MEMORY: Final = 512
MISSING_DISK: Final = 1024
"""MiB above which a node that lacks memory or disk is worth a warning."""


class Reading(NamedTuple):
    """How to read a fleet.

    Attributes
    ----------
    loads : sequence of (str, Load)
        Dynamic load of instances, by name; unknown names are passed over.
    no_loads : bool
        Count every load as 0.
    exclusion_tags : tuple of str
        Prefixes (without colon) of tags that instances must not share a node with.
    only, without : tuple of str
        Instances that alone may move, and that may not; a unique beginning
        up to a dot is enough.
    kvm_memory : int
        What a KVM node is taken to use itself, MiB; 0 for what it reports.
    offline : tuple of str
        Nodes to take as offline.
    max_cpu : float or None
        Virtual processors per processor, in place of the policy's.
    min_disk : float
        Share of each disk that balancing keeps free, in [0, 1].
    measured : Measured or None
        Processor load of every node or instance; it goes before `loads`.
    """

    loads: Sequence[tuple[str, Load]] = ()
    no_loads: bool = False
    exclusion_tags: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    kvm_memory: int = 4096
    offline: tuple[str, ...] = ()
    max_cpu: float | None = None
    min_disk: float = 0.0
    measured: "Measured | None" = None


class Loaded(NamedTuple):
    """A state, and what is odd about it."""

    state: State
    warnings: list[str]


DEFAULT_READING: Final = Reading()


def load(fleet: Fleet, how: Reading = DEFAULT_READING) -> Loaded:
    """Return the state to plan on.

    Raises
    ------
    BadInput
        If an option names something that is not there, or a disk's storage
        unit is ambiguous.
    """
    state = _populate(fleet, how)
    warnings = [*fleet.warnings, *_account(state, how)]
    _overrule(state, how)
    return Loaded(state, warnings)


def _populate(fleet: Fleet, how: Reading) -> State:
    """Put every instance on its nodes."""
    nodes = [
        nodes_of.from_row(idx, row, fleet.groups[row.group].policy)
        for idx, row in enumerate(fleet.nodes)
    ]
    insts = [insts_of.from_row(idx, row) for idx, row in enumerate(fleet.instances)]
    _shorten(nodes, insts)
    _read_node_tags(fleet.tags, nodes)
    _read_instance_tags(fleet.tags, how, insts)
    _read_units(fleet, insts)
    _set_loads(how, insts)
    _set_movable(how, nodes, insts)
    for inst in insts:
        _settle(nodes, inst)
    if how.measured:
        how.measured.apply(nodes, insts)
    every = tuple(range(len(nodes)))
    return State(fleet, nodes, insts, every, tuple(range(len(insts))))


def common_suffix(names: Sequence[str]) -> str:
    """Return the longest end, from a dot on, that all names share.

    >>> common_suffix(["a.x.org", "b.x.org", "c.y.org"])
    '.org'
    """
    first = names[0] if names else ""
    at = first.find(".")
    while at >= 0:
        if all(name.endswith(first[at:]) for name in names):
            return first[at:]
        at = first.find(".", at + 1)
    return ""


def shared_suffix(state: State) -> str:
    """Return the end that the names of all nodes and instances share."""
    names = [node.name for node in state.nodes]
    return common_suffix(names + [inst.name for inst in state.insts])


def _shorten(nodes: list[Node], insts: list[Inst]) -> None:
    cut = len(common_suffix([x.name for x in nodes] + [x.name for x in insts]))
    for node in nodes:
        node.alias = node.name[: len(node.name) - cut]
    for inst in insts:
        inst.alias = inst.name[: len(inst.name) - cut]


def _suffixes(tags: Sequence[str], prefix: str) -> list[str]:
    return [tag[len(prefix) :] for tag in tags if tag.startswith(prefix)]


def _read_node_tags(tags: Sequence[str], nodes: list[Node]) -> None:
    """Find failure domains and migration restrictions in the tags of nodes."""
    places = tuple(name + ":" for name in _suffixes(tags, LOCATION))
    kinds = tuple(name + ":" for name in _suffixes(tags, MIGRATION))
    allowed = _allowed_migrations(tags)
    for node in nodes:
        node.location_tags = _starting(node.tags, places)
        node.mig_from = _starting(node.tags, kinds)
        extra = {src for src, dst in allowed if dst in node.mig_from}
        node.mig_into = node.mig_from | extra


def _starting(tags: Sequence[str], prefixes: tuple[str, ...]) -> frozenset[str]:
    return frozenset(tag for tag in tags if tag.startswith(prefixes))


def _allowed_migrations(tags: Sequence[str]) -> list[tuple[str, str]]:
    pairs = (text.split("::") for text in _suffixes(tags, ALLOW_MIGRATION))
    return [(pair[0], pair[1]) for pair in pairs if len(pair) == 2]


def _read_instance_tags(tags: Sequence[str], how: Reading, insts: list[Inst]) -> None:
    named = _suffixes(tags, EXCLUSION_TAGS) or _suffixes(tags, DESIRED_LOCATION)
    for inst in insts if named or how.exclusion_tags else ():
        read_tags(tags, inst, how.exclusion_tags)


def read_tags(tags: Sequence[str], inst: Inst, extra: Sequence[str] = ()) -> None:
    """Set the exclusion and location tags of a new instance.

    Parameters
    ----------
    tags
        Tags of the cluster: they name the prefixes.
    extra
        Further exclusion prefixes, without the colon.
    """
    exclusive = [*(tag + ":" for tag in extra), *_suffixes(tags, EXCLUSION_TAGS)]
    wanted = _suffixes(tags, DESIRED_LOCATION)
    prefixes = tuple(prefix for prefix in exclusive if prefix)
    inst.excl_tags = tuple(tag for tag in inst.tags if tag.startswith(prefixes))
    inst.desired = _starting(inst.tags, tuple(filter(None, wanted)))


def _read_units(fleet: Fleet, insts: list[Inst]) -> None:
    if not any(row.units is not None for row in fleet.nodes):
        return
    known = units_by_type(fleet.nodes)
    for inst, row in zip(insts, fleet.instances, strict=True):
        try:
            inst.wants = wishes(row, fleet.nodes, known)
        except ValueError as error:
            raise BadInput(str(error)) from error


def _set_loads(how: Reading, insts: list[Inst]) -> None:
    if how.no_loads:
        for inst in insts:
            inst.load = NO_LOAD
        return
    by_name = {inst.name: inst for inst in insts}
    for name, load_of in how.loads:
        if name in by_name:
            by_name[name].load = load_of


def _set_movable(how: Reading, nodes: list[Node], insts: list[Inst]) -> None:
    names = [inst.name for inst in insts]
    only = set(lookup(names, how.only, "Unknown instance(s): {}"))
    without = set(lookup(names, how.without, "Unknown instance(s): {}"))
    for inst in insts:
        if inst.name in without or (how.only and inst.name not in only):
            inst.movable = False
        if inst.s != NOWHERE and nodes[inst.p].group != nodes[inst.s].group:
            inst.movable = False


def lookup(names: Sequence[str], asked: Sequence[str], complaint: str) -> list[str]:
    """Return full names for what was typed: exact, or unique up to a dot.

    Raises
    ------
    BadInput
        With `complaint` about those that are unknown or ambiguous.
    """
    found = {word: _candidates(names, word) for word in asked}
    wrong = [word for word, hits in found.items() if len(hits) != 1]
    if wrong:
        raise BadInput(complaint.format(", ".join(wrong)))
    return [hits[0] for hits in found.values()]


def _candidates(names: Sequence[str], word: str) -> list[str]:
    if word in names:
        return [word]
    return [name for name in names if name.startswith(word + ".")]


def _settle(nodes: list[Node], inst: Inst) -> None:
    """Add a loaded instance to its nodes, without any check.

    Free memory and disk came with the node and hold it already; what is only
    planned is subtracted here.
    """
    p = nodes[inst.p]
    s = nodes[inst.s] if inst.s != NOWHERE else None
    if s is not None:
        inst.location = len(p.location_tags & s.location_tags)
    _settle_planned(p, inst)
    if not inst.uses_mem:
        p.mem_free_all -= inst.mem
    p.cpu_used_all += inst.vcpus if inst.counts_cpu else 0
    for tag in inst.excl_tags:
        p.excl[tag] = p.excl.get(tag, 0) + 1
    if s is not None:
        _settle_planned(s, inst)
    if not inst.forthcoming:
        _settle_primary(p, inst)
        if s is not None:
            _settle_secondary(s, inst)


def _settle_planned(node: Node, inst: Inst) -> None:
    if not node.exclusive and inst.local:
        node.spindles_used_all += inst.spindle_use
    if not inst.forthcoming:
        return
    node.disk_free_all -= inst.dsk if inst.local else 0
    left = node.spindles_free_all
    node.spindles_free_all = spindles_after(node, inst, left)
    if node.units is not None:
        node.units = node.units.released(
            tuple((name, -size) for name, size in inst.wants)
        )


def _settle_primary(node: Node, inst: Inst) -> None:
    node.primaries = (inst.idx, *node.primaries)
    node.cpu_used += inst.vcpus if inst.counts_cpu else 0
    load_of = node.load
    more = inst.load
    node.load = (
        load_of[0] + more[0],
        load_of[1] + more[1],
        load_of[2] + more[2],
        load_of[3] + more[3],
    )
    if not node.exclusive and inst.local:
        node.spindles_used += inst.spindle_use
    node.location += inst.location + len(inst.desired - node.location_tags)
    for place in node.location_tags:
        for tag in inst.excl_tags:
            key = (place, tag)
            node.domains[key] = node.domains.get(key, 0) + 1


def _settle_secondary(node: Node, inst: Inst) -> None:
    node.secondaries = (inst.idx, *node.secondaries)
    load_of = node.load
    node.load = (*load_of[:2], load_of[2] + inst.load[2], load_of[3])
    if not node.exclusive and inst.local:
        node.spindles_used += inst.spindle_use
    needed = inst.mem if inst.uses_sec_mem else 0
    node.peers[inst.p] = node.peers.get(inst.p, 0) + needed


def _account(state: State, how: Reading) -> list[str]:
    """Compute memory and disk that nobody accounts for; warn about much of it."""
    warnings: list[str] = []
    for node in state.nodes:
        if node.hypervisor == KVM and how.kvm_memory > 0:
            node.mem_own = how.kvm_memory
        people = [state.insts[at] for at in node.primaries]
        node.mem_inst = sum(inst.mem for inst in people if inst.uses_mem)
        recorded = int(node.mem_total) - node.mem_own - node.mem_inst
        node.mem_missing = recorded - node.mem_free
        node.mem_base = int(node.mem_total) - node.mem_own - max(0, node.mem_missing)
        node.reserved = max([0, *node.peers.values()])
        node.fails_n1 = node.mem_free < node.reserved
        held = [*node.primaries, *node.secondaries]
        disk = sum(state.insts[at].dsk for at in held)
        lost = int(node.disk_total) - node.disk_free - disk
        if node.mem_missing > MISSING_MEMORY or lost > MISSING_DISK:
            warnings.append(
                f"node {node.name} is missing {node.mem_missing} MB ram "
                f"and {lost // 1024} GB disk"
            )
    return warnings[::-1]


def _overrule(state: State, how: Reading) -> None:
    """Apply what the caller knows better than the data."""
    names = [node.name for node in state.nodes]
    gone = lookup(names, how.offline, "wrong node name(s) set as offline: {}")
    for node in state.nodes:
        if node.name in gone:
            node.offline = True
        if how.max_cpu is not None:
            policy = _with_ratio(node, how.max_cpu)
            state.nodes[node.idx] = node.with_policy(policy)
    if how.min_disk:
        for node in state.nodes:
            state.nodes[node.idx] = _with_floor(node, how.min_disk)


def _with_ratio(node: Node, limit: float) -> Policy:
    return node.policy._replace(vcpu_ratio=limit)


def _with_floor(node: Node, share: float) -> Node:
    kept = node.with_disk_floor(share)
    if kept.units is not None:
        floors = tuple(int(share * (total or 0)) for total in kept.units.total)
        units = kept.units
        kept.units = Units(units.names, units.free, units.total, units.shared, floors)
    return kept
