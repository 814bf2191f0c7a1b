# SPDX-License-Identifier: BSD-2-Clause
"""A second copy for disks that have none, and back: nothing is copied by the way.

A mirrored disk's data is a volume like any other. So the volume of a disk becomes the
first copy of a mirrored one where it lies, and what is left when the second copy goes
is a disk again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from moorage.disk_templates import FACTS, METADATA
from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Question, Run, Task, View
from moorage.model import Claim, Config, Disk, Instance, Node, pair_of, successor
from moorage.ops.asking import node_tasks
from moorage.ops.asking.node_tasks import of_disk
from moorage.ops.guests.liveness import holds, runs
from moorage.ops.instance.base import home
from moorage.ops.planning import disk_checks, placement
from moorage.ops.volumes import behind, copies, pairs
from moorage.ops.volumes.dependents import ask_dependents, check_no_dependents
from moorage.ops.volumes.disk_spec import parameters
from moorage.ops.volumes.disk_words import DiskSpec
from moorage.ops.volumes.units import kept_as, unit_of
from moorage.protocol import AwaitSync, BeginMirror, RemoveDisk
from moorage.units import Mib


def is_in_place(disk: Disk, wanted: DiskSpec) -> bool:
    """Whether a disk gets or loses its second copy, and its data stays where it is."""
    before, after = FACTS[disk.dev_type], FACTS[wanted.template]
    gets = pairs.is_mirrored(after.name) and after.stored_as == before.name
    loses = pair_of(disk) is not None and before.stored_as == after.name
    return (gets or loses) and wanted.pool is None and not wanted.adopt


def rooms(
    config: Config, wishes: Sequence[tuple[Disk, DiskSpec]], node: Node, peer: Node
) -> Iterator[Claim]:
    """Claim the room of second copies, and that of the metadata beside the first."""
    disks, template = [disk for disk, _ in wishes], wishes[0][1].template
    yield copies.room(config, disks, template, peer)
    kind, _ = kept_as(template, unit_of(config, disks[0]))
    meta = ((kind, _beside(disk, _given(config, to, node))) for disk, to in wishes)
    yield Claim(node=node.uuid, rooms=tuple((unit, METADATA) for unit in meta))


def _given(config: Config, wanted: DiskSpec, node: Node) -> dict[str, Any]:
    """Return the parameters of a mirrored disk in the group of a node."""
    group = config.group(node.group)
    return wanted.kind.parameters(parameters(config, wanted, group))


def _beside(disk: Disk, given: Mapping[str, Any]) -> str:
    """Return the volume group of the metadata beside a disk's data."""
    return str(given.get("metavg") or disk.logical_id[0])


@dataclass(frozen=True, slots=True)
class Mirroring:
    """All disks of an instance that get a second copy, or lose it.

    Attributes
    ----------
    peer
        Name of the node that is to keep second copies; empty when they go.
    waits
        Whether the job lasts until both copies are the same.
    passing
        Whether it is for a journey alone: the template need not be enabled.
    """

    instance: Instance
    wishes: tuple[tuple[Disk, DiskSpec], ...]
    peer: str
    waits: bool
    passing: bool

    @property
    def gains(self) -> bool:
        """Whether second copies come, or else go."""
        return any(wanted.mirrored for _, wanted in self.wishes)

    @property
    def _disks(self) -> list[Disk]:
        return [disk for disk, _ in self.wishes]

    def _peer(self, view: View) -> Node:
        if not self.peer:
            raise BadInput("mirrored disks need a second node", hint="name it: -n NODE")
        return view.config.node(self.peer)

    def locks(self, view: View) -> Iterator[Lock]:
        """Share the second node."""
        if self.gains:
            yield Lock("node", self._peer(view).uuid, shared=True)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask both nodes for their room, and for snapshots of what is there."""
        if self.gains:
            yield from ask_dependents(view.config, self._disks)
            for node in (home(view.config, self.instance), self._peer(view)):
                yield placement.room_on(view.config, node)

    def check(self, view: View, *, ignore_capacity: bool) -> None:
        """Refuse while the disks are in use, and a node that cannot take copies."""
        node, name = home(view.config, self.instance), self.instance.name
        for _, wanted in () if self.passing else self.wishes:
            disk_checks.check_enabled(view.config, wanted.template)
        if runs(view, self.instance) or holds(view, self.instance):
            raise WrongState(
                f"the disks of instance {name} are in use: their second copies come "
                "and go while it is down",
                hint=f"gnt-instance shutdown {name}",
            )
        if not self.gains:
            behind.check_source(view, self._disks, node, name)
            return
        # The first copy would go one day, and what needs it could not come along.
        check_no_dependents(view, self._disks)
        peer = self._peer(view)
        pairs.check_apart(view.config, node, peer)
        placement.check_takes(peer)
        view.answer(placement.room_on(view.config, peer))
        if not ignore_capacity:
            what = f"the second copies of instance {name}'s disks"
            placement.check_rooms(view, what, self._rooms(view))

    def _rooms(self, view: View) -> Iterator[Claim]:
        config = view.config
        return rooms(config, self.wishes, home(config, self.instance), self._peer(view))

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the room and the numbers of second copies."""
        if self.gains:
            yield from self._rooms(view)
            yield from pairs.claims(map(pair_of, self._made(view)))

    def warnings(self, view: View) -> Iterator[str]:
        """Say which copies stay, for their node is off, and which adopted ones go."""
        for disk, _ in self.wishes if not self.gains else ():
            yield from copies.left_behind(view.config, disk)
            yield from self._given_up(view, disk) if disk.was_there else ()

    def _given_up(self, view: View, disk: Disk) -> Iterator[str]:
        """Name the copy of an adopted disk that is removed: it may be what was there.

        After a failover the second copy is the volume that was adopted.
        """
        node = home(view.config, self.instance)
        volume = "/".join(map(str, disk.children[0].logical_id))
        for peer in copies.peers(view.config, disk, node):
            yield (
                f"volume {volume} of disk {disk.label} was adopted: "
                f"its copy on node {peer.name} is removed, the one on {node.name} stays"
            )

    def tasks(self, view: View) -> Iterator[Task]:
        """Make second copies, or remove them."""
        return self._doubled(view) if self.gains else self._halved(view)

    def _made(self, view: View) -> list[Disk]:
        made: list[Disk] = []
        config = view.config
        node, peer = config.home(self.instance), self._peer(view)
        for disk, wanted in self.wishes:
            pair = pairs.chosen(view, node, peer, made)
            params = _given(config, wanted, node)
            where = (_beside(disk, params), f"{disk.logical_id[1]}_meta")
            data = Disk(
                uuid=f"{disk.uuid}-data",
                dev_type=disk.dev_type,
                logical_id=disk.logical_id,
                size=disk.size,
                nodes=pair.nodes,
            )
            size = Mib(METADATA)
            meta = replace(data, uuid=f"{disk.uuid}-meta", logical_id=where, size=size)
            new = successor(
                disk,
                view.now,
                dev_type=wanted.template,
                logical_id=pair.logical_id,
                nodes=pair.nodes,
                children=(data, meta),
                params=params,
                epoch=disk.epoch + 1,
            )
            made.append(new)
        return made

    def _doubled(self, view: View) -> Iterator[Task]:
        config, node, peer = (
            view.config,
            view.config.home(self.instance),
            self._peer(view),
        )
        made = self._made(view)
        for new in made:
            yield copies.second(config, new, peer)
            yield node_tasks.create(config, new.children[1], node)
            yield Run(
                what=f"let the data of disk {new.label} on {node.name} count",
                node=node.uuid,
                do=BeginMirror(**of_disk(config, new)),
            )
        what = f"record {peer.name} as the secondary node of {self.instance.name}"
        yield view.record(what, *made)
        for new in made if self.waits else ():
            yield copies.follow(config, new, peer)
            yield copies.follow(config, new, node)
            yield from copies.wait(config, new, node, firm=True)
            yield from copies.detach(config, new, node)

    def _halved(self, view: View) -> Iterator[Task]:
        """Yield the end of second copies, once DRBD has said that the first is good.

        That it can be opened says little: what it lacks, it then reads from the other.
        """
        config, node = view.config, view.config.home(self.instance)
        disks = [disk for disk, _ in self.wishes]
        for disk in disks:
            yield from copies.attach(config, disk, node, alone=True)
            yield Run(
                what=f"wait until the copy of disk {disk.label} on {node.name} is good",
                node=node.uuid,
                do=AwaitSync(**of_disk(config, disk), alone=True),
            )
            yield from copies.detach(config, disk, node)
        what = f"record that the disks of {self.instance.name} have one copy"
        single = (self._single(view, *one) for one in self.wishes)
        yield view.record(what, *single, final=True)
        for disk in disks:
            left = replace(disk, epoch=disk.epoch + 1)
            for peer in copies.peers(config, disk, node):
                yield _removed(view, left, peer)
            yield _removed(view, disk.children[1], node)

    def _single(self, view: View, disk: Disk, wanted: DiskSpec) -> Disk:
        group = view.config.group_of(self.instance)
        return successor(
            disk,
            view.now,
            dev_type=wanted.template,
            logical_id=disk.children[0].logical_id,
            nodes=(self.instance.primary_node,),
            children=(),
            behind=None,
            params=wanted.kind.parameters(parameters(view.config, wanted, group)),
            epoch=disk.epoch + 1,
        )


def _removed(view: View, disk: Disk, node: Node) -> Run:
    return Run(
        what=f"remove volume {disk.volume} on {node.name}",
        node=node.uuid,
        do=RemoveDisk(**of_disk(view.config, disk)),
        tolerant=True,
        final=True,
    )
