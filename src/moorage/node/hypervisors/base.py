# SPDX-License-Identifier: BSD-2-Clause
"""What a hypervisor is to the node agent: guests to start, drives to plug.

Every verb is idempotent. A hypervisor keeps what it must remember in its run directory,
so an agent that was killed and started again finds its guests.
"""

from collections.abc import Mapping, Sequence
from socket import socket
from typing import Any, Protocol

from msgspec import Struct, field

from moorage.model import Accelerator, ForeignGuest, GuestState
from moorage.model.nicparams import BRIDGED, NicParams
from moorage.model.processors import Processor, ProcessorModels
from moorage.model.uidpool import STANDARD, UidPool
from moorage.protocol import Door, Moved, NetworkOf, Report, Writing
from moorage.storage import Where
from moorage.units import Mib


class Drive(Struct, frozen=True, kw_only=True):
    """A disk as a guest has it.

    Attributes
    ----------
    disk
        Uuid of the disk; the guest sees its first 20 characters as serial number.
    slot
        Position among the instance's disks, from 0.
    size
        In MiB.
    where
        How to reach the data on this node.
    userspace
        Whether the URI is to be used although there is a device.
    mode
        ``rw`` or ``ro``.
    limits
        What the guest may ask of it; see :func:`.disk_templates.limits`.
    """

    disk: str
    slot: int
    size: Mib
    where: Where
    userspace: bool = False
    mode: str = "rw"
    limits: dict[str, int] = {}


class Target(Struct, frozen=True, kw_only=True):
    """Where a copy of a drive goes.

    Attributes
    ----------
    disk
        Uuid of the disk.
    path
        Of an image file that is there.
    form
        ``raw`` or ``qcow2``.
    """

    disk: str
    path: str
    form: str


class Card(Struct, frozen=True, kw_only=True):
    """A network card as a guest has it.

    Attributes
    ----------
    uuid
        Of the card; empty for a guest of an older agent's.
    index
        Its position among the instance's cards.
    link
        The bridge, or the routing table; without a bridge the card has no cable.
    vlan
        Ganeti's words: ``.5`` untagged, ``:10:20`` tagged, ``.5:10:20`` both.
    network
        What scripts are told of the network that it is in.
    filter
        What it is held to; see :class:`.NicParams`.
    """

    mac: str
    uuid: str = ""
    index: int = 0
    name: str | None = None
    ip: str | None = None
    mode: str = BRIDGED
    link: str = ""
    vlan: str = ""
    network: NetworkOf | None = None
    filter: str = ""

    @property
    def wires(self) -> NicParams:
        """How it is connected."""
        return NicParams(self.mode, self.link, self.vlan, self.filter)


class GuestSpec(Struct, frozen=True, kw_only=True):
    """All that is needed to start a guest.

    Attributes
    ----------
    memory
        In MiB.
    hvparams
        Hypervisor parameters, defaults filled in.
    ports
        For a guest that waits for a migration: the ports of the source
        (`GuestState.ports`). A drive that is not named goes to the port of its slot.
    places
        Likewise of its cards (`GuestState.cards`).
    waits
        Whether it waits for a migration.
    tags
        The instance's, for scripts.
    uid_pool
        The cluster's user-ids, for guests that run as users of their own.
    network_port
        Of its VNC, where that has an address; 0 for none.
    paused
        Whether it is to stand still before its first instruction.
    """

    uuid: str
    name: str
    memory: Mib
    vcpus: int = 1
    hvparams: dict[str, Any] = field(default_factory=dict)
    drives: tuple[Drive, ...] = ()
    cards: tuple[Card, ...] = ()
    ports: dict[str, int] = field(default_factory=dict)
    places: dict[str, int] | None = None
    waits: bool = False
    tags: tuple[str, ...] = ()
    uid_pool: UidPool = STANDARD
    network_port: int = 0
    paused: bool = False

    @property
    def seats(self) -> dict[str, int] | None:
        """Where its cards sit: each in its order, or as the source of a migration says.

        None for a guest of an older agent's, which has no seats.
        """
        if self.waits:
            return self.places
        return {card.uuid: card.index for card in self.cards}


def seat(cards: dict[str, int], index: int, most: int) -> int | None:
    """Return the seat for one more card: its own, or the first free; None if full."""
    taken = set(cards.values())
    return next((n for n in (index, *range(most)) if n not in taken and n < most), None)


class Hypervisor(Protocol):
    """The verbs; all but :meth:`guests` raise `Failed` with what the machine said.

    Attributes
    ----------
    pretends
        Whether its guests are no processes, which copy nothing and write nothing.
    """

    name: str
    pretends: bool

    async def guests(self) -> list[GuestState]:
        """Return every guest that has a process here."""

    async def foreign(self) -> list[ForeignGuest]:
        """Return the guests here whose processes Ganeti started."""

    async def adopt(self, spec: GuestSpec) -> None:
        """Take over a guest that Ganeti started, while it runs.

        On failure it is as it was, and gets no orders.
        """

    async def end_foreign(self, uuid: str, name: str, timeout: float) -> None:  # noqa: ASYNC109
        """Let a guest power itself off that Ganeti started; one that is gone is.

        Raises `Failed` if it still runs after `timeout` seconds: it is not ended by
        force.
        """

    async def powered_off(self) -> tuple[str, ...]:
        """Return the uuids of guests that ended of their own will.

        They have no process. Who was asked to power down, or was killed, is not among
        them.
        """

    async def find(self, uuid: str) -> GuestState | None:
        """Return one guest, without looking at the others; None if it has none."""

    async def start(self, spec: GuestSpec) -> None:
        """Start a guest; one that runs is left alone, one that stands still is woken.

        Raises `Failed` for one that cannot go on where it stands.
        """

    async def stop(self, uuid: str, timeout: float) -> None:  # noqa: ASYNC109
        """Ask the guest to power down; after `timeout` seconds, end its process.

        A guest that does not run is left alone; 0 seconds is a pulled plug.
        """

    async def reboot(self, uuid: str) -> None:
        """Reset the guest without giving up its process; it runs afterwards."""

    async def plug(self, uuid: str, drive: Drive) -> None:
        """Hot-plug a drive; one that is plugged is left alone."""

    async def unplug(self, uuid: str, disk: str) -> None:
        """Hot-unplug a drive and let go of its data before returning."""

    async def plug_card(self, uuid: str, card: Card) -> None:
        """Hot-plug a network card; one that is plugged is left alone."""

    async def unplug_card(self, uuid: str, card: str) -> None:
        """Hot-unplug a network card, and take its cable away."""

    async def arrived(self, uuid: str) -> int | None:
        """Tell the network that a guest runs here now.

        Returns the milliseconds from when its source was let in until it was seen to
        run, at most; None where nobody knows.
        """

    async def resize(self, uuid: str, drive: Drive) -> None:
        """Tell the guest that the drive's data has grown to ``drive.size``."""

    async def throttle(self, uuid: str, disk: str, limits: Mapping[str, int]) -> None:
        """Let a guest ask no more of a drive than its limits; of none, anything."""

    async def fill(self, uuid: str, memory: Mib, patience: float) -> None:
        """Let a guest have so much of its memory, and give the rest back.

        It keeps what it had, and `Failed` is raised, if it does not come to that in
        `patience` seconds.
        """

    async def mirror(self, uuid: str, disk: str, new: Drive, rate: int) -> None:
        """Begin to copy a drive of a running guest to another one, and write to both.

        `rate` is MiB a second at most, 0 for no limit.
        """

    async def follow_mirror(self, uuid: str, disk: str, report: Report) -> None:
        """Wait until a drive and what it is mirrored to are equal."""

    async def switch(self, uuid: str, disk: str) -> None:
        """Let a guest stand still, and give it what its drive was mirrored to.

        The two are equal, and safe on their storage. On failure the guest goes on with
        what it had.
        """

    async def split(self, uuid: str, disk: str) -> None:
        """End a mirror: what was written besides is a copy of this moment."""

    async def settle(self, uuid: str, disk: str, report: Report) -> None:
        """Let a guest that was switched go on, and close what the drive was before."""

    async def drop_mirror(self, uuid: str, disk: str) -> None:
        """Give a mirror up, switched or not: the guest goes on with what it had."""

    async def dump(
        self,
        uuid: str,
        targets: Sequence[Target],
        writing: Writing,
        report: Report,
    ) -> None:
        """Copy drives of a running guest into files, all as they are at one moment."""

    async def end_dump(self, uuid: str) -> bool:
        """End such copying, if it goes on; its :meth:`dump` fails then.

        Returns whether there was any; a guest that is not here has none.
        """

    async def incoming(self, spec: GuestSpec, address: str = "") -> Door:
        """Prepare a guest that waits for a migration; return where to send it.

        It waits at an address of this node; at the agent's own if none is given.
        """

    async def migrate(
        self, uuid: str, address: str, door: Door, report: Report, *, live: bool = True
    ) -> Moved:
        """Send a running guest to a door of the node at `address`.

        One that is not sent `live` stands still meanwhile. It runs there as soon as it
        is whole, and asks nobody; this one runs here again only if it cannot be.

        Called again after an interruption it carries on: waits for a migration that
        is under way, and answers for one that is complete. On failure the guest
        runs here as before.
        """

    async def resume(self, uuid: str) -> None:
        """Give up a migration: the guest runs here as before.

        Raises `Failed` when the migration is complete (the guest runs elsewhere).
        """

    async def go_on(self, uuid: str) -> None:
        """Let a guest run that came here standing still, from an earlier version."""

    async def abort(self, uuid: str) -> None:
        """End a guest that waits for a migration; raises `Failed` if it runs."""

    async def discard(self, uuid: str) -> None:
        """End the process of a guest that moved away; raises `Failed` if it runs."""

    def console(self, uuid: str) -> str:
        """Return the path of the Unix socket of the serial console."""

    async def connect(self, uuid: str, kind: str, ticket: str) -> socket:
        """Return a connection to a guest's ``serial`` console, or its ``vnc`` screen.

        `ticket` is the password that VNC asks for, unless the guest has its own.
        """

    async def tend(self) -> None:
        """Do what is to be done beside the verbs, until it is cancelled."""

    def accelerator(self) -> Accelerator | None:
        """Return what is known of what executes guests; None if nothing is."""

    async def look_at_accelerator(self, *, again: bool) -> Accelerator | None:
        """Find out what executes guests, if it is not known, or `again`."""

    async def processor(self, given: Mapping[str, Any]) -> Processor | None:
        """Return what the processors of a guest with some parameters would be here."""

    async def processor_models(self) -> ProcessorModels | None:
        """Return the models of processors that guests can have here."""
