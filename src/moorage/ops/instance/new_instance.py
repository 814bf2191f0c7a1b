# SPDX-License-Identifier: BSD-2-Clause
"""An instance that is to be made: what is wanted, and the nodes that it goes to."""

from dataclasses import replace as with_fields
from functools import cached_property
from typing import Annotated, Any

from msgspec import field
from msgspec.structs import force_setattr, replace

from moorage import backend
from moorage.errors import BadInput, WrongState
from moorage.jobs import Case, View, rights
from moorage.jobs.unread import Moot, Unsupported
from moorage.model import DISKLESS, Disk, Instance, Nic, Node, NodeGroup
from moorage.model.objects import reuses
from moorage.ops.guests import cabling, nics, osparams, screens
from moorage.ops.planning import (
    advice,
    cpu_models,
    disk_checks,
    links,
    message,
    placement,
    policy,
)
from moorage.ops.planning.allocators import Allocator, Chooser
from moorage.ops.planning.fleet import Newcomer, on_record
from moorage.ops.volumes import disk_spec, disk_words, identity, pairs


class InstanceRequest(Chooser, frozen=True, kw_only=True):
    """The making of an instance: what is asked for.

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

    instance_name: str
    mode: str = "create"
    disk_template: str | None = None
    disks: Annotated[list[dict[str, Any]], rights.DISKS] = field(default_factory=list)
    nics: list[dict[str, Any]] | None = None
    pnode: str | None = None
    snode: str | None = None
    iallocator: Allocator = None
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
    hvparams: Annotated[dict[str, Any], rights.HYPERVISOR] = field(default_factory=dict)
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

    @cached_property
    def words(self) -> list[disk_words.DiskWords]:
        """What describes each of its disks."""
        if self.disk_template == DISKLESS and self.disks:
            raise BadInput("a diskless instance has no disks", hint="leave --disk out")
        default = None if self.disk_template == DISKLESS else self.disk_template
        own = {"folder": self.file_storage_dir or "", "force": self.force_params}
        return [disk_words.mixed(given, default, own) for given in self.disks]

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

    def case(self, view: View) -> "NewInstance":
        """Return what it comes to on a view."""
        return view.once(NewInstance, self)

    def chooses(self, _view: View) -> bool:
        """Whether nobody named its node."""
        return self.pnode is None

    def allocator_request(self, view: View) -> dict[str, Any]:
        """Return what an allocator is asked."""
        case = self.case(view)
        return message.allocate(
            view,
            case.described,
            case.newcomer(case.able[0]),
            case.able,
            count=2 if case.mirrors else 1,
            group=self.group_name,
        )


class NewInstance(Case["InstanceRequest"]):
    """An instance that is to be made, and the nodes that it goes to."""

    @cached_property
    def wishes(self) -> list[disk_words.DiskSpec]:
        """The disks that are wanted."""
        return [one.read(self.view.config) for one in self.request.words]

    @cached_property
    def hosts(self) -> list[Node]:
        """The nodes that may be it: the one that was named, or all of groups."""
        config, asked = self.view.config, self.request
        if asked.pnode:
            return [config.node(one) for one in (asked.pnode, asked.snode) if one]
        if asked.group_name:
            return placement.hosts(config, [config.group(asked.group_name)])
        groups = config.named(NodeGroup)
        open_ones = [one for one in groups if one.alloc_policy != "unallocable"]
        return placement.hosts(config, open_ones)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that were named, or the best: primary, and secondary."""
        if self.request.pnode:
            return tuple(self.hosts)
        view, able, count = self.view, self.able, 2 if self.mirrors else 1
        named = tuple[Node, ...]()
        if who := self.request.allocator(view):
            what = f"instance {self.request.instance_name}"
            named = advice.nodes(view, who, what, able, count)
        return placement.place(
            view,
            self.newcomer(able[0]),
            able,
            count=count,
            any_size=self.request.ignore_ipolicy,
            survival=not self.request.ignore_capacity,
            named=named,
        )

    @property
    def node(self) -> Node:
        """The node that it is to run on."""
        return self.nodes[0]

    @property
    def peer(self) -> Node | None:
        """The node that keeps second copies; None if there are none."""
        return next(iter(self.nodes[1:]), None)

    @cached_property
    def mirrors(self) -> bool:
        """Whether it has disks with second copies."""
        return any(one.mirrored for one in self.wishes)

    def newcomer(self, node: Node) -> Newcomer:
        """Return what is to be placed; devices are as large as `node` says."""
        config, wishes = self.view.config, self.wishes
        group = config.group(node.group)
        return with_fields(
            on_record(config, self.described),
            disks=tuple(_sized(self.view, wanted, node) for wanted in wishes),
            units=tuple(disk_spec.unit(config, one, group) for one in wishes),
            spindles=tuple(one.spindles for one in wishes),
        )

    @cached_property
    def able(self) -> list[Node]:
        """The nodes that offer what it needs; else the last reason is raised."""
        nobody = WrongState("no node takes new instances")
        able = placement.able(self.hosts, self.check_node, nobody)
        offering = [
            node
            for node in able
            if all(disk_checks.offers(self.view, one, node) for one in self.wishes)
        ]
        able = offering or able
        # Disks are made for a group, so one of its nodes stands for all of them.
        one_each = {node.group: node for node in able}.values()
        groups = placement.able(one_each, self.check_disks, nobody)
        fit = {node.group for node in groups}
        return [node for node in able if node.group in fit]

    @cached_property
    def disks(self) -> list[Disk]:
        """Its disks; that they are made attached is their first epoch."""
        name = self.request.instance_name
        made = disk_spec.bear_all(self.view, self.wishes, self.node, self.peer, name)
        return [replace(disk, epoch=max(disk.epoch, 1)) for disk in made]

    @cached_property
    def described(self) -> Instance:
        """The instance, on no node yet, and without disks."""
        asked, view = self.request, self.view
        made = Instance(
            uuid=view.fresh(),
            name=asked.instance_name,
            primary_node="",
            os=asked.os_type or "",
            hypervisor=asked.hypervisor or view.config.cluster.enabled_hypervisors[0],
            hvparams=asked.hvparams,
            beparams=backend.aliased(asked.beparams),
            osparams=asked.osparams,
            osparams_private=asked.osparams_private,
            admin_state="up" if asked.start else "down",
            nics=self.cards,
            disks_active=asked.start,
            ctime=view.now,
            mtime=view.now,
            tags=asked.tags,
        )
        return screens.with_port(view.config, made)

    @property
    def at_home(self) -> Instance:
        """The instance on its node, without disks."""
        return replace(self.described, primary_node=self.node.uuid)

    @cached_property
    def instance(self) -> Instance:
        """The instance on its node, with its disks."""
        return replace(self.at_home, disks=tuple(disk.uuid for disk in self.disks))

    @property
    def with_secrets(self) -> Instance:
        """The instance as scripts are to see it: with what nobody keeps."""
        private = self.instance.osparams_private | self.request.osparams_secret
        return replace(self.instance, osparams_private=private)

    @cached_property
    def cards_asked(self) -> list[dict[str, Any]]:
        """Its network cards as they are asked for."""
        asked = self.request.nics
        return cabling.default_cards(self.view.config) if asked is None else asked

    @cached_property
    def cards(self) -> tuple[Nic, ...]:
        """Its network cards, with addresses that nobody has."""
        asked = self.request
        making = nics.Making(self.view, asked.instance_name, asked.conflicts_check)
        return nics.made(making, self.cards_asked)

    @property
    def os_parameters(self) -> dict[str, Any]:
        """All that the OS's scripts get of its own."""
        asked = self.request
        return asked.osparams | asked.osparams_private | asked.osparams_secret

    def check_node(self, node: Node) -> None:
        """Raise unless a node takes instances, answers, and has the system."""
        view, asked = self.view, self.request
        if not placement.takes(node):
            raise WrongState(f"node {node.name} takes no new instances: {_why(node)}")
        placement.check_told(view, node)
        links.check(view, node, self.cards)
        cpu_models.check_start(view, self.described, node)
        if asked.needs_os():
            osparams.check(view, node, str(asked.os_type), self.os_parameters)

    def check_disks(self, node: Node, peer: Node | None = None) -> None:
        """Raise unless the disks can be made on a node, as its group allows."""
        view = self.view
        for wanted in self.wishes:
            pair = pairs.wanted(view, wanted, node, peer) if peer else None
            disk_checks.check(view, wanted, node, pair)
        adopted = [one.adopt for one in self.wishes if one.at_path and one.adopt]
        identity.check_apart(view, adopted, node)
        self._check_policy(node)

    def _check_policy(self, node: Node) -> None:
        """Raise where the policy forbids it; a disk's own size is known by now."""
        if self.request.ignore_ipolicy:
            return
        config, name = self.view.config, self.request.instance_name
        disks = [_sized(self.view, wanted, node) for wanted in self.wishes]
        instance = replace(self.described, primary_node=node.uuid)
        sizes = policy.sizes_of(config, instance, (), disks)
        policy.check(config, config.group(node.group), name, sizes)


def _sized(view: View, wanted: disk_words.DiskSpec, node: Node) -> tuple[str, int]:
    return wanted.template, disk_spec.born_size(view, wanted, node)


def _why(node: Node) -> str:
    if node.offline:
        return "it is marked offline"
    return "it is drained" if node.drained else "it is not vm_capable"
