# SPDX-License-Identifier: BSD-2-Clause
"""What a node says of itself: measured, never stored, never the truth.

The configuration says what should be; these records say what one node's agent saw when
it was asked. Sizes are MiB.
"""

from typing import Any

from msgspec import Struct, field

from moorage.units import Mib

KVM_NODE_MEMORY = Mib(4096)
"""What Ganeti's planner takes a KVM node to use itself."""

UP_TO_DATE = "UpToDate"
"""The state of a copy that has all that was written."""
_TALKING = frozenset({"Connected", "VerifyS", "VerifyT", "Ahead", "Behind"})
_COPYING = ("Sync", "PausedSync", "StartingSync", "WFBitMap", "WFSyncUUID")

OS_VARIANTS_SINCE, OS_PARAMETERS_SINCE = 15, 20
"""Versions of the interface of OS definitions, and what came with them."""


class Provider(Struct, frozen=True, kw_only=True):
    """An ExtStorage provider as one node has it.

    Attributes
    ----------
    name
        Name of the directory.
    path
        The directory.
    optional
        The optional scripts that are there.
    parameters
        Description by name of each parameter.
    problem
        Why it is not valid; empty when it is.
    places
        The parameters that name directories, which the node opens for the scripts.
    by_uuid
        Whether it says that it knows volumes by ``VOL_NAME`` alone. Of another one
        nobody knows that it does not go by the names of disks (``VOL_CNAME``).
    """

    name: str
    path: str
    optional: tuple[str, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    places: tuple[str, ...] = ()
    by_uuid: bool = False

    @property
    def valid(self) -> bool:
        """Whether the node can use it."""
        return not self.problem


class Os(Struct, frozen=True, kw_only=True):
    """An operating system definition as one node has it.

    Attributes
    ----------
    api
        The highest version of the interface that it and the node know.
    """

    name: str
    path: str
    api: int = 20
    variants: tuple[str, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def valid(self) -> bool:
        """Whether the node can use it."""
        return not self.problem

    @property
    def verifies(self) -> bool:
        """Whether it names its parameters and verifies them."""
        return self.api >= OS_PARAMETERS_SINCE


class Place(Struct, frozen=True, kw_only=True):
    """Where a node is to look for a storage unit.

    Attributes
    ----------
    settings
        The fields of the cluster that the template needs, as pairs of name and value.
    params
        The parameters that say where its disks are, as pairs of name and value.
    pool
        Name of the storage pool, where that is a room of its own in its provider's
        storage; else empty.
    """

    template: str
    settings: tuple[tuple[str, str], ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    pool: str = ""


class Unit(Struct, frozen=True, kw_only=True):
    """A storage unit: what one node has of a template or pool.

    Attributes
    ----------
    total, free
        None where the storage cannot tell, as with providers: unknown is not 0.
    spindles
        How many physical volumes a volume group has; None where nobody asked, as nodes
        without exclusive storage are not.
    empty
        The MiB of each of them that no volume is on, by name.
    """

    template: str
    key: str
    total: Mib | None = None
    free: Mib | None = None
    spindles: int | None = None
    empty: tuple[Mib, ...] = ()

    @property
    def name(self) -> tuple[str, str]:
        """What tells it apart on its node: type and key."""
        return self.template, self.key


class Volume(Struct, frozen=True, kw_only=True):
    """A volume that a storage tells of, whoever made it.

    Attributes
    ----------
    logical_id
        Where it is, as the record of a disk would say.
    size
        In whole MiB, rounded up; None where the storage does not tell.
    note
        What else the storage has to say about it.
    origin
        Name of the volume that it cannot be read without; empty for none.
    """

    logical_id: tuple[Any, ...]
    size: Mib | None = None
    note: str = ""
    origin: str = ""


class Need(Struct, frozen=True, kw_only=True):
    """One thing that a node must have for the disks of a place.

    Attributes
    ----------
    kind
        ``program``, ``module`` (of the kernel), ``directory``, ``volume group`` …
    problem
        Why it is of no use there, in a sentence; empty when all is well.
    """

    kind: str
    name: str
    problem: str = ""


class Examined(Struct, frozen=True, kw_only=True):
    """What a node has of a place where disks can be.

    Attributes
    ----------
    units
        With their room; none where something that it needs is missing.
    """

    place: Place
    needs: tuple[Need, ...] = ()
    units: tuple[Unit, ...] = ()

    @property
    def problem(self) -> str:
        """Why no disk can be used there; empty when one can."""
        return next((need.problem for need in self.needs if need.problem), "")


class Device(Struct, frozen=True, kw_only=True):
    """What one node has at a path.

    Attributes
    ----------
    kind
        ``block`` or ``file``; empty for neither.
    size
        In whole MiB, rounded down.
    identity
        What names a block device on every node that sees it; empty if nothing does.
    number
        Major and minor number of a block device: two paths of this node with one
        number are one device.
    problem
        Why the node does not open a file that is there.
    used
        What the node itself uses a block device for; empty for nothing.
    """

    kind: str = ""
    size: Mib = Mib(0)
    identity: str = ""
    number: str = ""
    problem: str = ""
    used: str = ""


class GuestState(Struct, frozen=True, kw_only=True):
    """A guest as it runs.

    Attributes
    ----------
    state
        ``running``, ``paused``, ``incoming`` (waits for a migration) or ``moved``
        (its migration to another node is complete; only the process is left).
    memory
        What it started with.
    now
        What it has of that; None if it has no balloon, or does not say.
    cause
        Why a paused one stands still, in QEMU's word (``io-error``,
        ``internal-error``, …; ``no-answer`` if QEMU itself is silent); see
        :mod:`moorage.model.standstill`. Empty for the others.
    disks
        Uuids of the disks that are plugged.
    ports
        Where in the guest each of them sits; the destination of a live migration
        must have them at the same places.
    cards
        Likewise of its network cards, by uuid. None for a guest of an older agent's:
        its cards cannot be plugged, and sit in the order of its record.
    machine
        The hypervisor parameters that its machine is made of, as it runs
        (:data:`moorage.model.hvparams.MACHINE`). Empty for a guest that is told of with
        others, or of an older agent's.
    origin
        Who started its process: nothing is said where this node's agent did;
        ``adopted`` where Ganeti did, and the agent took it over; ``foreign`` where
        Ganeti did, and nobody has: it may write, and gets no orders.
    """

    uuid: str
    name: str
    state: str
    memory: Mib
    vcpus: int
    disks: tuple[str, ...] = ()
    ports: dict[str, int] = field(default_factory=dict)
    cause: str = ""
    cards: dict[str, int] | None = None
    machine: dict[str, bool | int | str] = {}
    origin: str = ""
    now: Mib | None = None

    @property
    def holds(self) -> Mib:
        """MiB that it has of its node's memory."""
        return self.memory if self.now is None else self.now

    @property
    def runs(self) -> bool:
        """Whether it may write to its disks."""
        return self.state in ("running", "paused")

    @property
    def lives(self) -> bool:
        """Whether it writes, or is about to."""
        return self.runs or self.state == "incoming"


class ForeignGuest(Struct, frozen=True, kw_only=True):
    """A guest whose process Ganeti started, as its node finds it.

    Attributes
    ----------
    uuid
        Of the instance, as its command line says; empty if it does not.
    pid
        Of its process.
    adopted
        Whether the agent has taken it over.
    files
        What it has open that may be its disks: block devices, and files that it
        writes to. For people to read: the node compares what they are.
    monitor
        Why its monitor cannot be asked, in a sentence; empty when it answers.
    afar
        What it reaches by itself, as its command line says: ``rbd``, ``gluster``.
    """

    uuid: str
    name: str
    pid: int
    adopted: bool = False
    files: tuple[str, ...] = ()
    monitor: str = ""
    afar: tuple[str, ...] = ()


class Link(Struct, frozen=True, kw_only=True):
    """Something on a node that network cards can be connected to.

    Attributes
    ----------
    kind
        ``bridge``, or ``openvswitch`` for a bridge of Open vSwitch's.
    vlans
        Whether it keeps VLANs apart.
    """

    name: str
    kind: str = "bridge"
    vlans: bool = False


class Accelerator(Struct, frozen=True, kw_only=True):
    """What executes guests' code on a node, and how that is known.

    Attributes
    ----------
    name
        ``kvm``, or ``tcg`` where QEMU emulates.
    reason
        What was seen, in a sentence.
    proof
        ``kernel`` (one was booted), ``firmware`` (a few instructions ran, and no
        kernel was at hand), ``guest`` (one was watched), or empty where there is
        nothing to try.
    """

    name: str
    reason: str
    proof: str = ""


class Held(Struct, frozen=True, kw_only=True):
    """A disk that is attached on a node.

    Attributes
    ----------
    path
        Device or image file; None for userspace only.
    uris
        URI by hypervisor.
    epoch
        The epoch it was attached with.
    size
        Of its block device; None where there is none.
    """

    disk: str
    path: str | None
    uris: dict[str, str]
    epoch: int
    size: Mib | None = None


class MirrorState(Struct, frozen=True, kw_only=True):
    """One copy of a mirrored disk, as its node has it; words are DRBD's.

    Attributes
    ----------
    minor
        Number of its device.
    connection
        ``Connected``, ``SyncSource`` or ``SyncTarget`` with the other copy; others, as
        ``WFConnection`` or ``StandAlone``, without.
    role
        ``Primary`` where a guest may write, ``Secondary``, or ``Unknown``.
    disk, peer_disk
        ``UpToDate``; others are behind, missing, or (``DUnknown``) not known.
    percent, seconds
        How much of it is the same again, and how long the rest takes; None where
        nothing is copied, or nobody can tell.
    """

    minor: int
    connection: str
    role: str = "Unknown"
    disk: str = "DUnknown"
    peer_disk: str = "DUnknown"
    percent: float | None = None
    seconds: int | None = None

    @property
    def in_sync(self) -> bool:
        """Whether both copies are the same."""
        return self.connected and self.disk == self.peer_disk == UP_TO_DATE

    @property
    def connected(self) -> bool:
        """Whether the two nodes talk to each other."""
        return self.connection in _TALKING or self.copying

    @property
    def copying(self) -> bool:
        """Whether one copy is brought up to date from the other."""
        return self.connection.startswith(_COPYING)


class LeadChange(Struct, frozen=True, kw_only=True):
    """Other keys than before gave a node orders, or were promised a term.

    Attributes
    ----------
    term
        The first of theirs.
    pins
        Of the keys.
    time
        When, in seconds, by the node's clock.
    """

    term: int
    pins: tuple[str, ...]
    time: float


class LeadFacts(Struct, frozen=True, kw_only=True):
    """What a node says of those who may lead.

    Attributes
    ----------
    key
        Pin of the key that it can lead with, as a candidate; empty if it has none.
    masters
        Pins of the keys whose orders it takes.
    changes
        The last changes of lead that it saw, the oldest one first.
    """

    key: str = ""
    masters: tuple[str, ...] = ()
    changes: tuple[LeadChange, ...] = ()


class NodeFacts(Struct, frozen=True, kw_only=True):
    """All that an agent reports.

    Attributes
    ----------
    memory_total, memory_free
        Of the machine; what guests have is not free.
    allowed_directories
        The only directories that image files may be kept below; None where the node
        has no list of them.
    extstorage_path
        Where the node looks for ExtStorage providers, first one first.
    accelerator
        None where it was not looked at yet, or guests have no processor.
    certificate_ends
        When the certificate that it showed is over, in seconds; the master adds that,
        where nodes are asked over a network.
    powered_off
        Uuids of guests that ended of their own will: nobody else asked them to.
    links
        What network cards can be connected to; None from an older agent.
    filters
        Whether network cards can be held to their addresses there.
    lead
        None from an older agent, where it is asked over no network, and in brief.
    """

    version: str
    hypervisors: tuple[str, ...] = ()
    memory_total: Mib = Mib(0)
    memory_free: Mib = Mib(0)
    cpus: int = 0
    bootid: str = ""
    units: tuple[Unit, ...] = ()
    guests: tuple[GuestState, ...] = ()
    held: tuple[Held, ...] = ()
    accelerator: Accelerator | None = None
    allowed_directories: tuple[str, ...] | None = None
    extstorage_path: tuple[str, ...] = ()
    certificate_ends: float | None = None
    powered_off: tuple[str, ...] = ()
    links: tuple[Link, ...] | None = None
    filters: bool = False
    lead: LeadFacts | None = None

    @property
    def memory_own(self) -> Mib:
        """What is kept for the node itself: guests never get it."""
        return kept(self.memory_total)


def kept(total: Mib) -> Mib:
    """Return how much of a node's memory is kept for the node itself.

    Ganeti's 4 GiB of a KVM node; an eighth of a small one, which would have nothing
    left otherwise.
    """
    return Mib(min(KVM_NODE_MEMORY, total // 8))
