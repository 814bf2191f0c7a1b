# SPDX-License-Identifier: BSD-2-Clause
"""What the agent needs of the machine that it runs on; the simulator has its own."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec import Struct

from moorage.model import Device, Link, Os, Provider
from moorage.model.master_address import MasterAddress
from moorage.node.extensions.orders import Orders
from moorage.node.records.ssconf import SsconfFiles
from moorage.protocol import (
    AddressThere,
    Door,
    HookRun,
    Report,
    RunAllocator,
    Said,
    silent,
)
from moorage.storage import Command, Output
from moorage.units import Mib


class Memory(Struct, frozen=True, kw_only=True):
    """Memory and processors of a machine; sizes in MiB."""

    total: Mib
    free: Mib
    cpus: int
    bootid: str


class Parcel(NamedTuple):
    """A file that goes to another machine, or comes from one.

    Attributes
    ----------
    path
        Where it is here.
    size
        Its bytes: neither more nor fewer come.
    sha256
        Of all of them, in hex; empty where nobody knows it.
    """

    path: str
    size: int
    sha256: str = ""


class Offer(NamedTuple):
    """Files that another machine may come for, once.

    Attributes
    ----------
    ident
        What the offer is withdrawn by.
    address, port
        Where the other one comes: an address of this machine, and the first port that
        is tried.
    rate
        MiB a second at most; 0 for as fast as it goes.
    """

    ident: str
    parcels: tuple[Parcel, ...]
    address: str
    port: int
    rate: int = 0


class Addresses(Protocol):
    """The addresses that a machine has for a while."""

    async def look(self, wanted: MasterAddress) -> AddressThere:
        """Return whether an address is set here, and could be."""

    async def hold(self, wanted: MasterAddress, seconds: int) -> None:
        """Have an address for some seconds from now on.

        Raises
        ------
        WrongState
            If somebody else has set it here, or another machine has it.
        Failed
            If the machine does not take it.
        """

    async def drop(self, wanted: MasterAddress) -> None:
        """Have an address no more; one that somebody else has set stays."""


class Machine(Protocol):
    """A machine: runs commands, and knows what is installed.

    Attributes
    ----------
    ssconf
        Where Ganeti's small files about the cluster lie; None where there are none.
    orders
        What its administrator allows beyond that; None where nothing can be.
    addresses
        Those that it has for a while; None where it can have none.
    """

    ssconf: SsconfFiles | None
    orders: Orders | None
    addresses: Addresses | None

    async def run(
        self, command: Command, limit: float, report: Report = silent
    ) -> Output:
        """Run a command; raise `CommandFailed` if it fails or lasts `limit` s."""

    def pinned(self, path: str) -> AbstractAsyncContextManager[Mapping[str, int]]:
        """Open an image file once, for all commands that are to see this very one.

        What is yielded are their :attr:`Command.pins`.

        Raises
        ------
        Failed
            If it is not there, or not to be opened.
        """

    async def offer(self, offer: Offer) -> Door:
        """Wait for the one who is to have some files; return where, and its key.

        It ends by itself: when they were sent, or when nobody came in time.

        Raises
        ------
        Failed
            If a file is not there or not as long as it is to be, or no port is free.
        """

    def withdraw(self, ident: str) -> None:
        """Wait for nobody any more, and hang up on who has come."""

    def keep(self, believes: Callable[[frozenset[str]], bool]) -> None:
        """Withdraw what was offered by order of keys that are not believed any more.

        Parameters
        ----------
        believes
            Whether one of some keys, by their pins, is.
        """

    def adopt(self, doors: Collection[str]) -> None:
        """Let whoever orders this have offered what waits behind some doors, too.

        Parameters
        ----------
        doors
            The digest of each (`Door.digest`).
        """

    async def fetch(
        self, parcels: Sequence[Parcel], address: str, door: Door, report: Report
    ) -> None:
        """Fetch files from where another machine offers them.

        Raises
        ------
        Failed
            If they do not come whole, or are not what they are to be.
        """

    def exported(self, uri: str) -> AbstractAsyncContextManager[str | None]:
        """Serve what is at a URI as a file meanwhile; None where that cannot be.

        Raises
        ------
        Failed
            If it cannot be reached.
        """

    async def settle(self, objects: Collection[str]) -> None:
        """Wait for the end of commands on `objects` that an earlier agent left."""

    def kill(self, objects: Collection[str]) -> int:
        """End what earlier steps started on `objects`; return how many.

        That is commands, and what is fetched from another machine.
        """

    def extstorage_path(self) -> tuple[str, ...]:
        """Return where providers are looked for."""

    def allowed_directories(self) -> tuple[str, ...] | None:
        """Return the only directories for image files; None if all are allowed."""

    def exports_directory(self) -> str:
        """Return the directory of this node's exports; it need not be there."""

    def providers(self) -> list[Provider]:
        """Return every entry of the ExtStorage search path."""

    def oses(self) -> list[Os]:
        """Return every entry of the search path of OS definitions."""

    def has_hooks(self, name: str) -> bool:
        """Whether a directory of hooks has scripts."""

    async def run_hooks(self, name: str, env: Mapping[str, str]) -> list[HookRun]:
        """Run the scripts of a directory of hooks, in their order."""

    async def admin_script(
        self, kind: str, name: str, arguments: tuple[str, ...]
    ) -> Said:
        """Run a script that the administrator put here for it; return what it said."""

    def allocator_names(self) -> tuple[str, ...]:
        """Return the names of its allocators."""

    async def run_allocator(self, asked: RunAllocator) -> Said:
        """Run an allocator, and return what it printed."""

    def has_program(self, name: str) -> bool:
        """Whether commands of templates find a program."""

    def has_module(self, name: str) -> bool:
        """Whether the kernel has a module, were it not loaded yet."""

    async def links(self) -> tuple[Link, ...]:
        """Return what network cards can be connected to."""

    async def reach(self, address: str, port: int, source: str) -> str:
        """Return why another machine is not reached; empty if it is.

        Parameters
        ----------
        source
            Address of this machine to come from; empty for any.
        """

    def memory(self) -> Memory:
        """Return how large the machine is."""

    async def device(self, path: str) -> Device:
        """Return what there is at a path."""


def memory_of(proc: Path) -> Memory:
    """Return what Linux says under ``/proc``."""
    rows = (line.split() for line in (proc / "meminfo").read_text().splitlines())
    kib = {row[0].rstrip(":"): int(row[1]) for row in rows}
    cpus = (proc / "cpuinfo").read_text().count("processor\t")
    bootid = (proc / "sys/kernel/random/boot_id").read_text().strip()
    return Memory(
        total=Mib(kib["MemTotal"] // 1024),
        free=Mib(kib["MemAvailable"] // 1024),
        cpus=cpus,
        bootid=bootid,
    )
