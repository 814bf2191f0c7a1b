# SPDX-License-Identifier: BSD-2-Clause
"""Verbs on one guest."""

from hashlib import sha256
from typing import Annotated, Any, Generic, TypeVar

from msgspec import Meta, Struct

from moorage.model import Nic
from moorage.model.uidpool import STANDARD, UidPool
from moorage.units import Mib

from .verb import OnGuest, OnSlot, WithDisks

R_co = TypeVar("R_co", covariant=True)


class Door(Struct, frozen=True, kw_only=True):
    """Where a guest waits for a migration, or an export for its taker.

    These are words of its node, which may be anybody's. It says no address: the other
    node is told that by its master, and takes a port from here.

    Attributes
    ----------
    port
        At the node's address.
    key
        Known to the two nodes and the master, and good for this one time only, in
        hex: without it nobody gets in, and nothing is sent.
    ports
        The drives that wait there, each with its port (`GuestState.ports`).
    place
        Of what is not real: where it waits. A real guest or export has none.
    tells
        Whether who asks for it is told when it was let in.
    machine
        What the machine that waits there has of those devices that an earlier agent
        does not make (:data:`moorage.model.hvparams.ABSENT`).
    """

    port: Annotated[int, Meta(ge=1, le=65535)]
    key: Annotated[str, Meta(pattern=r"\A([0-9a-f]{64})?\Z")] = ""
    ports: dict[str, int] = {}
    place: str = ""
    tells: bool = False
    machine: dict[str, bool | int | str] = {}

    @property
    def digest(self) -> str:
        """What the door is called where its key is not to be told."""
        return sha256(self.key.encode()).hexdigest()


class Moved(Struct, frozen=True, kw_only=True):
    """How a migration went, as its source knows it.

    Attributes
    ----------
    total_ms
        Milliseconds from its beginning until all was sent.
    downtime_ms
        The last ones of these, in which the guest stood still: all of them, for one
        that was not sent live.
    transferred
        MiB of memory.
    """

    total_ms: int
    downtime_ms: int
    transferred: int


class Arrived(Struct, frozen=True, kw_only=True):
    """How long a guest took to come, as its new node knows it.

    Attributes
    ----------
    lasted_ms
        Milliseconds from when its source was let in, which is before the migration
        began and the guest stood still, until it was seen to run: at most.
    """

    lasted_ms: int


class NetworkOf(Struct, frozen=True, kw_only=True):
    """What scripts are told of the network that a card is in."""

    uuid: str
    name: str
    network: str
    gateway: str | None = None
    network6: str | None = None
    gateway6: str | None = None
    mac_prefix: str | None = None
    tags: tuple[str, ...] = ()


class Whole(WithDisks[R_co], Generic[R_co], frozen=True, kw_only=True):
    """A verb that needs all that makes up a guest.

    Attributes
    ----------
    memory
        In MiB.
    hvparams
        Hypervisor parameters; what is not given has its default.
    nics
        Network cards, each with all its parameters.
    networks
        Those that they are in.
    tags
        The instance's.
    uid_pool
        The user-ids that guests run as.
    network_port
        Of its VNC, where that has an address; 0 for none.
    """

    memory: Mib = Mib(0)
    vcpus: int = 1
    hvparams: dict[str, Any] = {}
    nics: tuple[Nic, ...] = ()
    networks: tuple[NetworkOf, ...] = ()
    tags: tuple[str, ...] = ()
    uid_pool: UidPool = STANDARD
    network_port: Annotated[int, Meta(ge=0, le=65535)] = 0


class StartGuest(Whole[None], frozen=True, kw_only=True, tag="instance.start"):
    """Start the guest, its disks attached here.

    Attributes
    ----------
    paused
        Whether it stands still before its first instruction, until it is started again.
    """

    paused: bool = False


class AdoptGuest(Whole[None], frozen=True, kw_only=True, tag="instance.adopt"):
    """Take over a guest that Ganeti started, its disks attached here.

    It runs on as it does; if it cannot be taken over, it gets no orders.
    """


class EndForeignGuest(
    WithDisks[None], frozen=True, kw_only=True, tag="instance.end-foreign"
):
    """Let a guest power itself off that Ganeti started and nobody has taken over.

    It is asked, and waited for until its process is gone; it is never ended by force.

    Attributes
    ----------
    timeout
        Seconds that the guest gets to power down.
    """

    timeout: float = 0.0


class StopGuest(WithDisks[None], frozen=True, kw_only=True, tag="instance.stop"):
    """Power the guest down.

    Attributes
    ----------
    timeout
        Seconds that the guest gets to power down.
    """

    timeout: float = 0.0


class FillGuest(OnGuest[None], frozen=True, kw_only=True, tag="instance.fill"):
    """Let a guest have so much of its memory, and give the rest back to its node.

    Attributes
    ----------
    memory
        In MiB.
    timeout
        Seconds that the guest may take; then it keeps what it had.
    """

    memory: Mib
    timeout: float = 60.0


class RebootGuest(WithDisks[None], frozen=True, tag="instance.reboot"):
    """Reset the guest."""


class PlugDisk(OnSlot[None], frozen=True, kw_only=True, tag="instance.plug"):
    """Hot-plug a disk that is attached here.

    Attributes
    ----------
    back
        Whether the guest had it a moment ago: one that has ended since lacks nothing.
    """

    back: bool = False


class UnplugDisk(OnSlot[None], frozen=True, tag="instance.unplug"):
    """Hot-unplug a disk."""


class ResizeDisk(OnSlot[None], frozen=True, tag="instance.resize"):
    """Tell the guest that a disk has grown."""


class PlugCard(OnGuest[None], frozen=True, kw_only=True, tag="instance.plug-nic"):
    """Hot-plug a network card.

    Attributes
    ----------
    nic
        With all its parameters.
    index
        Its position in the guest.
    networks
        The one that it is in.
    tags
        The instance's.
    """

    nic: Nic
    index: int = 0
    networks: tuple[NetworkOf, ...] = ()
    tags: tuple[str, ...] = ()


class UnplugCard(OnGuest[None], frozen=True, kw_only=True, tag="instance.unplug-nic"):
    """Hot-unplug a network card.

    Attributes
    ----------
    nic
        Its uuid.
    """

    nic: str


class FindConsole(OnGuest[str], frozen=True, tag="instance.console"):
    """Return the path of the socket of the guest's serial console."""

    reads = True


class PrepareMigration(Whole[Door], frozen=True, kw_only=True, tag="migration.prepare"):
    """Prepare a guest that waits for a migration; return where to send it.

    Attributes
    ----------
    ports
        Where the disks sit in the guest (`GuestState.ports`).
    cards
        Where the network cards do (`GuestState.cards`).
    address
        Of this node, where the guest is to come; empty for the one of the agent.
    """

    ports: dict[str, int] = {}
    cards: dict[str, int] | None = None
    address: str = ""


class RunMigration(WithDisks[Moved], frozen=True, kw_only=True, tag="migration.run"):
    """Send the guest away, or carry on sending it.

    Attributes
    ----------
    address
        Of the node where it goes.
    door
        The answer of that node to ``migration.prepare``.
    live
        Whether it runs meanwhile; an emulated one stands still, but in tests.
    """

    address: str
    door: Door | None = None
    live: bool = True


class AwaitGuest(
    WithDisks[Arrived | None],
    frozen=True,
    kw_only=True,
    tag="migration.arrived",
):
    """Wait until a guest whose transfer is complete runs here.

    It does so by itself; one that a node of an earlier version sent is told to.

    Attributes
    ----------
    timeout
        Seconds that it gets to arrive.
    tells
        Whether to answer how long it took to come, where that is known: a master of an
        earlier version takes no answer.
    """

    timeout: float = 0.0
    tells: bool = False


class ResumeGuest(WithDisks[None], frozen=True, tag="migration.resume"):
    """Give up a migration: the guest runs here as before."""


class AbortGuest(WithDisks[None], frozen=True, tag="migration.abort"):
    """End a guest that waits for a migration."""


class DiscardGuest(WithDisks[None], frozen=True, tag="migration.discard"):
    """End the process of a guest that moved away."""


class WithSystem(Whole[R_co], Generic[R_co], frozen=True, kw_only=True):
    """A verb of an OS definition, and what its script is told of the instance.

    Attributes
    ----------
    os
        Its name, with variant.
    osparams
        Its parameters.
    beparams
        The instance's backend parameters.
    secondaries
        Names of nodes.
    """

    os: str
    osparams: dict[str, Any] = {}
    beparams: dict[str, Any] = {}
    secondaries: tuple[str, ...] = ()
    ctime: float = 0.0
    mtime: float = 0.0


class InstallSystem(WithSystem[None], frozen=True, kw_only=True, tag="os.create"):
    """Run the create script of an OS definition on the guest's disks.

    Attributes
    ----------
    again
        Whether the disks held a system before.
    """

    again: bool = False


class RenameSystem(WithSystem[None], frozen=True, kw_only=True, tag="os.rename"):
    """Run the rename script of an OS definition: the system gets the guest's name.

    Attributes
    ----------
    old_name
        What the guest was called.
    """

    old_name: str


class VerifySystem(WithSystem[None], frozen=True, tag="os.verify"):
    """Let an OS definition look at its parameters."""
