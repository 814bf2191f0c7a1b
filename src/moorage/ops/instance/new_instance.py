# SPDX-License-Identifier: BSD-2-Clause
"""An instance that is to be made: what is wanted, and the nodes that it goes to."""

from dataclasses import replace as with_fields
from typing import Annotated, Any

from msgspec import field
from msgspec.structs import force_setattr, replace

from moorage import backend
from moorage.errors import BadInput, WrongState
from moorage.jobs import Operation, View
from moorage.jobs.unread import Moot, Unsupported
from moorage.model import DISKLESS, Disk, Instance, Nic, Node, NodeGroup
from moorage.model.objects import reuses
from moorage.ops.guests import cabling, nics, osparams, screens
from moorage.ops.planning import disk_checks, links, placement, policy
from moorage.ops.planning.fleet import Newcomer, on_record
from moorage.ops.volumes import disk_spec, identity, pairs


class NewInstance(Operation, frozen=True, kw_only=True):
    """The making of an instance: what is asked for, and where it fits.

    Attributes
    ----------
    instance_name
        A name of a host that no other instance has.
    mode
        ``create``; ``import`` is another operation.
    os_type
        The OS definition, with variant: ``debian+minimal``.
    osparams
        OS parameters that it gets and keeps.
    hypervisor
        ``kvm``; the first that is enabled without it.
    hvparams
        Parameters of the hypervisor that differ from the cluster's.
    beparams
        Memory (``memory``, in MiB), processors (``vcpus``) and the like that differ
        from the cluster's.
    tags
        Tags that it has from the beginning.
    disk_template
        The template of disks that name none of their own (``dev_type``).
    disks
        One description a disk, sizes in MiB.
    pnode
        The node that it is to run on; the planner chooses without it.
    snode
        The node that keeps the second copies of its mirrored disks.
    iallocator
        Who chooses; there is only ``hail``.
    nics
        Its network cards; None for one, where the cluster's defaults connect it.
    conflicts_check
        Whether an address of a card in no network must not be one of a network's.
    group_name
        The node group that a node is chosen from.
    osparams_private
        OS parameters that are shown to nobody.
    osparams_secret
        OS parameters for this installation, which nobody keeps.
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

    plans = True

    instance_name: str
    mode: str = "create"
    disk_template: str | None = None
    disks: list[dict[str, Any]] = field(default_factory=list)
    nics: list[dict[str, Any]] | None = None
    pnode: str | None = None
    snode: str | None = None
    iallocator: str | None = None
    group_name: str | None = None
    os_type: str | None = None
    osparams: dict[str, Any] = field(default_factory=dict)
    osparams_private: dict[str, Any] = field(default_factory=dict)
    osparams_secret: dict[str, Any] = field(default_factory=dict)
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
    conflicts_check: bool = True
    src_node: Annotated[str | None, Unsupported("mode 'create' reads no export")] = None
    src_path: Annotated[str | None, Unsupported("mode 'create' reads no export")] = None
    force_variant: Annotated[
        bool, Unsupported("an OS has the variants that its list names")
    ] = False
    opportunistic_locking: Annotated[bool, Moot("locks of nodes are shared")] = False

    def __post_init__(self) -> None:
        """Write the name in small letters, as host names are."""
        force_setattr(self, "instance_name", self.instance_name.lower())

    @property
    def _os_parameters(self) -> dict[str, Any]:
        """All that the OS's scripts get of its own."""
        return self.osparams | self.osparams_private | self.osparams_secret

    def with_secrets(self, instance: Instance) -> Instance:
        """Return an instance as scripts are to see it: with what nobody keeps."""
        private = instance.osparams_private | self.osparams_secret
        return replace(instance, osparams_private=private)

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

    def asks_now(self, view: View) -> frozenset[str] | None:
        """Only of nodes that were named; a volume to adopt may be in use anywhere."""
        if self.adopts():
            return None
        return frozenset(one.uuid for one in self.hosts(view) if self.pnode)

    def settled(self, view: View) -> "NewInstance":
        """Return the same request, with its nodes named.

        That they have the memory and the room was asked for: `ignore_capacity` only
        let the planner choose where others lose their place to restart.
        """
        if self.pnode:
            return self
        node, peer = self.node(view), self.peer(view)
        return replace(
            self,
            pnode=node.name,
            snode=peer.name if peer else None,
            iallocator=None,
            ignore_capacity=False,
        )

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

    def mirrors(self, view: View) -> bool:
        """Whether it has disks with second copies."""
        return any(pairs.is_mirrored(one.template) for one in self.wishes(view))

    def _chosen(self, view: View) -> tuple[Node, ...]:
        able = self._able(view)
        return placement.place(
            view,
            self.newcomer(view, able[0]),
            able,
            count=2 if self.mirrors(view) else 1,
            any_size=self.ignore_ipolicy,
            survival=not self.ignore_capacity,
        )

    def newcomer(self, view: View, node: Node) -> Newcomer:
        """Return what is to be placed; devices are as large as `node` says."""
        wishes, group = self.wishes(view), view.config.group(node.group)
        return with_fields(
            on_record(view.config, self.instance_on(view, "", [])),
            disks=tuple(_sized(view, wanted, node) for wanted in wishes),
            units=tuple(disk_spec.unit(view.config, one, group) for one in wishes),
            spindles=tuple(one.spindles for one in wishes),
        )

    def _able(self, view: View) -> list[Node]:
        """Return the nodes that offer what it needs; else raise the last reason."""
        nobody = WrongState("no node takes new instances")
        able = placement.able(
            self.hosts(view), lambda node: self.check_node(view, node), nobody
        )
        wishes = self.wishes(view)
        offering = [
            node
            for node in able
            if all(disk_checks.offers(view, wanted, node) for wanted in wishes)
        ]
        able = offering or able
        # Disks are made for a group, so one of its nodes stands for all of them.
        one_each = {node.group: node for node in able}.values()
        groups = placement.able(
            one_each, lambda node: self.check_disks(view, node), nobody
        )
        fit = {node.group for node in groups}
        return [node for node in able if node.group in fit]

    def born(self, view: View) -> list[Disk]:
        """Return its disks; that they are made attached is their first epoch."""
        home, peer = self.node(view), self.peer(view)
        name, wishes = self.instance_name, self.wishes(view)
        made = disk_spec.bear_all(view, wishes, home, peer, name)
        return [replace(disk, epoch=max(disk.epoch, 1)) for disk in made]

    def instance_on(self, view: View, node: str, disks: list[Disk]) -> Instance:
        """Return the instance, on the node of a uuid, with disks."""
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
            osparams_private=self.osparams_private,
            admin_state="up" if self.start else "down",
            nics=self.cards(view),
            disks=tuple(disk.uuid for disk in disks),
            disks_active=self.start,
            ctime=view.now,
            mtime=view.now,
            tags=self.tags,
        )
        return screens.with_port(view.config, made)

    def cards_asked(self, view: View) -> list[dict[str, Any]]:
        """Return its network cards as they are asked for."""
        return cabling.default_cards(view.config) if self.nics is None else self.nics

    def cards(self, view: View) -> tuple[Nic, ...]:
        """Return its network cards, with addresses that nobody has."""
        making = nics.Making(view, self.instance_name, self.conflicts_check)
        asked = self.cards_asked(view)
        return view.once("nics", lambda: nics.made(making, asked))

    def check_node(self, view: View, node: Node) -> None:
        """Raise unless a node takes instances, answers, and has the system."""
        if not placement.takes(node):
            raise WrongState(f"node {node.name} takes no new instances: {_why(node)}")
        placement.check_told(view, node)
        links.check(view, node, self.cards(view))
        if self.needs_os():
            osparams.check(view, node, str(self.os_type), self._os_parameters)

    def _check_policy(self, view: View, node: Node) -> None:
        """Raise where the policy forbids it; a disk's own size is known by now."""
        if self.ignore_ipolicy:
            return
        config = view.config
        disks = [_sized(view, wanted, node) for wanted in self.wishes(view)]
        instance = self.instance_on(view, node.uuid, [])
        sizes = policy.sizes_of(config, instance, (), disks)
        policy.check(config, config.group(node.group), self.instance_name, sizes)

    def check_disks(self, view: View, node: Node, peer: Node | None = None) -> None:
        """Raise unless the disks can be made on a node, as its group allows."""
        for wanted in self.wishes(view):
            pair = pairs.wanted(view, wanted.template, node, peer) if peer else None
            disk_checks.check(view, wanted, node, pair)
        adopted = [one.adopt for one in self.wishes(view) if one.at_path and one.adopt]
        identity.check_apart(view, adopted, node)
        self._check_policy(view, node)

    def needs_os(self) -> bool:
        """Whether its nodes must have its OS: who names one means one that is there.

        So it is where nothing is installed, too: the name is kept for later.
        """
        return bool(self.os_type)

    def installs(self) -> bool:
        """Whether the OS's scripts write to the disks."""
        spared = self.adopts() and not self.install_adopted
        wanted = bool(self.os_type) and not self.no_install and bool(self.disks)
        return wanted and not spared

    def adopts(self) -> bool:
        """Whether a disk is a volume that is there already."""
        return any(given.get("adopt") or reuses(given) for given in self.disks)


def _sized(view: View, wanted: disk_spec.DiskSpec, node: Node) -> tuple[str, int]:
    return wanted.template, disk_spec.born_size(view, wanted, node)


def _why(node: Node) -> str:
    if node.offline:
        return "it is marked offline"
    return "it is drained" if node.drained else "it is not vm_capable"
