# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance add --from``: an instance as another one, with copies of its disks.

What the request does not say, the source does. Its disks are copied where they are,
on the source's node; the new instance goes wherever these copies can be used. At last
the rename script of its OS tells the system on them whose it is.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from moorage.errors import BadInput, WrongState
from moorage.jobs import Lock, Question, Sought, Task, View, once
from moorage.model import Disk, Instance, Nic, Node
from moorage.model.kinds import Rate
from moorage.ops.asking import node_tasks
from moorage.ops.disk.clone import makes_clones
from moorage.ops.disk.snapshot import copy_of, take
from moorage.ops.filling.conversion_tasks import copy
from moorage.ops.guests import osparams
from moorage.ops.guests.liveness import check_nowhere_else, holds, seek
from moorage.ops.instance.base import ask, check_at_rest, check_usable, hold
from moorage.ops.instance.completed import Completed
from moorage.ops.instance.create import InstanceCreate
from moorage.ops.instance.new_instance import NewInstance
from moorage.ops.planning import disk_checks
from moorage.ops.volumes import behind, copies, disk_words
from moorage.ops.volumes.disk_access import able, check_reach
from moorage.storage import Reach


class Cloned(InstanceCreate, frozen=True, kw_only=True):
    """The making of an instance whose disks are copies of another one's.

    Attributes
    ----------
    source
        Uuid of that instance.
    rate
        How much is copied in a second at most; 0 for no limit.
    """

    source: str
    rate: Rate = 0

    def case(self, view: View) -> "Clone":
        """Return what it comes to on a view."""
        return view.once(Clone, self)

    def tasks(self, view: View) -> Iterator[Task]:
        """Copy the disks, take them to its node, tell the system, and record it."""
        config, case = view.config, self.case(view)
        home, node, instance = case.home, case.node, case.instance
        if self.needs_os():
            yield osparams.verify(view, case.with_secrets, node)
        for disk in case.disks_at_home:
            yield from node_tasks.verify(config, disk, home)
        for old, new in zip(case.sources, case.disks_at_home, strict=True):
            yield from self._filled(view, old, new)
        if home != node:
            for new, disk in zip(case.disks_at_home, case.disks, strict=True):
                yield from copies.detach(config, new, home)
                yield from copies.attach(config, disk, node)
        for disk in case.disks:
            yield node_tasks.setinfo(config, disk, node, instance.name)
        if self.os_type and case.disks:
            whose = case.source.name
            told = osparams.rename(view, case.with_secrets, whose, node, case.disks)
            # Else it would come up as the source, with its name and its addresses.
            yield replace(told, tolerant=False, hint="")
        yield from self._done(view)

    def _filled(self, view: View, old: Disk, new: Disk) -> Iterator[Task]:
        """Yield what makes a new disk of the source's, attached on its node then."""
        config, case = view.config, self.case(view)
        home, held = case.home, holds(view, case.source)
        snapshot = case.by_snapshot(old)
        if not snapshot:
            yield from copies.create(config, new, home)
            yield from copies.attach(config, new, home)
        if not held:
            yield from copies.attach(config, old, home)
        if snapshot:
            yield take(config, old, new, home)
        else:
            yield copy(view, old, new, home, self.rate)
        if not held:
            yield from copies.detach(config, old, home)
        if snapshot:
            yield from copies.attach(config, new, home)


class Clone(NewInstance):
    """An instance that is to be made of another one."""

    request: Cloned

    @cached_property
    def source(self) -> Instance:
        """The instance that it is made of."""
        return self.view.config.instance(self.request.source)

    @cached_property
    def sources(self) -> list[Disk]:
        """The disks that it gets copies of."""
        return self.view.config.disks_of(self.source)

    @cached_property
    def home(self) -> Node:
        """The source's node, where the copies are made."""
        return self.view.config.home(self.source)

    def by_snapshot(self, disk: Disk) -> bool:
        """Whether the storage makes the copy of a disk, in no time."""
        return makes_clones(self.view, disk, self.home, at_rest=True)

    @cached_property
    def disks(self) -> list[Disk]:
        """Its disks; a second node that uses them has the second epoch."""
        made = NewInstance.disks.func(self)  # type: ignore[attr-defined]
        epoch = 1 if self.node == self.home else 2
        return [
            replace(self._taken(old, new), epoch=epoch)
            for old, new in zip(self.sources, made, strict=True)
        ]

    def _taken(self, old: Disk, new: Disk) -> Disk:
        if not self.by_snapshot(old):
            return new
        taken = copy_of(self.view, old, self.home)
        return replace(taken, last_node=new.last_node, group=new.group)

    @cached_property
    def disks_at_home(self) -> list[Disk]:
        """Its disks while they are filled."""
        home = self.home.uuid
        return [replace(disk, epoch=1, last_node=home) for disk in self.disks]


class InstanceClone(Completed, frozen=True, kw_only=True):
    """``OP_INSTANCE_CREATE`` in mode ``clone``.

    Attributes
    ----------
    src_instance
        An instance at rest: what is not said is as it has it, and its disks are copied.
        Marked offline, nobody starts it by mistake.
    rate
        How much is copied in a second at most; 0 for no limit.
    """

    mode: str = "clone"
    src_instance: str
    rate: Rate = 0

    def _source(self, view: View) -> Instance:
        return view.config.instance(self.src_instance)

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the source with its disks, beside what any new instance holds."""
        yield from hold(view.config, self._source(view))
        yield from self.whole(view).locks(view)

    def questions(self, view: View) -> Iterator[Question]:
        """Ask whether the source runs, and all that making an instance may ask for."""
        source = self._source(view)
        yield from ask(source)
        yield from behind.ask(view.config, source)
        yield node_tasks.providers_on(source.primary_node)
        yield from self.whole(view).questions(view)

    def seeks(self, view: View) -> Iterator[Sought]:
        """Ask whether another node has the source's guest, which would write."""
        yield from seek(view.config, self._source(view))

    def asks_now(self, view: View) -> frozenset[str] | None:
        """Of the source's node, and of nodes that were named."""
        named = self.whole(view).asks_now(view)
        return None if named is None else named | {self._source(view).primary_node}

    @once
    def whole(self, view: View) -> Cloned:
        """Return the request with all that the source says."""
        source = self._source(view)
        asked = {name: getattr(self, name) for name in InstanceCreate.__struct_fields__}
        merged = {
            "mode": "create",
            "disk_template": None,
            "disks": [_described(disk) for disk in view.config.disks_of(source)],
            "nics": self._cards(view, source.nics),
            "os_type": self.os_type or source.os or None,
            "no_install": True,
            "force_params": True,
            "hypervisor": self.hypervisor or source.hypervisor,
            "hvparams": source.hvparams | self.hvparams,
            "beparams": source.beparams | self.beparams,
            "osparams": source.osparams | self.osparams,
            "osparams_private": source.osparams_private | self.osparams_private,
            "tags": self.tags or source.tags,
            **self._places(view, source),
        }
        return Cloned(**asked | merged, source=source.uuid, rate=self.rate)

    def _places(self, view: View, source: Instance) -> dict[str, Any]:
        """Return where it may be: with disks of one node, there; else in the group."""
        config, disks = view.config, view.config.disks_of(source)
        if self.pnode:
            return {}
        if all(able(disk).reach is Reach.GROUP for disk in disks):
            group = config.group_of(source).name
            return {} if self.group_name else {"group_name": group}
        second = copies.secondary(config, source)
        home = config.home(source).name
        return {"pnode": home, "snode": second.name if second else None}

    def _cards(self, view: View, known: Sequence[Nic]) -> list[dict[str, Any]]:
        """Return the cards that are asked for; else the source's, with new addresses.

        A card of a network gets the next address of it, where the source's has one.
        """
        if self.nics is not None:
            return self.nics
        return [_card(view, nic) for nic in known]

    def check(self, view: View) -> None:
        """Refuse a source that runs, and what no instance could be."""
        source, whole = self._source(view), self.whole(view)
        if self.disks or self.disk_template:
            raise BadInput(
                f"a clone has the disks of {source.name}",
                hint="gnt-instance grow-disk makes them larger afterwards",
            )
        check_usable(view, source)
        check_at_rest(view, source, "cloned")
        check_nowhere_else(view, source, "what it writes meanwhile would be torn")
        disk_checks.check_rate(self.rate)
        if self.pnode:
            for disk in view.config.disks_of(source):
                _check_there(view, disk, source, view.config.node(self.pnode))
        whole.check(view)

    def warnings(self, view: View) -> Iterator[str]:
        """Tell what is copied bit by bit, and a system that nobody tells its name."""
        source, whole = self._source(view), self.whole(view)
        yield from whole.warnings(view)
        if view.config.disks_of(source) and not whole.os_type:
            yield (
                f"{source.name} has no OS definition whose rename script could tell "
                "the system on the disks its new name"
            )


def _described(disk: Disk) -> dict[str, Any]:
    """Return the words for another disk as this one."""
    own = {"size": disk.size, "mode": disk.mode, "spindles": disk.spindles}
    place = {"pool": disk.pool} if disk.pool else {"dev_type": disk.dev_type}
    return {**disk_words.anew(disk.params), **own, **place}


def _card(view: View, nic: Nic) -> dict[str, Any]:
    found: dict[str, Any] = {"name": nic.name} if nic.name else {}
    if nic.network:
        found["network"] = view.config.network(nic.network).name
        held = {"filter": nic.nicparams.get("filter"), "ip": nic.ip and "pool"}
        return found | {key: one for key, one in held.items() if one}
    return found | {key: one for key, one in nic.nicparams.items() if one}


def _check_there(view: View, disk: Disk, source: Instance, node: Node) -> None:
    """Raise unless a copy that is made beside a disk can be used on a node."""
    if able(disk).reach is Reach.GROUP:
        check_reach(view, disk, node)
        return
    home = view.config.home(source)
    if node != home:
        raise WrongState(
            f"disk {disk.label} of {source.name} is on {home.name}, and so is a copy",
            hint=f"-n {home.name}; gnt-instance move takes it elsewhere afterwards",
        )
