# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance add``: an instance with its disks, each of its own template."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from msgspec import field
from msgspec.structs import force_setattr, replace

from moorage import backend
from moorage.errors import BadInput, Exists, WrongState
from moorage.jobs import Lock, Operation, Question, Task, View, commit
from moorage.jobs.unread import Moot, Unsupported
from moorage.model import (
    DISKLESS,
    Change,
    Claim,
    Disk,
    Instance,
    Node,
    NodeGroup,
    hvparams,
    pair_of,
)
from moorage.ops import (
    copies,
    disk_spec,
    identity,
    nics,
    node_tasks,
    osparams,
    pairs,
    placement,
    policy,
    screens,
)
from moorage.ops.birth import bear_all
from moorage.ops.disk.attach import MOST
from moorage.ops.fleet import Newcomer
from moorage.ops.storage.units import Named
from moorage.storage.templates.ext import metadata
from moorage.storage.validation import check_tags
from moorage.units import Mib

_LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"(?=.{{1,253}}$)(?!(.*\.)?[0-9]+$){_LABEL}(\.{_LABEL})*")
"""A host name whose last label is no number: else it would be an address."""


class InstanceCreate(Operation, frozen=True, kw_only=True):
    """Make an instance.

    Attributes
    ----------
    disk_template
        The template of disks that name none of their own (``dev_type``).
    disks
        One description a disk, sizes in MiB.
    pnode, snode
        The node that it is to run on, and the one that keeps the second copies of its
        mirrored disks; without them the planner chooses.
    iallocator
        Who chooses; there is only ``hail``.
    group_name
        The group that is chosen from.
    no_install
        Leave the disks empty; without an OS they are.
    install_adopted
        Let the OS's scripts write although a disk was adopted, with what is on it.
    force_params
        Accept parameters of disks that their provider does not list.
    file_storage_dir
        For image files: a directory below the cluster's, relative.
    start
        Start it at the end.
    wait_for_sync
        Whether the job lasts until the copies of mirrored disks are the same.
    ignore_ipolicy
        Whether the policy of the node group does not count.
    ignore_capacity
        Whether it may take more memory and room than there is, and leave others
        without a place to restart.
    """

    op_id = "OP_INSTANCE_CREATE"
    plans = True

    instance_name: str
    mode: str = "create"
    disk_template: str | None = None
    disks: list[dict[str, Any]] = field(default_factory=list)
    nics: list[dict[str, Any]] = field(default_factory=list)
    pnode: str | None = None
    snode: str | None = None
    iallocator: str | None = None
    group_name: str | None = None
    os_type: str | None = None
    osparams: dict[str, Any] = field(default_factory=dict)
    no_install: bool = False
    install_adopted: bool = False
    force_params: bool = False
    start: bool = True
    hypervisor: str | None = None
    hvparams: dict[str, Any] = field(default_factory=dict)
    beparams: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    ignore_ipolicy: bool = False
    ignore_capacity: bool = False
    file_storage_dir: str | None = None
    file_driver: Annotated[
        str | None, Unsupported("image files are opened by QEMU itself", ("loop",))
    ] = None
    # Ganeti's clients send these; each asks for what is always or never done here.
    wait_for_sync: bool = True
    ip_check: Annotated[bool, Moot("nobody pings an address")] = True
    name_check: Annotated[bool, Moot("no name is resolved")] = True
    conflicts_check: Annotated[bool, Moot("no address is looked for in networks")] = (
        True
    )
    src_node: Annotated[str | None, Unsupported("mode 'create' reads no export")] = None
    src_path: Annotated[str | None, Unsupported("mode 'create' reads no export")] = None
    force_variant: Annotated[
        bool, Unsupported("an OS has the variants that its list names")
    ] = False
    opportunistic_locking: Annotated[bool, Moot("locks of nodes are shared")] = False

    def __post_init__(self) -> None:
        """Write the name in small letters, as host names are."""
        force_setattr(self, "instance_name", self.instance_name.lower())

    def wishes(self, view: View) -> list[disk_spec.DiskSpec]:
        """Return the disks that are wanted."""
        default = None if self.disk_template == DISKLESS else self.disk_template
        if self.disk_template == DISKLESS and self.disks:
            raise BadInput("a diskless instance has no disks", hint="leave --disk out")
        folder = self.file_storage_dir or ""
        return [
            replace(
                disk_spec.wish(view.config, given, default),
                folder=folder,
                force=self.force_params,
            )
            for given in self.disks
        ]

    def hosts(self, view: View) -> list[Node]:
        """Return the nodes that may be it: the one that was named, or all of groups."""
        config = view.config
        if self.pnode:
            return [config.node(one) for one in (self.pnode, self.snode) if one]
        if self.group_name:
            return placement.hosts(config, [config.group(self.group_name)])
        groups = config.named(NodeGroup)
        open_ones = [one for one in groups if one.alloc_policy != "unallocable"]
        return placement.hosts(config, open_ones)

    def nodes(self, view: View) -> tuple[Node, ...]:
        """Return the nodes that were named, or the best: primary, and secondary."""
        if self.pnode:
            return tuple(self.hosts(view))
        return view.once("nodes", lambda: self._chosen(view))

    def node(self, view: View) -> Node:
        """Return the node that it is to run on."""
        return self.nodes(view)[0]

    def peer(self, view: View) -> Node | None:
        """Return the node that keeps second copies; None if there are none."""
        return next(iter(self.nodes(view)[1:]), None)

    def _mirrors(self, view: View) -> bool:
        """Whether it has disks with second copies."""
        return any(pairs.is_mirrored(one.template) for one in self.wishes(view))

    def _chosen(self, view: View) -> tuple[Node, ...]:
        able = self._able(view)
        return placement.place(
            view,
            self._newcomer(view, able[0]),
            able,
            count=2 if self._mirrors(view) else 1,
            any_size=self.ignore_ipolicy,
            survival=not self.ignore_capacity,
        )

    def _newcomer(self, view: View, node: Node) -> Newcomer:
        """Return what is to be placed; devices are as large as `node` says."""
        full = node_tasks.beparams(view.config, self._instance(view, "", []))
        wishes, group = self.wishes(view), view.config.group(node.group)
        return Newcomer(
            self.instance_name,
            memory=int(full["maxmem"]),
            vcpus=int(full["vcpus"]),
            disks=tuple(_sized(view, wanted, node) for wanted in wishes),
            units=tuple(disk_spec.unit(view.config, one, group) for one in wishes),
            tags=self.tags,
            spindle_use=int(full.get("spindle_use", 1)),
        )

    def _able(self, view: View) -> list[Node]:
        """Return the nodes that answer and offer what it needs.

        Raises
        ------
        MoorageError
            Why the last one does not, when none does.
        """
        nobody = WrongState("no node takes new instances")
        able = placement.able(
            self.hosts(view), lambda node: self._check_node(view, node), nobody
        )
        wishes = self.wishes(view)
        offering = [
            node
            for node in able
            if all(disk_spec.offers(view, wanted, node) for wanted in wishes)
        ]
        able = offering or able
        # Disks are made for a group, so one of its nodes stands for all of them.
        one_each = {node.group: node for node in able}.values()
        groups = placement.able(
            one_each, lambda node: self._check_disks(view, node), nobody
        )
        fit = {node.group for node in groups}
        return [node for node in able if node.group in fit]

    def locks(self, view: View) -> Iterator[Lock]:
        """Hold the name; share the nodes that may be it."""
        yield Lock("instance", self.instance_name)
        for node in self.hosts(view):
            yield Lock("node", node.uuid, shared=True)
        yield from disk_spec.hold(self.wishes(view))

    def questions(self, view: View) -> Iterator[Question]:
        """Ask what the nodes and their groups offer."""
        hosts = self.hosts(view)
        for uuid in dict.fromkeys(node.group for node in hosts):
            for wanted in self.wishes(view):
                yield from disk_spec.ask(view.config, wanted, view.config.group(uuid))
        for node in hosts:
            yield placement.room_on(view.config, node)
            if self._installs():
                yield node_tasks.oses_on(node.uuid)

    def check(self, view: View) -> None:
        """Refuse what is taken, unknown, or out of reach."""
        self._check_words(view)
        wishes = self.wishes(view)
        if len(wishes) > MOST:
            raise BadInput(f"an instance has at most {MOST} disks, not {len(wishes)}")
        disk_spec.check_distinct(wishes)
        node = self.node(view)
        self._check_pair(view)
        if self.pnode:
            for one in self.nodes(view):
                self._check_node(view, one)
            self._check_disks(view, node, self.peer(view))
            if not self.ignore_capacity:
                newcomer = self._newcomer(view, node)
                placement.check_arrival(view, newcomer, node)
                # A pool that nodes share is none of a node's own room.
                what = f"instance {self.instance_name}"
                placement.check_room_for(view, what, node, self._made(view, node))
                self._check_peer_room(view)

    def _check_pair(self, view: View) -> None:
        """Raise unless a secondary node is named where one is needed."""
        mirrors = self._mirrors(view)
        if self.snode and not self.pnode:
            raise BadInput("a secondary node needs a primary one", hint="-n A:B")
        if self.snode and not mirrors:
            raise BadInput(
                f"no disk of instance {self.instance_name} has a second copy: a "
                "secondary node makes no sense",
                hint=f"-n {self.pnode}",
            )
        if mirrors and self.pnode and not self.snode:
            raise BadInput(
                "mirrored disks need a second node",
                hint=self._second_node(),
            )
        peer = self.peer(view)
        if peer:
            pairs.check_apart(self.node(view), peer)

    def _second_node(self) -> str:
        """Return what to type for mirrored disks with one node: a hint."""
        return f"-n {self.pnode}:OTHER, or leave -n out: the planner chooses"

    def _check_peer_room(self, view: View) -> None:
        peer, what = self.peer(view), f"instance {self.instance_name}"
        if peer:
            rooms = self._mirrored(view, peer)
            placement.check_room_for(view, what, peer, rooms)

    def _mirrored(self, view: View, peer: Node) -> tuple[tuple[Named, int], ...]:
        """Return what room second copies take."""
        wishes = self.wishes(view)
        made = [one for one in wishes if pairs.is_mirrored(one.template)]
        return tuple(disk_spec.room(view, wanted, peer) for wanted in made)

    def claims(self, view: View) -> Iterator[Claim]:
        """Claim the memory, and the room of disks that are made."""
        node, peer = self.node(view), self.peer(view)
        wanted = self._newcomer(view, node)
        yield Claim(
            node=node.uuid,
            instance=self.instance_name,
            memory=Mib(wanted.memory if self.start else 0),
            vcpus=wanted.vcpus,
            rooms=self._made(view, node),
            units=wanted.units,
            tags=self.tags,
            spindle_use=wanted.spindle_use,
            peer=peer.uuid if peer else "",
        )
        if peer:
            yield Claim(node=peer.uuid, rooms=self._mirrored(view, peer))
        yield from pairs.claims(map(pair_of, self._born(view)))

    def _born(self, view: View) -> list[Disk]:
        """Return its disks, each in the epoch of its first attach."""
        home, peer = self.node(view), self.peer(view)
        made = bear_all(view, self.wishes(view), home, peer, self.instance_name)
        return [_first_epoch(disk) for disk in made]

    def _made(self, view: View, node: Node) -> tuple[tuple[Named, int], ...]:
        """Return storage unit and size of the disks that are made."""
        made = [wanted for wanted in self.wishes(view) if not wanted.adopt]
        return tuple(disk_spec.room(view, wanted, node) for wanted in made)

    def _check_node(self, view: View, node: Node) -> None:
        """Raise unless a node takes instances, answers, and has the system."""
        if node.offline or node.drained or not node.vm_capable:
            raise WrongState(f"node {node.name} takes no new instances: {_why(node)}")
        view.answer(placement.room_on(view.config, node))
        if self._installs():
            osparams.check(view, node, str(self.os_type), self.osparams)

    def _check_policy(self, view: View, node: Node) -> None:
        """Raise where the policy forbids it; a disk's own size is known by now."""
        if self.ignore_ipolicy:
            return
        config = view.config
        disks = [_sized(view, wanted, node) for wanted in self.wishes(view)]
        instance = self._instance(view, node.uuid, [])
        sizes = policy.sizes_of(config, instance, (), disks)
        policy.check(config, config.group(node.group), self.instance_name, sizes)

    def _check_disks(self, view: View, node: Node, peer: Node | None = None) -> None:
        """Raise unless the disks can be made on a node, as its group allows."""
        for wanted in self.wishes(view):
            pair = pairs.wanted(view, wanted.template, node, peer) if peer else None
            disk_spec.check(view, wanted, node, pair)
        adopted = [wanted.adopt for wanted in self.wishes(view) if wanted.adopt]
        identity.check_apart(view, adopted, node)
        self._check_policy(view, node)

    def _check_words(self, view: View) -> None:
        if not _NAME.fullmatch(self.instance_name):
            raise BadInput(
                f"'{self.instance_name[:80]}' is not an instance name: labels of at "
                "most 63 letters, digits and dashes between dots, and not a number"
            )
        if view.config.knows(Instance, self.instance_name):
            raise Exists(f"instance {self.instance_name} exists already")
        if self.mode != "create":
            raise BadInput(f"instances are made in mode 'create', not '{self.mode}'")
        if self.pnode and self.iallocator:
            raise BadInput("a node and an iallocator exclude each other")
        placement.check_allocator(self.iallocator)
        if self.disk_template != DISKLESS and not self.disks:
            raise BadInput(
                "no disk was described",
                hint="--disk 0:size=10G, or -t diskless for an instance without",
            )
        enabled = view.config.cluster.enabled_hypervisors
        if self.hypervisor and self.hypervisor not in enabled:
            told = ", ".join(enabled)
            raise BadInput(f"hypervisor '{self.hypervisor}' is not enabled: {told} is")
        nics.check(view.config, self.nics)
        check_tags(self.tags)
        backend.check(self.beparams)
        hvparams.check(self.hypervisor or enabled[0], self.hvparams)
        screens.check(view.config, self.hypervisor or enabled[0], self.hvparams)

    def _installs(self) -> bool:
        spared = self._adopts() and not self.install_adopted
        wanted = bool(self.os_type) and not self.no_install and bool(self.disks)
        return wanted and not spared

    def _adopts(self) -> bool:
        return any(given.get("adopt") for given in self.disks)

    def warnings(self, view: View) -> Iterator[str]:
        """Tell what is left out, and which nodes could not take the instance over."""
        node = self.node(view)
        for wanted in self.wishes(view):
            yield from disk_spec.warnings(view, wanted, node)
        yield from nics.warnings(self.nics)
        installs = self.os_type and not self.no_install and not self.install_adopted
        if installs and self._adopts():
            yield (
                f"the scripts of OS {self.os_type} do not run, for a disk is adopted "
                "with its data; --install-adopted runs them"
            )
        images = any(wanted.kind.capabilities.images for wanted in self.wishes(view))
        if self.file_storage_dir and not images:
            yield "no disk is an image file: the file storage directory has no effect"
        instance = self._instance(view, node.uuid, [])
        given = node_tasks.hvparams(view.config, instance)
        yield from hvparams.warnings(instance.hypervisor, given)

    def tasks(self, view: View) -> Iterator[Task]:
        """Make the disks, install, start, and record it all at the end."""
        config, node = view.config, self.node(view)
        disks = self._born(view)
        instance = self._instance(view, node.uuid, disks)
        if self._installs():
            yield osparams.verify(view, instance, node)
        for disk in disks:
            yield from node_tasks.verify(config, disk, node)
        for wanted, disk in zip(self.wishes(view), disks, strict=True):
            if not wanted.adopt:
                yield from copies.create(config, disk, node)
            yield from copies.attach(config, disk, node)
            yield node_tasks.setinfo(config, disk, node, metadata(instance.name))
        yield from self.put_on(view, instance, disks, node)
        yield from self._done(view, instance, disks)

    def _done(
        self, view: View, instance: Instance, disks: list[Disk]
    ) -> Iterator[Task]:
        """Start it, or let go of its disks; record it, and wait for second copies.

        Who starts it need not wait: the guest runs while its disks are copied.
        """
        config, node = view.config, self.node(view)
        waits = [one for disk in disks for one in copies.wait(config, disk, node)]
        if self.start:
            yield node_tasks.start(config, instance, disks, node)
        else:
            yield from waits if self.wait_for_sync else ()
            for disk in disks:
                yield from copies.detach(config, disk, node)
        yield commit(f"record {instance.name}", Change((*disks, instance)), {})
        if self.start and self.wait_for_sync:
            yield from waits

    def put_on(
        self, view: View, instance: Instance, disks: list[Disk], node: Node
    ) -> Iterator[Task]:
        """Yield what puts data on the disks, which are attached on the node."""
        if self._installs():
            yield osparams.install(view, instance, disks, node)

    def _instance(self, view: View, node: str, disks: list[Disk]) -> Instance:
        cluster = view.config.cluster
        made = Instance(
            uuid=view.fresh(),
            name=self.instance_name,
            primary_node=node,
            os=self.os_type or "",
            hypervisor=self.hypervisor or cluster.enabled_hypervisors[0],
            hvparams=self.hvparams,
            beparams=backend.aliased(self.beparams),
            osparams=self.osparams,
            admin_state="up" if self.start else "down",
            nics=nics.new(view, self.nics),
            disks=tuple(disk.uuid for disk in disks),
            disks_active=self.start,
            ctime=view.now,
            mtime=view.now,
            tags=self.tags,
        )
        return screens.with_port(view.config, made)

    def result(self, view: View, results: Sequence[Any]) -> list[str]:
        """Return the nodes, as Ganeti does."""
        del results
        return [node.name for node in self.nodes(view)]


def _sized(view: View, wanted: disk_spec.DiskSpec, node: Node) -> tuple[str, int]:
    return wanted.template, disk_spec.born_size(view, wanted, node)


def _first_epoch(disk: Disk) -> Disk:
    """Return a disk that was born attached: that was its first attach."""
    return replace(disk, epoch=1)


def _why(node: Node) -> str:
    if node.offline:
        return "it is marked offline"
    return "it is drained" if node.drained else "it is not vm_capable"
