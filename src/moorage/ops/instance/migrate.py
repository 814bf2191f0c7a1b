# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance migrate``: a running guest goes to another node.

The order is the one that storage with locks can follow: the source shares first, then
the target opens; after the transfer the source closes, and the target is alone.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from msgspec import convert
from msgspec.structs import replace

from moorage.errors import WrongState
from moorage.jobs import Question, Run, Task, View, Witness
from moorage.jobs.unread import Moot
from moorage.model import Claim, Disk, GuestState, Instance, Node, hvparams
from moorage.model.caller import Role
from moorage.model.kinds import MigrationMode
from moorage.model.standstill import remedy, told
from moorage.ops.asking import node_tasks
from moorage.ops.guests.foreign import check_ours
from moorage.ops.guests.liveness import guest, runs
from moorage.ops.instance.base import OnInstance
from moorage.ops.instance.failover import InstanceFailover
from moorage.ops.instance.relocation import ToAnotherNode, check_mobile, disks_in, moved
from moorage.ops.planning import cpu_models
from moorage.ops.planning.fleet import on_record
from moorage.ops.volumes import copies, pairs
from moorage.ops.volumes.disk_access import can
from moorage.protocol import (
    AbortGuest,
    Arrived,
    AwaitGuest,
    DiscardGuest,
    Moved,
    OpenDisk,
    PrepareMigration,
    ResumeGuest,
    RunMigration,
)
from moorage.storage import Can

_FIRST_STEP = 60.0
"""Seconds that a guest may take from its last byte to its first step elsewhere."""


class InstanceMigrate(ToAnotherNode, frozen=True, kw_only=True):
    """Migrate a running instance.

    Attributes
    ----------
    mode
        ``live``, or ``non-live``: the guest stands still while it moves.
    live
        Whether the guest runs while it moves, as older clients say it.
    cleanup
        Instead of moving it, find out where it runs after a migration that broke,
        and record that.
    allow_failover
        Fail over an instance that does not run.
    ignore_processor
        Whether it may go where its guest would miss features of its processors.
    """

    op_id = "OP_INSTANCE_MIGRATE"
    role = Role.OPERATE

    mode: MigrationMode | None = None
    live: bool | None = None
    cleanup: bool = False
    allow_failover: bool = False
    allow_runtime_changes: Annotated[bool, Moot("a guest's memory stays as it is")] = (
        True
    )
    ignore_hvversions: Annotated[
        bool, Moot("no version of a hypervisor is compared")
    ] = False
    ignore_processor: bool = False

    def candidates(self, view: View) -> list[Node]:
        """Return the target; to find out where it runs, every node that is on."""
        if not self.cleanup:
            return ToAnotherNode.candidates(self, view)
        return list(view.config.hosts())

    def chooses(self, view: View) -> bool:
        """Whether nobody named a node; to find out where it runs, none is needed."""
        return not self.cleanup and ToAnotherNode.chooses(self, view)

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the memory on the target; to look where it runs needs none."""
        return iter(()) if self.cleanup else ToAnotherNode.claims(self, view)

    def beyond(self, view: View) -> int:
        """Return the MiB that its guest runs with, if its record was lowered since."""
        instance = self.instance(view)
        if not runs(view, instance) or self._fails_over(view):
            return 0
        running = guest(view, instance)
        has = running.memory if running else 0
        return has if has > on_record(view.config, instance).memory else 0

    def questions(self, view: View) -> Iterator[Question]:
        """Ask where it runs; what room there is, or (`cleanup`) what is left there."""
        if not self.cleanup:
            yield from ToAnotherNode.questions(self, view)
            return
        yield from OnInstance.questions(self, view)
        for node in self.candidates(view):
            yield node_tasks.guest_on(node.uuid, self.instance(view))
            yield node_tasks.facts_on(node)

    def ask_processor(self, view: View, node: Node) -> Iterator[Question]:
        """Ask for the processors of both nodes."""
        yield from cpu_models.ask_move(view.config, self.instance(view), node)

    def check_processor(self, view: View, node: Node) -> None:
        """Raise `WrongState` if its guest would miss features, or cannot start."""
        instance = self.instance(view)
        found = guest(view, instance) if runs(view, instance) else None
        if found and not self._fails_over(view):
            if not self.ignore_processor:
                cpu_models.check_move(view, instance, found, node)
        else:
            ToAnotherNode.check_processor(self, view, node)

    def check(self, view: View) -> None:
        """Refuse what cannot move, or cannot go there."""
        instance = self.instance(view)
        if self.cleanup:
            self._running_at(view)
            return
        OnInstance.check(self, view)
        check_mobile(view, instance, "migrations")
        self.check_target(view)
        if runs(view, instance):
            self._check_goes(view)
            home = view.config.home(instance)
            pairs.check_in_sync(view, view.config.disks_of(instance), home)
        elif self.allow_failover:
            self.check_current(view)
        else:
            raise WrongState(
                f"instance {instance.name} is not running: there is nothing to migrate",
                hint=f"gnt-instance failover {instance.name}",
            )

    def _check_goes(self, view: View) -> None:
        """Raise `WrongState` if it stands still: sent back, it would run."""
        instance = self.instance(view)
        found = guest(view, instance)
        check_ours(view, instance, "a migration")
        if found and found.state == "paused" and not self._fails_over(view):
            raise WrongState(
                f"instance {instance.name} stands still ({told(found.cause)}): a guest "
                "migrates while it runs",
                hint=remedy(found.cause, instance.name),
                instance=instance.name,
            )

    def _running_at(self, view: View) -> list[Node]:
        """Return the nodes where it runs; every online node must have answered."""
        instance = self.instance(view)
        found = []
        for node in self.candidates(view):
            guest = view.answer(node_tasks.guest_on(node.uuid, instance))
            if guest and guest.runs:
                found.append(node)
        if len(found) > 1:
            names = " and ".join(node.name for node in found)
            raise WrongState(
                f"instance {instance.name} runs on {names}: stop one by hand"
            )
        return found

    def tasks(self, view: View) -> Iterator[Task]:
        """Share, prepare, transfer, record, tidy up."""
        instance = self.instance(view)
        if self.cleanup:
            yield from self._cleanup(view, instance)
        elif runs(view, instance) and not self._fails_over(view):
            live = self.mode != "non-live" and self.live is not False
            yield from migration(view, instance, self.target(view), live=live)
        else:
            target = self.target(view).name
            stopped = InstanceFailover(instance_name=instance.name, target_node=target)
            yield from stopped.tasks(view)

    def _fails_over(self, view: View) -> bool:
        """Whether it runs, and is never to migrate."""
        instance = self.instance(view)
        always = node_tasks.beparams(view.config, instance)["always_failover"]
        return bool(always) and runs(view, instance)

    def warnings(self, view: View) -> Iterator[str]:
        """Say that it is stopped and started, if it is never to migrate."""
        if not self.cleanup and self._fails_over(view):
            yield (
                f"instance {self.instance(view).name} has always_failover: it is "
                "stopped, and started on the other node"
            )

    def _cleanup(self, view: View, instance: Instance) -> Iterator[Task]:
        running = self._running_at(view)
        source = view.config.home(instance)
        for node in self.candidates(view):
            if node in running:
                continue
            for verb in (AbortGuest, DiscardGuest):
                yield Run(
                    what=f"end what is left of {instance.name} on {node.name}",
                    node=node.uuid,
                    do=verb(**node_tasks.of_guest(instance)),
                    tolerant=True,
                )
            if node.uuid != (running or [source])[0].uuid:
                yield from self._left(view, instance, node)
        if running:
            yield _arrival(instance, running[0], disks=())
        if running and running[0] != source:
            there = moved(view, instance, running[0])
            what = f"record {instance.name} on {running[0].name}"
            yield view.record(what, *there, final=True)
            for disk in disks_in(there):
                alone = node_tasks.attach(view.config, disk, running[0], held=True)
                yield replace(alone, tolerant=True)

    def _left(self, view: View, instance: Instance, node: Node) -> Iterator[Task]:
        """Yield the end of what a node, where it does not run, holds of its disks."""
        facts = view.answer(node_tasks.facts_on(node))
        held = {one.disk for one in facts.held} if facts else set()
        for disk in view.config.disks_of(instance):
            if disk.uuid in held:
                yield from copies.leave(view.config, disk, node)

    def result(self, _view: View, results: Sequence[Any]) -> Moved | None:
        """Return times in ms and MiB transferred, where there was a transfer."""
        answers = [one for one in results if isinstance(one, dict)]
        sent = [convert(one, Moved) for one in answers if "total_ms" in one]
        came = [convert(one, Arrived) for one in answers if "lasted_ms" in one]
        if sent and came:
            return _whole(sent[0], came[0].lasted_ms)
        return sent[0] if sent else None


def _whole(sent: Moved, lasted: int) -> Moved:
    """Return how a migration went, up to the guest's first step on its new node.

    Two nodes' clocks are not compared: each tells how long something took. What the
    source tells began when the target had let it in already. So the guest ran at least
    as long as the source says, and then stood still for the rest of what the target
    says, at most: the answer of the target to being let in, and the time until somebody
    looked, are counted with it.

    Parameters
    ----------
    sent
        As the source knows it.
    lasted
        Milliseconds, as the target knows them.

    >>> _whole(Moved(total_ms=900, downtime_ms=30, transferred=90), 960)
    Moved(total_ms=960, downtime_ms=90, transferred=90)
    """
    ran = sent.total_ms - sent.downtime_ms
    total = max(lasted, sent.total_ms)
    return replace(sent, total_ms=total, downtime_ms=total - ran)


def migration(
    view: View, instance: Instance, target: Node, *, live: bool = True
) -> Iterator[Task]:
    """Yield the tasks of a migration; a guest that is not `live` pauses meanwhile.

    The transfer is the point of no return: it is either complete, or proven to have
    left the guest where it was.
    """
    config = view.config
    source = config.home(instance)
    disks = config.disks_of(instance)
    opened = [disk for disk in disks if can(disk, Can.OPEN)]
    for disk in opened:
        both = node_tasks.of_disk(config, disk)
        yield Run(
            what=f"share disk {disk.label} on {source.name}",
            node=source.uuid,
            do=OpenDisk(**both, exclusive=False),
            undo=OpenDisk(**both, exclusive=True),
        )
    for disk in disks:
        yield copies.arrive(config, disk, target)
    running = guest(view, instance)
    ports = running.ports if running else {}
    cards = running.cards if running else None
    whole = node_tasks.of_whole(config, instance, target)
    if running:  # what was changed since counts from its next start
        whole["memory"], whole["vcpus"] = running.memory, running.vcpus
        whole["hvparams"] = whole["hvparams"] | _machine(running)
    apart = target.secondary_ip != target.primary_ip  # a network for migrations alone
    yield Run(
        what=f"prepare {instance.name} on {target.name}",
        node=target.uuid,
        do=PrepareMigration(
            **whole,
            disks=tuple(disks),
            ports=ports,
            cards=cards,
            address=target.secondary_ip if apart else "",
        ),
        undo=AbortGuest(**node_tasks.of_guest(instance), disks=tuple(disks)),
        name="prepare",
    )
    yield Run(
        what=f"transfer {instance.name} from {source.name} to {target.name}",
        node=source.uuid,
        do=RunMigration(
            **node_tasks.of_guest(instance),
            disks=tuple(disks),
            address=target.secondary_ip,
            live=live,
        ),
        undo=ResumeGuest(**node_tasks.of_guest(instance), disks=tuple(disks)),
        final=True,
        use={"door": "prepare"},
        witness=Witness(target.uuid, AwaitGuest(**node_tasks.of_guest(instance))),
    )
    there = moved(view, instance, target)
    yield view.record(f"record {instance.name} on {target.name}", *there, final=True)
    yield from _tidied(view, instance, disks_in(there), source, target)


def _machine(running: GuestState) -> dict[str, bool | int | str]:
    """Return the parameters of the machine that a guest runs on.

    Another node starts QEMU with them. So of what its node says nothing else counts.
    """
    told = {
        name: value
        for name, value in running.machine.items()
        if name in hvparams.MACHINE
    }
    return {**hvparams.ABSENT, **told}


def _arrival(instance: Instance, node: Node, disks: Sequence[Disk]) -> Run:
    """Return the task that sees a guest run, which it does by itself.

    One that a node of an earlier version sent stands still until then. So this is done
    however long the target's agent is away. It is safe by then: all was sent, and a
    source that has sent everything never runs again.
    """
    return Run(
        what=f"see {instance.name} run on {node.name}",
        node=node.uuid,
        do=AwaitGuest(
            **node_tasks.of_guest(instance),
            disks=tuple(disks),
            timeout=_FIRST_STEP,
            tells=True,
        ),
        tolerant=True,
        patient=True,
    )


def _tidied(
    view: View, instance: Instance, disks: list[Disk], source: Node, target: Node
) -> Iterator[Task]:
    """Yield what is left to do when the guest runs on the target."""
    yield _arrival(instance, target, disks)
    yield Run(
        what=f"end the old process of {instance.name} on {source.name}",
        node=source.uuid,
        do=DiscardGuest(**node_tasks.of_guest(instance), disks=tuple(disks)),
        tolerant=True,
    )
    opened = [disk for disk in disks if can(disk, Can.OPEN)]
    for disk in opened:
        yield copies.close(view.config, disk, source)
    for disk in disks:
        alone = node_tasks.attach(view.config, disk, target, held=True)
        yield replace(alone, tolerant=True)
    for disk in disks:
        yield from copies.leave(view.config, disk, source)
