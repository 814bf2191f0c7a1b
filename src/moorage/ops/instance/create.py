# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance add``: an instance with its disks, each of its own template."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

from moorage import backend
from moorage.errors import BadInput
from moorage.jobs import Lock, Question, Task, View
from moorage.model import DISKLESS, Claim, hvparams, pair_of
from moorage.model.objects import MOST_DISKS
from moorage.ops.asking import node_tasks
from moorage.ops.guests import cabling, guest_tasks, nics, osparams, screens
from moorage.ops.instance import names
from moorage.ops.instance.new_instance import InstanceRequest
from moorage.ops.planning import cpu_models, disk_checks, placement, processors
from moorage.ops.volumes import copies, disk_spec, pairs
from moorage.storage.validation import check_tags
from moorage.units import Mib


class InstanceCreate(InstanceRequest, frozen=True, kw_only=True):
    """Make an instance."""

    op_id = "OP_INSTANCE_CREATE"

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the name; share the nodes that may be it."""
        case = self.case(view)
        yield Lock("instance", self.instance_name)
        for node in case.hosts:
            yield Lock("node", node.uuid, shared=True)
        yield from disk_spec.hold(view, case.wishes)
        yield from cabling.hold_named(view.config, case.cards_asked)

    def asks_now(self, view: View) -> frozenset[str] | None:
        """Only of nodes that were named; a volume to adopt may be in use anywhere."""
        if self.adopts():
            return None
        return frozenset(one.uuid for one in self.case(view).hosts if self.pnode)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask what the nodes and their groups offer."""
        config, case = view.config, self.case(view)
        for uuid in dict.fromkeys(node.group for node in case.hosts):
            for wanted in case.wishes:
                yield from disk_spec.ask(config, wanted, config.group(uuid))
        yield from placement.ask_room(config, case.hosts)
        yield from self.ask_for_allocator(view)
        for node in case.hosts:
            yield from cpu_models.ask_start(config, case.described, node)
        for node in case.hosts if self.needs_os() else ():
            yield node_tasks.oses_on(node.uuid)

    def settled(self, view: View) -> Self:
        """Return the same request, with its nodes named.

        That they have the memory and the room was asked for: `ignore_capacity` only
        let the planner choose where others lose their place to restart.
        """
        if self.pnode:
            return self
        case = self.case(view)
        return self.naming(
            pnode=case.node.name,
            snode=case.peer.name if case.peer else None,
            iallocator=None,
            ignore_capacity=False,
        )

    def check(self, view: View) -> None:
        """Refuse what is taken, unknown, or out of reach."""
        case = self.case(view)
        self._check_words(view)
        if len(case.wishes) > MOST_DISKS:
            raise BadInput(
                f"an instance has at most {MOST_DISKS} disks, not {len(case.wishes)}"
            )
        disk_checks.check_distinct(case.wishes)
        node = case.node
        processors.check_fits(view, case.at_home, node)
        self._check_pair(view)
        if self.pnode:
            for one in case.nodes:
                case.check_node(one)
            case.check_disks(node, case.peer)
            if not self.ignore_capacity:
                placement.check_arrival(view, case.newcomer(node), node)
                # A pool that nodes share is none of a node's own room.
                rooms = disk_spec.rooms(view, case.wishes, node, case.peer)
                what = f"instance {self.instance_name}"
                placement.check_rooms(view, what, rooms)

    def _check_pair(self, view: View) -> None:
        """Raise unless a secondary node is named where one is needed."""
        case = self.case(view)
        if self.snode and not self.pnode:
            raise BadInput("a secondary node needs a primary one", hint="-n A:B")
        if self.snode and not case.mirrors:
            raise BadInput(
                f"no disk of instance {self.instance_name} has a second copy: a "
                "secondary node makes no sense",
                hint=f"-n {self.pnode}",
            )
        if case.mirrors and self.pnode and not self.snode:
            raise BadInput(
                "mirrored disks need a second node",
                hint=f"-n {self.pnode}:OTHER, or leave -n out: the planner chooses",
            )
        if case.peer:
            pairs.check_apart(view.config, case.node, case.peer)

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the memory, and the room of disks that are made."""
        case = self.case(view)
        node, peer, wishes = case.node, case.peer, case.wishes
        wanted = case.newcomer(node)
        rooms = list(disk_spec.rooms(view, wishes, node, peer))
        yield Claim(
            node=node.uuid,
            instance=self.instance_name,
            memory=Mib(wanted.memory if self.start else 0),
            vcpus=wanted.vcpus,
            rooms=disk_spec.taken(view, wishes, node),
            spindles=disk_spec.spindles(wishes),
            units=wanted.units,
            templates=tuple(name for name, _ in wanted.disks),
            tags=self.tags,
            spindle_use=wanted.spindle_use,
            peer=peer.uuid if peer else "",
            addresses=nics.claimed(case.cards),
        )
        yield from (one for one in rooms if one.node != node.uuid)
        yield from pairs.claims(map(pair_of, case.disks))

    def _check_words(self, view: View) -> None:
        names.check(view.config, self.instance_name)
        osparams.check_offered(view.config, self.os_type or "")
        if self.mode != "create":
            raise BadInput(f"instances are made in mode 'create', not '{self.mode}'")
        if self.pnode and self.iallocator:
            raise BadInput("a node and an iallocator exclude each other")
        if self.disk_template != DISKLESS and not self.disks:
            raise BadInput(
                "no disk was described",
                hint="--disk 0:size=10G, or -t diskless for an instance without",
            )
        enabled = view.config.cluster.enabled_hypervisors
        if self.hypervisor and self.hypervisor not in enabled:
            told = ", ".join(enabled)
            raise BadInput(f"hypervisor '{self.hypervisor}' is not enabled: {told} is")
        _ = self.case(view).cards  # raises what is wrong with one
        check_tags(self.tags)
        backend.check(self.beparams)
        hvparams.check(self.hypervisor or enabled[0], self.hvparams)
        screens.check(view.config, self.hypervisor or enabled[0], self.hvparams)

    def warnings(self, view: View) -> Iterator[str]:
        """Tell what is left out, and which nodes could not take the instance over."""
        case = self.case(view)
        for wanted in case.wishes:
            yield from disk_checks.warnings(view, wanted, case.node)
        yield from cabling.warnings(view, case.cards)
        installs = self.os_type and not self.no_install and not self.install_adopted
        if installs and self.adopts():
            yield (
                f"the scripts of OS {self.os_type} do not run, for a disk is adopted "
                "with its data; --install-adopted runs them"
            )
        images = any(wanted.kind.capabilities.images for wanted in case.wishes)
        if self.file_storage_dir and not images:
            yield "no disk is an image file: the file storage directory has no effect"
        given = node_tasks.hvparams(view.config, case.described)
        yield from hvparams.warnings(case.described.hypervisor, given)

    def tasks(self, view: View) -> Iterator[Task]:
        """Make the disks, install, start, and record it all at the end."""
        config, case = view.config, self.case(view)
        node, instance = case.node, case.instance
        if self.needs_os():
            yield osparams.verify(view, case.with_secrets, node)
        for disk in case.disks:
            yield from node_tasks.verify(config, disk, node)
        for disk in case.disks:
            yield from copies.create(config, disk, node)
            yield from copies.attach(config, disk, node)
            yield node_tasks.setinfo(config, disk, node, instance.name)
        yield from self.put_on(view)
        yield from self._done(view)

    def _done(self, view: View) -> Iterator[Task]:
        """Start it, or let go of its disks; record it, and wait for second copies.

        Who starts it need not wait: the guest runs while its disks are copied.
        """
        config, case = view.config, self.case(view)
        node, instance, disks = case.node, case.instance, case.disks
        waits = [one for disk in disks for one in copies.wait(config, disk, node)]
        if self.start:
            yield guest_tasks.start(config, instance, disks, node)
        else:
            yield from waits if self.wait_for_sync else ()
            for disk in disks:
                yield from copies.detach(config, disk, node)
        yield view.record(f"record {instance.name}", *disks, instance)
        if self.start and self.wait_for_sync:
            yield from waits

    def put_on(self, view: View) -> Iterator[Task]:
        """Yield what puts data on the disks, which are attached on the node."""
        if self.installs():
            case = self.case(view)
            yield osparams.install(view, case.with_secrets, case.disks, case.node)

    def result(self, view: View, _results: Sequence[Any]) -> list[str]:
        """Return the nodes, as Ganeti does."""
        return [node.name for node in self.case(view).nodes]
