# SPDX-License-Identifier: BSD-2-Clause
"""The cluster as the planner reads it, from the configuration and the nodes' facts.

These are the rows that the programs read from the master with ``-L``: one reading of
memory, policy and storage, so verify and add answer what hcheck, hspace and hail do.
Only what no query shows yet is counted here alone: the claims of jobs under way.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from moorage import htools
from moorage.backend import DEFAULTS
from moorage.disk_templates import FACTS, standing_for
from moorage.htools.inst import NOWHERE
from moorage.jobs import View
from moorage.model import (
    DISKLESS,
    Claim,
    Config,
    Disk,
    Instance,
    Node,
    NodeFacts,
    NodeGroup,
    StoragePool,
    Unit,
    ipolicy,
    nice,
)
from moorage.ops.asking.node_tasks import beparams
from moorage.ops.ndparams import filled
from moorage.ops.volumes.exclusive_storage import PARAMETER, spindles
from moorage.ops.volumes.units import (
    Named,
    current,
    has_room,
    is_provided,
    named,
    occupied,
    template_of,
    told_as,
    unit_of,
)
from moorage.storage import TEMPLATES, Reach

from .kept_rows import KeptRows, Readings
from .policy import as_planned
from .reach import Facts, Offered, offered, providers, reach


@dataclass(frozen=True, slots=True)
class Newcomer:
    """An instance that is to be placed; sizes in MiB.

    Attributes
    ----------
    disks
        Template and size of each of its disks.
    units
        The storage unit of each.
    spindles
        The physical volumes that each gets for itself; None for any share of them.
        Without any, none gets some.
    """

    name: str
    memory: int
    vcpus: int
    disks: tuple[tuple[str, int], ...] = ()
    units: tuple[Named, ...] = ()
    spindles: tuple[int | None, ...] = ()
    tags: tuple[str, ...] = ()
    spindle_use: int = 1


def on_record(config: Config, instance: Instance) -> Newcomer:
    """Return what an instance takes elsewhere, whose disks are made already."""
    full = beparams(config, instance)
    return Newcomer(
        instance.name,
        memory=int(full["maxmem"]),
        vcpus=int(full["vcpus"]),
        tags=instance.tags,
        spindle_use=int(full["spindle_use"]),
    )


@dataclass(frozen=True)
class Reading:
    """Which part of the cluster is read, and how.

    Attributes
    ----------
    nodes
        The only nodes that are read, in order.
    facts
        What they said; who said nothing counts as off.
    allowed
        Uuids of the only nodes that anything may go to; all when None.
    any_size
        Whether the policies' bounds do not count.
    """

    nodes: tuple[Node, ...]
    facts: Facts
    allowed: frozenset[str] | None = None
    any_size: bool = False

    @cached_property
    def offered(self) -> Offered:
        """The units that each node has."""
        return offered(self.nodes, self.facts)

    @cached_property
    def measured(self) -> frozenset[Named]:
        """The units of providers whose room some node tells."""
        units = {unit for said in self.facts.values() for unit in said.units}
        tells = (unit for unit in units if unit.free is not None)
        return frozenset(unit.name for unit in tells if _is_provided(unit))


def of_groups(config: Config, groups: Iterable[str]) -> tuple[Node, ...]:
    """Return the nodes of some groups (uuids), in the order of queries."""
    found = [n for uuid in groups for n in config.nodes_in(config.group(uuid))]
    return tuple(sorted(found, key=lambda node: nice(node.name)))


def state(view: View, how: Reading) -> htools.State:
    """Return what the planner works on."""
    return htools.load(fleet(view, how), htools.Reading(kvm_memory=0)).state


def fleet(view: View, how: Reading) -> htools.Fleet:
    """Return the rows of some nodes, as they will be when all jobs are done."""
    config, groups = view.config, _groups(view.config, how.nodes)
    rows = _Rows(view, how)
    return htools.Fleet(
        groups=tuple(_group(config, one, any_size=how.any_size) for one in groups),
        nodes=tuple(rows.node(node, groups) for node in how.nodes),
        instances=tuple(rows.instances()),
        tags=config.cluster.tags,
        policy=as_planned(ipolicy.cluster_policy(config.cluster)),
    )


def row(view: View, node: Node, facts: Facts) -> htools.NodeRow:
    """Return the row of one node, as it will be when all jobs are done."""
    rows = _Rows(view, Reading((node,), facts, any_size=True))
    return rows.node(node, _groups(view.config, [node]))


def newcomer(wanted: Newcomer, how: Reading) -> htools.InstanceRow:
    """Return the row of an instance that is to be placed."""
    return htools.InstanceRow(
        wanted.name,
        mem=wanted.memory,
        disk=sum(occupied(name, size) for name, size in wanted.disks),
        vcpus=wanted.vcpus,
        template=_template([name for name, _ in wanted.disks]),
        tags=wanted.tags,
        spindle_use=wanted.spindle_use,
        disks=tuple(
            _disk(size, unit, how.measured, count)
            for (_, size), unit, count in zip(
                wanted.disks,
                wanted.units,
                wanted.spindles or (None,) * len(wanted.disks),
                strict=True,
            )
        ),
        reach=reach(how.offered, providers(wanted.units)),
    )


def _groups(config: Config, nodes: Iterable[Node]) -> list[NodeGroup]:
    uuids = dict.fromkeys(node.group for node in nodes)
    return sorted((config.group(u) for u in uuids), key=lambda g: nice(g.name))


def _group(config: Config, group: NodeGroup, *, any_size: bool) -> htools.Group:
    found = as_planned(ipolicy.group_policy(config.cluster, group), any_size=any_size)
    return htools.Group(
        group.name,
        group.uuid,
        group.alloc_policy,
        group.tags,
        policy=found,
    )


def _pending(view: View) -> tuple[Claim, ...]:
    """Return the claims that the configuration does not show yet."""
    return tuple(one for one in view.claims if not _is_recorded(view.config, one))


def _is_recorded(config: Config, claim: Claim) -> bool:
    """Whether the instance of a claim is where and as large as the job wants it."""
    if not (claim.instance and config.knows(Instance, claim.instance)):
        return False
    one = config.instance(claim.instance)
    there = one.primary_node == claim.node
    return there and claim.memory <= (_memory(config, one) if _is_up(one) else 0)


class _Rows:
    """Makes the rows of nodes and instances."""

    def __init__(self, view: View, how: Reading) -> None:
        config = self.config = view.config
        self.view, self.how = view, how
        claims = self.claims = _pending(view)
        self.places = {node.uuid: at for at, node in enumerate(how.nodes)}
        self.cluster = config.cluster
        self._backend = {**DEFAULTS} | self.cluster.beparams.get("default", {})
        self.arriving = {one.instance: one for one in claims if one.instance}

    @cached_property
    def _kept(self) -> KeptRows:
        """The rows of earlier plans that read the same."""
        how, pools = self.how, self.config.named(StoragePool)
        context = (self.cluster, pools, how.nodes, how.measured, how.offered)
        return self.view.kept.of(Readings).of(context)

    def node(self, node: Node, groups: list[NodeGroup]) -> htools.NodeRow:
        """Return a node's row; where nothing may go counts as off."""
        allowed = self.how.allowed is None or node.uuid in self.how.allowed
        said = self.how.facts.get(node.uuid) if allowed else None
        closed = node.offline or node.drained or not node.vm_capable
        told = said or NodeFacts(version="")
        params = filled(self.config, node)
        alone = bool(params.get(PARAMETER))
        return htools.NodeRow(
            node.name,
            group=[group.uuid for group in groups].index(node.group),
            mem_total=float(told.memory_total),
            mem_own=told.memory_own + self._leaving(node),
            mem_free=told.memory_free,
            cpus=float(told.cpus),
            cpus_own=1,
            cpu_speed=float(params.get("cpu_speed", 1.0)),
            offline=closed or said is None,
            **self._spindles(node, told, params),
            master=node.uuid == self.config.cluster.master_node,
            tags=node.tags,
            units=tuple(self._units(node, told, alone=alone)) if said else None,
        )

    def _leaving(self, node: Node) -> int:
        """Return the memory of those who are still here, and counted elsewhere."""
        here = self.config.instances_on(node) if self.arriving else []
        return sum(
            _memory(self.config, one)
            for one in here
            if one.name in self.arriving
            and self.arriving[one.name].node != node.uuid
            and _is_up(one)
        )

    def _spindles(
        self, node: Node, told: NodeFacts, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the physical volumes of an exclusive node, as a row's fields.

        Any other has as many as its node parameter says.
        """
        if not params.get(PARAMETER):
            return {"spindles": int(params.get("spindle_count", 1))}
        total, empty = spindles(self.cluster, told)
        taken = sum(one.spindles for one in self.claims if one.node == node.uuid)
        free = max(0, empty - taken)
        return {"exclusive": True, "spindles": total, "spindles_free": free}

    def _units(
        self, node: Node, told: NodeFacts, *, alone: bool
    ) -> Iterable[htools.Unit]:
        for unit in told.units:
            known = unit.name
            if known not in self.how.measured and _is_provided(unit):
                continue  # told by `_reach`: the planner is faster with that
            shared = _is_shared(unit)
            taken = sum(
                size
                for claim in self.claims
                if shared or claim.node == node.uuid
                for name, size in claim.rooms
                if told_as(name) == known
            )
            free = None if unit.free is None else max(0, unit.free - taken)
            for name in named(self.cluster, unit, exclusive=alone):
                yield htools.Unit(name, free, unit.total, shared)

    def instances(self) -> Iterator[htools.InstanceRow]:
        """Yield who is here, and who comes, in the order of queries."""
        rows = [*self._residents(), *self._claimed()]
        self._kept.weed(len(rows))
        yield from sorted(rows, key=lambda row: nice(row.name))

    def _residents(self) -> Iterator[htools.InstanceRow]:
        config, residents = self.config, self.config.residents
        here = [uuid for n in self.how.nodes for uuid in residents.get(n.uuid, ())]
        known = (name for name in self.arriving if config.knows(Instance, name))
        coming = [config.instance(name).uuid for name in known]
        for one in map(config.instance, dict.fromkeys(here + coming)):
            disks = config.disks_of(one)
            if claim := self.arriving.get(one.name):
                if claim.node in self.places:
                    yield self._resident(one, disks, claim.node, asked=claim.memory)
            elif one.primary_node in self.places:
                made = partial(self._resident, one, disks, one.primary_node)
                yield self._kept.row(one, disks, made)

    def _resident(
        self, one: Instance, disks: list[Disk], node: str, asked: int = 0
    ) -> htools.InstanceRow:
        """Return the row of an instance on a node; `asked` is the memory of a claim."""
        backend, home = self._backend | one.beparams, self.places[node]
        units = [unit_of(self.config, disk) for disk in disks]
        state = "running" if asked or _is_up(one) else f"ADMIN_{one.admin_state}"
        return htools.InstanceRow(
            one.name,
            mem=asked or int(backend["maxmem"]),
            disk=sum(occupied(disk.dev_type, disk.size) for disk in disks),
            vcpus=int(backend["vcpus"]),
            primary=home,
            secondary=self._secondary(one, home),
            status=state,
            auto_balance=bool(backend["auto_balance"]),
            template=_template([disk.dev_type for disk in disks]),
            tags=one.tags,
            spindle_use=int(backend["spindle_use"]),
            disks=tuple(
                _disk(disk.size, unit, self.how.measured, disk.spindles)
                for disk, unit in zip(disks, units, strict=True)
            ),
            reach=self._reach(units, home),
        )

    def _reach(
        self, units: Iterable[Named], home: int | None = None
    ) -> frozenset[int] | None:
        """Return the nodes that have all providers of some disks; None for all nodes.

        Looked up once for all disks of the same providers. Where they are in use now,
        their `home`, they can be used.
        """
        wanted = providers(units)
        known = self._kept.reached
        if wanted not in known:
            known[wanted] = reach(self.how.offered, wanted)
        found = known[wanted]
        if found is None or home is None or home in found:
            return found
        return found | {home}

    def _secondary(self, one: Instance, home: int) -> int:
        """Return where its second copies are; when it is on its way there, its home."""
        nodes = self.config.nodes_of(one)
        places = [self.places.get(node.uuid, NOWHERE) for node in nodes]
        return next((at for at in places if at not in (home, NOWHERE)), NOWHERE)

    def _claimed(self) -> Iterator[htools.InstanceRow]:
        """Yield instances that are being made."""
        for claim in self.claims:
            known = self.config.knows(Instance, claim.instance)
            if not claim.instance or known or claim.node not in self.places:
                continue
            yield htools.InstanceRow(
                claim.instance,
                mem=claim.memory,
                disk=sum(size for _, size in claim.rooms),
                vcpus=claim.vcpus,
                primary=self.places[claim.node],
                secondary=self.places.get(claim.peer, NOWHERE),
                template=_template(claim.templates),
                tags=claim.tags,
                spindle_use=claim.spindle_use,
                reach=self._reach(claim.units),
                disks=tuple(self._made(claim)),
            )

    def _made(self, claim: Claim) -> Iterator[htools.Disk]:
        """Yield the disks that are being made; the first one has all their spindles."""
        for at, (unit, size) in enumerate(claim.rooms):
            count = 0 if at else claim.spindles
            found = _disk(size, current(unit), self.how.measured, count)
            yield found._replace(whole=True)


def _is_up(instance: Instance) -> bool:
    """Whether it should run; so it has its memory, were it down for a moment."""
    return instance.admin_state == "up"


def _memory(config: Config, instance: Instance) -> int:
    return int(beparams(config, instance)["maxmem"])


def _is_provided(unit: Unit) -> bool:
    """Whether it is a provider's."""
    return TEMPLATES[unit.template].capabilities.provider


def _is_shared(unit: Unit) -> bool:
    """Whether its room is one for all nodes that have it."""
    return FACTS[unit.template].reach is Reach.GROUP


def _disk(
    size: int, unit: Named, measured: frozenset[Named], spindles: int | None = None
) -> htools.Disk:
    told_by = template_of(unit)
    counts = unit in measured if is_provided(unit) else has_room(told_by)
    local = FACTS[told_by].node_disk
    return htools.Disk(size, spindles if local else 0, unit if counts else None)


def _template(names: Iterable[str]) -> str:
    """Return the template that the planner is told: of several, by what they can do."""
    known = list(dict.fromkeys(names))
    if len(known) < 2:
        return known[0] if known else DISKLESS
    return standing_for(known)
