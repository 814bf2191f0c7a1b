# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk add``: a disk that belongs to nobody."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Annotated, Any

from msgspec import field

from moorage.errors import BadInput, MoorageError, WrongState
from moorage.jobs import Case, Lock, Planner, Question, Task, View, rights
from moorage.model import Claim, Disk, Node, NodeGroup, Pair
from moorage.model.kinds import Access, Count, DiskMode, Epoch, Mebibytes
from moorage.ops.asking import node_tasks
from moorage.ops.asking.silence import check_online
from moorage.ops.disk import provided
from moorage.ops.planning import disk_checks, placement
from moorage.ops.volumes import copies, disk_spec, disk_words, pairs, pools
from moorage.ops.volumes.disk_access import (
    check_within,
    online,
    only_group,
    some_online,
)
from moorage.ops.volumes.disk_names import check_disk_name, check_unused
from moorage.ops.volumes.units import has_room
from moorage.storage.validation import check_tags


class DiskAdd(Planner, frozen=True, kw_only=True):
    """Make a disk, or adopt one, and attach it to nothing.

    Attributes
    ----------
    name
        A name that no other detached disk has; without one it has its uuid alone.
    disk_template
        How it is stored; not needed with a provider or a pool.
    provider
        The ExtStorage provider of a disk of template ``ext``.
    access
        ``userspace`` or ``kernelspace``: how QEMU reaches it.
    mode
        ``rw``, or ``ro`` for a disk that no guest writes to.
    tags
        Tags that it has from the beginning.
    size
        Its size; not for an adopted device, whose node tells it.
    adopt
        A device or a volume that is there: it keeps its data, and nothing but an
        explicit remove destroys it.
    epoch
        The epoch that an adopted disk starts with, where its storage has seen others.
    pool
        The storage pool that it is made in: it says template and provider.
    spindles
        How many physical volumes it gets for itself, with exclusive storage.
    params
        Parameters of the template or the provider.
    node
        The node that is to hold it, for a template that stays on one.
    group
        The node group that is to reach it; the only one when there is one.
    force_params
        Accept parameters that the provider does not list.
    ignore_capacity
        Whether it may be larger than the room that its storage has.
    """

    op_id = "OP_DISK_ADD"

    name: str | None = None
    disk_template: str | None = None
    pool: str | None = None
    size: Mebibytes | None = None
    provider: str | None = None
    access: Access | None = None
    adopt: Annotated[str | None, rights.ADOPTS] = None
    epoch: Epoch = 0
    mode: DiskMode = "rw"
    spindles: Count | None = None
    params: Annotated[dict[str, Any], rights.NEW_DISK] = field(default_factory=dict)
    node: str | None = None
    group: str | None = None
    force_params: bool = False
    ignore_capacity: bool = False
    tags: tuple[str, ...] = ()

    @cached_property
    def words(self) -> disk_words.DiskWords:
        """What describes the disk."""
        own = {
            "name": check_disk_name(self.name) if self.name else None,
            "force": self.force_params,
            "tags": check_tags(self.tags),
        }
        names = ("pool", "size", "mode", "adopt", "epoch", "spindles")
        given = {name: getattr(self, name) for name in names}
        params = disk_words.named_params(
            self.params, provider=self.provider, access=self.access
        )
        return disk_words.DiskWords(given, self.disk_template, params, own)

    def case(self, view: View) -> "NewDisk":
        """Return what it comes to on a view."""
        return view.once(NewDisk, self)

    def locks(self, view: View) -> list[Lock]:
        """Share the nodes that may do it; hold its name, and an adopted device."""
        case = self.case(view)
        nodes = (case.node, *case.workers)
        shared = (Lock("node", node.uuid, shared=True) for node in nodes)
        return [*shared, *disk_spec.hold(view, [case.wanted], owned=False)]

    def questions(self, view: View) -> list[Question]:
        """Ask what the group's nodes offer."""
        config, case = view.config, self.case(view)
        wanted, node = case.wanted, case.node
        if self.node and not wanted.adopts:
            asked = case.others.ask()
        else:
            asked = [*disk_spec.ask(config, wanted, config.group(node.group))]
        if has_room(wanted.template):
            asked += placement.ask_room(config, case.workers)
        return asked

    def likely(self, view: View) -> "DiskAdd":
        """Return the same request for the node that took the last one like it.

        For any, if there was none yet; itself, where more than one node is needed.
        """
        if self.node:
            return self
        case = self.case(view)
        if case.wanted.adopts or case.wanted.mirrored or not case.wanted.roams:
            return self
        nodes = case.workers
        last = view.kept.of(_Makers).get((nodes[0].group, case.wanted.driver))
        found = next((node for node in nodes if node.uuid == last), nodes[0])
        return self.naming(node=found.name)

    def check(self, view: View) -> None:
        """Refuse what the group cannot use."""
        case = self.case(view)
        if case.wanted.name:
            check_unused(view.config, case.wanted.name)
        disk_checks.check_wanted(view, case.wanted, case.node, case.pair)
        disk_checks.check_made(view, case.wanted, case.disk, case.node)
        for one in filter(None, (case.node, case.peer)):
            check_online(one)
        if not self.ignore_capacity:
            what = f"disk {self.name or 'without a name'}"
            placement.check_rooms(view, what, case.rooms)

    def warnings(self, view: View) -> Iterator[str]:
        """Say which nodes of the group will not reach it."""
        return self.case(view).others.warnings()

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim its room."""
        case = self.case(view)
        return chain(case.rooms, pairs.claims([case.pair]))

    def tasks(self, view: View) -> Iterable[Task]:
        """Make the volume, look whether it is there, then record the disk.

        As in Ganeti it is attached once: a provider may say yes and make nothing.
        """
        case = self.case(view)
        node, disk = case.node, case.disk
        view.kept.of(_Makers)[node.group, case.wanted.driver] = node.uuid
        return [
            *node_tasks.verify(view.config, disk, node),
            *copies.create(view.config, disk, node),
            *copies.attach(view.config, disk, node),
            *self.put_on(view, disk, node),
            node_tasks.setinfo(view.config, disk, node),
            *copies.detach(view.config, disk, node),
            view.record(f"record disk {disk.label}", disk),
        ]

    def put_on(self, _view: View, _disk: Disk, _node: Node) -> Iterable[Task]:
        """Say what puts data on the disk, which is attached on the node."""
        return ()

    def result(self, _view: View, results: Sequence[Any]) -> str:
        """Return the uuid."""
        return str(results[-1][0])


class NewDisk(Case["DiskAdd"]):
    """The disk that a request is for, and the nodes that may make it."""

    @cached_property
    def wanted(self) -> disk_words.DiskSpec:
        """The disk as it is wanted."""
        return self.request.words.read(self.view.config)

    @cached_property
    def node(self) -> Node:
        """The node that makes it."""
        config, asked = self.view.config, self.request
        if asked.node:
            node = config.node(asked.node.partition(":")[0])
            check_within(config, node, asked.group)
            return node
        if self.wanted.mirrored:
            return self.keepers[0]
        if not self.wanted.roams:
            raise BadInput(
                f"a disk of template '{self.wanted.template}' stays on one node",
                hint="say which: -n NODE",
            )
        offering = (
            one
            for one in self.workers
            if disk_checks.offers(self.view, self.wanted, one)
        )
        return next(offering, self.workers[0])

    @cached_property
    def peer(self) -> Node | None:
        """The node that is to keep the second copy of a mirrored disk."""
        asked = self.request
        if not self.wanted.mirrored:
            if ":" in (asked.node or ""):
                raise BadInput(
                    f"a disk of template '{asked.disk_template}' has no second copy",
                    hint=f"-n {self.node.name}",
                )
            return None
        if self._second:
            return self.view.config.node(self._second)
        others = [one for one in self.keepers if one.uuid != self.node.uuid]
        if not others:
            raise WrongState(
                f"only node {self.node.name} of its group could have a copy: a "
                "mirrored disk needs two",
                hint="gnt-node list",
            )
        return others[0]

    @property
    def _second(self) -> str:
        """Name of the node that is asked to have the second copy; empty for any."""
        return (self.request.node or "").partition(":")[2]

    @cached_property
    def keepers(self) -> list[Node]:
        """The nodes that may keep a copy: those with room, by what they keep."""
        kept, nodes = self.view.config.holdings, self.workers
        fit = [node for node in nodes if self._fits(node)]
        return sorted(fit or nodes, key=lambda one: len(kept.get(one.uuid, ())))

    def _fits(self, node: Node) -> bool:
        try:
            room = disk_spec.rooms(self.view, [self.wanted], node)
            placement.check_rooms(self.view, "a disk", room)
            disk_checks.check_groups(self.view, self.wanted, node)
        except MoorageError:
            return False
        return True

    @cached_property
    def pair(self) -> Pair | None:
        """What joins the copies of a mirrored disk."""
        return pairs.wanted(self.view, self.wanted, self.node, self.peer)

    @cached_property
    def workers(self) -> Sequence[Node]:
        """The nodes that may make it; drained ones if there are no others."""
        config, asked = self.view.config, self.request
        if asked.node and self.wanted.mirrored and not self._second:
            group = config.group(self.node.group)
            return [node for node in online(config, group) if not node.drained]
        if asked.node:
            return [self.node, *([self.peer] if self.peer else [])]
        nodes = some_online(config, self._group())
        return config.hosts(nodes[0].group, drained=False) or nodes

    def _group(self) -> NodeGroup:
        """Return the group that was named, or the only one there is for its pool."""
        config, pool = self.view.config, self.wanted.pool
        if self.request.group:
            return config.group(self.request.group)
        connected = pools.groups_of(config, pool) if pool else []
        return connected[0] if len(connected) == 1 else only_group(config)

    @cached_property
    def disk(self) -> Disk:
        """The disk as it is made."""
        return disk_spec.new_disk(self.view, self.wanted, self.node, pair=self.pair)

    @cached_property
    def others(self) -> provided.Others:
        """The nodes that are to reach it besides the one that makes it."""
        return provided.Others(self.view, self.wanted, self.node)

    @cached_property
    def rooms(self) -> list[Claim]:
        """The room that it takes."""
        return list(disk_spec.rooms(self.view, [self.wanted], self.node, self.peer))


class _Makers(dict[tuple[str, str], str]):
    """The node that made the last disk, by node group and what makes it."""
