# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-disk add``: a disk that belongs to nobody."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import field
from msgspec.structs import replace

from moorage.errors import BadInput, MoorageError, WrongState
from moorage.jobs import Lock, Operation, Question, Task, View
from moorage.model import Claim, Disk, Node, NodeGroup, Pair
from moorage.ops.asking import node_tasks
from moorage.ops.asking.silence import check_online
from moorage.ops.disk import provided
from moorage.ops.planning import disk_checks, placement
from moorage.ops.volumes import copies, disk_spec, pairs, pools
from moorage.ops.volumes.disk_access import (
    check_within,
    online,
    only_group,
    some_online,
)
from moorage.ops.volumes.disk_names import check_disk_name
from moorage.ops.volumes.units import has_room
from moorage.storage import Reach
from moorage.storage.validation import check_tags


class DiskAdd(Operation, frozen=True, kw_only=True):
    """Make a disk, or adopt one, and attach it to nothing.

    Attributes
    ----------
    name
        One that no other disk has; without it the disk has its uuid alone.
    disk_template
        How it is stored; not needed with a provider or a pool.
    provider
        The ExtStorage provider of a disk of template ``ext``.
    access
        ``userspace`` or ``kernelspace``: how QEMU reaches it.
    mode
        ``rw``, or ``ro`` for a disk that no guest writes to.
    tags
        Words that it has from the beginning.
    size
        In MiB; not for an adopted device, whose node tells it.
    adopt
        A device or a volume that is there: it keeps its data, and nothing but an
        explicit remove destroys it.
    epoch
        That an adopted disk starts with, where its storage has seen others.
    pool
        The storage pool that it is made in: it says template and provider.
    spindles
        How many physical volumes it gets for itself, with exclusive storage.
    params
        Parameters of the template or the provider.
    node, group
        Where: a node for templates that stay on one, else a group; the only group
        when there is one.
    force_params
        Accept parameters that the provider does not list.
    ignore_capacity
        Whether it may be larger than the room that its storage has.
    """

    op_id = "OP_DISK_ADD"
    plans = True

    name: str | None = None
    disk_template: str | None = None
    pool: str | None = None
    size: int | None = None
    provider: str | None = None
    access: str | None = None
    adopt: str | None = None
    epoch: int = 0
    mode: str = "rw"
    spindles: int | None = None
    params: dict[str, Any] = field(default_factory=dict)
    node: str | None = None
    group: str | None = None
    force_params: bool = False
    ignore_capacity: bool = False
    tags: tuple[str, ...] = ()

    def wish(self, view: View) -> disk_spec.DiskSpec:
        """Return the disk that is wanted."""
        if self.name:
            check_disk_name(self.name)
        names = ("pool", "size", "mode", "name", "adopt", "epoch", "spindles")
        wanted = disk_spec.specified(
            view.config,
            {name: getattr(self, name) for name in names},
            template=self.disk_template,
            params=disk_spec.named_params(
                self.params, provider=self.provider, access=self.access
            ),
        )
        return replace(wanted, force=self.force_params, tags=check_tags(self.tags))

    def where(self, view: View) -> Node:
        """Return the node that makes the disk."""
        config = view.config
        if self.node:
            node = config.node(self.node.partition(":")[0])
            check_within(config, node, self.group)
            return node
        wanted = self.wish(view)
        if self._mirrored(view):
            return self._keepers(view)[0]
        if wanted.kind.capabilities.reach is not Reach.GROUP:
            raise BadInput(
                f"a disk of template '{wanted.template}' stays on one node",
                hint="say which: -n NODE",
            )
        nodes = self._workers(view)
        offering = (one for one in nodes if disk_checks.offers(view, wanted, one))
        return next(offering, nodes[0])

    def peer(self, view: View) -> Node | None:
        """Return the node that is to keep the second copy of a mirrored disk."""
        if not self._mirrored(view):
            if ":" in (self.node or ""):
                raise BadInput(
                    f"a disk of template '{self.disk_template}' has no second copy",
                    hint=f"-n {self.where(view).name}",
                )
            return None
        other = (self.node or "").partition(":")[2]
        if other:
            return view.config.node(other)
        first = self.where(view)
        others = [one for one in self._keepers(view) if one.uuid != first.uuid]
        if not others:
            raise WrongState(
                f"only node {first.name} of its group could have a copy: a mirrored "
                "disk needs two",
                hint="gnt-node list",
            )
        return others[0]

    def _mirrored(self, view: View) -> bool:
        return pairs.is_mirrored(self.wish(view).template)

    def _keepers(self, view: View) -> list[Node]:
        """Return the nodes that may keep a copy: those with room, by what they keep."""
        kept, nodes = view.config.holdings, self._workers(view)
        fit = [node for node in nodes if self._fits(view, node)]
        return sorted(fit or nodes, key=lambda one: len(kept.get(one.uuid, ())))

    def _fits(self, view: View, node: Node) -> bool:
        try:
            room = disk_spec.rooms(view, [self.wish(view)], node)
            placement.check_rooms(view, "a disk", room)
            disk_checks.check_groups(view, self.wish(view), node)
        except MoorageError:
            return False
        return True

    def _pair(self, view: View) -> Pair | None:
        template, peer = self.wish(view).template, self.peer(view)
        return pairs.wanted(view, template, self.where(view), peer)

    def _workers(self, view: View) -> list[Node]:
        """Return the nodes that may make it; drained ones if there are no others."""
        config = view.config
        if self.node and ":" not in self.node and self._mirrored(view):
            group = config.group(self.where(view).group)
            return [node for node in online(config, group) if not node.drained]
        if self.node:
            peer = self.peer(view)
            return [self.where(view), *([peer] if peer else [])]
        group = self._group(view)
        nodes = some_online(config, group)
        return [node for node in nodes if not node.drained] or nodes

    def _group(self, view: View) -> NodeGroup:
        """Return the group that was named, or the only one there is for its pool."""
        config, pool = view.config, self.wish(view).pool
        if self.group:
            return config.group(self.group)
        connected = pools.groups_of(config, pool) if pool else []
        return connected[0] if len(connected) == 1 else only_group(config)

    def locks(self, view: View) -> Iterator[Lock]:
        """Share the nodes that may do it; hold its name, and an adopted device."""
        self.where(view)
        for node in self._workers(view):
            yield Lock("node", node.uuid, shared=True)
        yield from disk_spec.hold([self.wish(view)])

    def questions(self, view: View) -> Iterator[Question]:
        """Ask what the group's nodes offer."""
        config, wanted, node = view.config, self.wish(view), self.where(view)
        if self.node and not wanted.adopts:
            yield from provided.ask(view, wanted, node)
        else:
            yield from disk_spec.ask(config, wanted, config.group(node.group))
        if has_room(wanted.template):
            yield from placement.ask_room(config, self._workers(view))

    def likely(self, view: View) -> "DiskAdd":
        """Return the same request for the node that took the last one like it.

        For any, if there was none yet; itself, where more than one node is needed.
        """
        wanted = None if self.node else self.wish(view)
        if wanted is None or wanted.adopts or self._mirrored(view):
            return self
        if wanted.kind.capabilities.reach is not Reach.GROUP:
            return self
        nodes = self._workers(view)
        last = _makers(view).get((nodes[0].group, wanted.driver))
        found = next((node for node in nodes if node.uuid == last), nodes[0])
        return replace(self, node=found.name)

    def check(self, view: View) -> None:
        """Refuse what the group cannot use."""
        node, peer = self.where(view), self.peer(view)
        disk_checks.check(view, self.wish(view), node, self._pair(view))
        for one in filter(None, (node, peer)):
            check_online(one)
        if not self.ignore_capacity:
            what = f"disk {self.name or 'without a name'}"
            placement.check_rooms(view, what, self._rooms(view))

    def _rooms(self, view: View) -> Iterator[Claim]:
        wishes = [self.wish(view)]
        return disk_spec.rooms(view, wishes, self.where(view), self.peer(view))

    def warnings(self, view: View) -> Iterator[str]:
        """Say which nodes of the group will not reach it."""
        yield from provided.warnings(view, self.wish(view), self.where(view))

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim its room."""
        yield from self._rooms(view)
        yield from pairs.claims([self._pair(view)])

    def tasks(self, view: View) -> Iterator[Task]:
        """Make the volume, look whether it is there, then record the disk.

        As in Ganeti it is attached once: a provider may say yes and make nothing.
        """
        node = self.where(view)
        _makers(view)[node.group, self.wish(view).driver] = node.uuid
        disk = disk_spec.bear(view, self.wish(view), node, pair=self._pair(view))
        yield from node_tasks.verify(view.config, disk, node)
        yield from copies.create(view.config, disk, node)
        yield from copies.attach(view.config, disk, node)
        yield from self.put_on(view, disk, node)
        yield node_tasks.setinfo(view.config, disk, node)
        yield from copies.detach(view.config, disk, node)
        yield view.record(f"record disk {disk.label}", disk)

    def put_on(self, _view: View, _disk: Disk, _node: Node) -> Iterator[Task]:
        """Yield what puts data on the disk, which is attached on the node."""
        return iter(())

    def result(self, _view: View, results: Sequence[Any]) -> str:
        """Return the uuid."""
        return str(results[-1][0])


def _makers(view: View) -> dict[tuple[str, str], str]:
    """Return the node that made the last disk, by node group and what makes it."""
    made: dict[tuple[str, str], str] = view.kept.setdefault("makers of disks", {})
    return made
