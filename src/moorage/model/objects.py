# SPDX-License-Identifier: BSD-2-Clause
"""What the cluster *is*: frozen objects with Ganeti's field names.

An object is never changed: :func:`successor` makes the next version of it. Sizes are
MiB, times are seconds since the epoch as floats, references are uuids.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from moorage.disk_templates import FACTS
from moorage.hypervisors import USUAL
from moorage.units import Mib

from .uidpool import STANDARD, UidPool

MOST_DISKS = 16
"""Disks that an instance can have, as in Ganeti."""
DISKLESS = "diskless"
"""What queries show as the template of an instance without disks."""
MIXED = "mixed"
"""What queries show as the template of an instance with disks of several templates."""


REUSE = "reuse_data"
"""The parameter by which Ganeti's clients say that a provider's volume is there."""
_YES = ("true", "yes", "on", "1")

LogicalId = tuple[str, ...]
"""Where a volume is, in its template's terms; every part as text, to be compared."""


def as_text(logical_id: Sequence[Any]) -> LogicalId:
    """Return an identity of a volume, to be compared."""
    return tuple(map(str, logical_id))


def reuses(params: Mapping[str, Any]) -> bool:
    """Whether parameters say that the volume is there; scripts see names in capitals.

    >>> reuses({"Reuse_Data": "True"}), reuses({"reuse_data": "False"})
    (True, False)
    """
    said = (value for name, value in params.items() if name.lower() == REUSE)
    return any(str(value).strip().lower() in _YES for value in said)


class Entity(Struct, frozen=True, kw_only=True):
    """What every object has: identity, version, times and tags.

    Attributes
    ----------
    uuid
        Identity; never reused.
    serial_no
        Version of the object; each change adds one, so a writer that read an older
        version is refused.
    ctime, mtime
        When it was made and last changed, in seconds.
    foreign
        What a file of Ganeti's that it came from says otherwise, by key: what an export
        wrote on the day of the import, and what the file had in its place; None for
        nothing. As long as the first is so, an export writes the second.
    """

    uuid: str
    serial_no: int = 1
    ctime: float = 0.0
    mtime: float = 0.0
    tags: tuple[str, ...] = ()
    foreign: dict[str, tuple[Any, Any]] | None = None


class Disk(Entity, frozen=True, kw_only=True):
    """A disk: a top-level object that outlives the instances it serves.

    Attributes
    ----------
    dev_type
        The disk template.
    logical_id
        Where the data is, in the template's own terms; born once. The last part of
        it names the volume.
    size
        Size promised to the guest, in MiB.
    mode
        ``rw`` or ``ro``.
    nodes
        The nodes that hold the data; empty when every node of its groups reaches it.
    params
        Parameters handed to the template or the provider.
    children
        The volumes that it is made of, on each of its nodes: a mirrored disk's data
        and metadata. They are no disks of their own, and have no names.
    group
        Uuid of the node group where it is used, or was last.
    last_node
        Uuid of the node that made it, or whose guest had it last: the first to be
        asked for a detached disk, for a provider may keep volumes on one node alone.
    epoch
        Rises with every attach and every forced move; steps that carry an older
        one are refused by the nodes.
    quarantine
        Why the disk must not be used, when something could not be proven safe.
    identity
        What names an adopted device on every node that sees it (its WWID or serial
        number), as it was when the disk was adopted; empty for a device that tells
        nothing, None for a volume that was not adopted.
    cname
        What storage scripts know the volume as, where it is not `name`: a volume keeps
        the name that it was made with. Empty for none.
    pool
        Uuid of the storage pool that it was made in, if it was: for life, and where it
        can be used. What the pool preset at that time is in `params`.
    adopted
        Whether the volume was there before the disk: nothing but an explicit remove
        destroys it. See :attr:`was_there`.
    unproven
        Whether nobody knows that the disk's volume is its own: it may be somebody
        else's of the same name, and is not removed until somebody says that it is not.
    by_uuid
        Whether its provider said that it knows the volume by :attr:`volume` alone.
    behind
        Uuid of the node whose copy of a mirrored disk may lack what was written last,
        as it was last seen; None if both copies had it.
    """

    dev_type: str
    logical_id: tuple[Any, ...]
    size: Mib
    mode: str = "rw"
    name: str | None = None
    nodes: tuple[str, ...] = ()
    params: dict[str, Any] = field(default_factory=dict)
    children: tuple["Disk", ...] = ()
    group: str | None = None
    last_node: str | None = None
    spindles: int | None = None
    epoch: int = 0
    quarantine: str | None = None
    identity: str | None = None
    cname: str | None = None
    pool: str | None = None
    behind: str | None = None
    adopted: bool = False
    unproven: bool = False
    by_uuid: bool = False

    @property
    def was_there(self) -> bool:
        """Whether the volume was adopted; by its parameters, in an old record."""
        return self.adopted or reuses(self.params)

    @property
    def volume(self) -> str:
        """The volume's name inside its template or provider."""
        return self.children[0].volume if self.children else str(self.logical_id[-1])

    @property
    def volumes(self) -> tuple[LogicalId, ...]:
        """The volumes that it is made of: its own, or those of a mirrored disk."""
        if self.children:
            return tuple(one for child in self.children for one in child.volumes)
        return (as_text(self.logical_id),)

    @property
    def label(self) -> str:
        """The name that a person gave it, or else the uuid."""
        return self.name or self.uuid

    @property
    def known_as(self) -> str:
        """What storage scripts know the volume as; empty for none."""
        return (self.name or "") if self.cname is None else self.cname

    @property
    def by_name(self) -> bool:
        """Whether its storage may know the volume by :attr:`known_as` alone."""
        facts = FACTS.get(self.dev_type)
        return facts is not None and facts.provided and not self.by_uuid

    @property
    def sole_names(self) -> set[str]:
        """What no other disk may be called whose storage may know it by name."""
        return {self.name or "", self.known_as} - {""} if self.by_name else set()


class Nic(Struct, frozen=True, kw_only=True):
    """A network card of an instance.

    Attributes
    ----------
    ip
        What scripts are told; in a network, nobody else has it.
    network
        Uuid of the network that it is in.
    nicparams
        Its own mode, link and VLAN, as far as it has some.
    """

    uuid: str
    mac: str
    ip: str | None = None
    name: str | None = None
    network: str | None = None
    nicparams: dict[str, Any] = field(default_factory=dict)


class Instance(Entity, frozen=True, kw_only=True):
    """A virtual machine, as it should be.

    Attributes
    ----------
    disks
        Uuids of the attached disks, in the order of their slots.
    disks_active
        Whether the disks are attached on the primary node.
    admin_state
        ``up``, ``down`` or ``offline``: what the operator wants.
    """

    name: str
    primary_node: str
    os: str = ""
    hypervisor: str = USUAL
    hvparams: dict[str, Any] = field(default_factory=dict)
    beparams: dict[str, Any] = field(default_factory=dict)
    osparams: dict[str, Any] = field(default_factory=dict)
    osparams_private: dict[str, Any] = field(default_factory=dict)
    admin_state: str = "down"
    admin_state_source: str = "admin"
    nics: tuple[Nic, ...] = ()
    disks: tuple[str, ...] = ()
    disks_active: bool = False
    network_port: int | None = None


class Node(Entity, frozen=True, kw_only=True):
    """A machine of the cluster.

    Attributes
    ----------
    primary_ip, port
        Where its agent listens.
    pins
        SHA-256 of the public key that it shows, in hex: two while it is given a new
        one. None for a node that was let in when no key was noted; it is given a new
        one, which is.
    master_certs
        Certificates, as PEM, of the keys with which it leads, or can take the lead:
        nodes take orders of these keys, and of no others.
    led_with
        Certificates of keys before these with which it led, the last ones: they open
        nothing, and tell whose lead it was.
    """

    name: str
    primary_ip: str
    secondary_ip: str
    group: str
    port: int = 1811
    master_candidate: bool = True
    offline: bool = False
    drained: bool = False
    master_capable: bool = True
    vm_capable: bool = True
    powered: bool = True
    ndparams: dict[str, Any] = field(default_factory=dict)
    pins: tuple[str, ...] = ()
    master_certs: tuple[str, ...] = ()
    led_with: tuple[str, ...] = ()

    @property
    def is_host(self) -> bool:
        """Whether it runs instances, and storage commands for them."""
        return self.vm_capable and not self.offline


class NodeGroup(Entity, frozen=True, kw_only=True):
    """Nodes that see the same storage and networks.

    Attributes
    ----------
    networks
        The networks that it is connected to, by uuid: mode, link and VLAN of their
        cards there.
    """

    name: str
    alloc_policy: str = "preferred"
    ndparams: dict[str, Any] = field(default_factory=dict)
    ipolicy: dict[str, Any] = field(default_factory=dict)
    diskparams: dict[str, dict[str, Any]] = field(default_factory=dict)
    networks: dict[str, dict[str, Any]] = field(default_factory=dict)


class Network(Entity, frozen=True, kw_only=True):
    """An IP network that cards of instances can be in.

    Attributes
    ----------
    network
        Its IPv4 addresses, as ``192.0.2.0/24``.
    gateway
        One of them.
    network6, gateway6
        Likewise of IPv6; they are told to scripts, and not given to cards.
    mac_prefix
        First three bytes of its cards' hardware addresses; None for the cluster's.
    reserved
        Addresses that no card gets, the lowest first.
    """

    name: str
    network: str
    gateway: str | None = None
    network6: str | None = None
    gateway6: str | None = None
    mac_prefix: str | None = None
    reserved: tuple[str, ...] = ()


class StoragePool(Entity, frozen=True, kw_only=True):
    """A place where disks can be: a template or a provider, with what is preset there.

    Attributes
    ----------
    template
        The disk template.
    provider
        The ExtStorage provider, of a template that has some.
    params
        Parameters of its disks, where they are given no others. They go to a disk when
        it is made; later changes are for disks to come.
    volume_name
        Pattern of its volumes' names; empty for the template's own.
    longest
        Characters that a volume's name may have.
    groups
        Uuids of the node groups that it is connected to: nowhere else are its disks
        used.
    """

    name: str
    template: str
    provider: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    volume_name: str = ""
    longest: int = 127
    groups: tuple[str, ...] = ()

    @property
    def driver(self) -> str:
        """Who drives it: the provider, or else the template."""
        return self.provider or self.template


MOST_LEADS = 100
"""Changes of lead that are on record, and that a node remembers: masters that take over
by themselves make many, and what is on no record any more accuses nobody."""


class Lead(Struct, frozen=True, kw_only=True):
    """From a term on, a node had the master.

    Attributes
    ----------
    node
        Its name.
    pins
        Of the keys with which it led.
    time
        When, in seconds; 0 for the first one that is known.
    """

    term: int
    node: str
    pins: tuple[str, ...] = ()
    time: float = 0.0


class Cluster(Entity, frozen=True, kw_only=True):
    """Settings of the whole cluster.

    Attributes
    ----------
    master_ip
        The master's address: it moves with the master if `master_netdev` says where it
        is set; else it is the primary one of the master's node.
    master_netdev, master_netmask
        The network device of the address that moves, and the bits of its mask.
    master_ip_active
        Whether the address that moves is to be up.
    gluster_storage_dir
        Where nodes mount Gluster volumes, each in a directory of its own.
    volume_group_name
        The volume group of disks that name none; empty for none.
    uid_pool
        The user-ids that guests run as.
    osparams_private_cluster
        OS parameters that are shown to nobody, by OS.
    os_hvp
        Hypervisor parameters of an OS's instances, by OS, then by hypervisor.
    hidden_os, blacklisted_os
        OS definitions that are not listed; and those that nothing new is made with.
    enabled_user_shutdown
        Whether a guest that powers itself off may stay off.
    watcher_pause
        Until when the watcher does nothing, in seconds; None for no pause.
    candidate_pool_size
        How many nodes are to be master candidates, the master's own included: each
        keeps a copy of the state, and can take the lead.
    former_masters
        Certificates, as PEM, of keys that led before a failover. A node tells who has
        one that another master leads, and nothing else.
    leads
        Who has led, the earliest first, since the first failover that was noted.
    max_running_jobs
        How many jobs work at once.
    job_retention
        For how many seconds archived jobs are kept.
    ssconf
        Whether nodes have Ganeti's ``ssconf`` files.
    ndparams
        Node parameters where neither a node nor its group has others.
    foreign_document
        As `foreign`, for what stands in a file of Ganeti's beside all objects.
    """

    cluster_name: str
    master_node: str
    master_ip: str = ""
    master_netdev: str = ""
    master_netmask: int = 0
    master_ip_active: bool = True
    candidate_pool_size: int = 3
    former_masters: tuple[str, ...] = ()
    leads: tuple[Lead, ...] = ()
    mac_prefix: str = "aa:00:00"
    file_storage_dir: str = ""
    shared_file_storage_dir: str = ""
    gluster_storage_dir: str = ""
    volume_group_name: str = ""
    enabled_hypervisors: tuple[str, ...] = (USUAL,)
    enabled_disk_templates: tuple[str, ...] = ()
    hvparams: dict[str, dict[str, Any]] = field(default_factory=dict)
    beparams: dict[str, dict[str, Any]] = field(default_factory=dict)
    diskparams: dict[str, dict[str, Any]] = field(default_factory=dict)
    nicparams: dict[str, dict[str, Any]] = field(default_factory=dict)
    osparams: dict[str, dict[str, Any]] = field(default_factory=dict)
    ipolicy: dict[str, Any] = field(default_factory=dict)
    default_iallocator: str = ""
    default_iallocator_params: dict[str, str] = field(default_factory=dict)
    candidate_certs: dict[str, str] = field(default_factory=dict)
    uid_pool: UidPool = STANDARD
    osparams_private_cluster: dict[str, dict[str, Any]] = field(default_factory=dict)
    os_hvp: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    hidden_os: tuple[str, ...] = ()
    blacklisted_os: tuple[str, ...] = ()
    enabled_user_shutdown: bool = False
    watcher_pause: float | None = None
    max_running_jobs: int = 20
    job_retention: float = 14 * 86400.0
    ssconf: bool = False
    ndparams: dict[str, Any] = field(default_factory=dict)
    foreign_document: dict[str, tuple[Any, Any]] | None = None


E = TypeVar("E", bound=Entity)


def successor(old: E, now: float, **changes: Any) -> E:  # noqa: ANN401
    """Return the next version of `old`: changed, one serial number higher."""
    return replace(old, serial_no=old.serial_no + 1, mtime=now, **changes)
