# SPDX-License-Identifier: BSD-2-Clause
"""A simulated machine: it answers commands from shared simulated storage."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from moorage.errors import CommandFailed, Failed, NotFound
from moorage.model import Device, Link, Os, Provider
from moorage.model.facts import kept
from moorage.node.extensions.allocators import Allocators
from moorage.node.extensions.hooks import Hooks
from moorage.node.extensions.orders import Orders
from moorage.node.host import Addresses, Memory, Offer, Parcel
from moorage.node.records.ssconf import SsconfFiles
from moorage.protocol import Door, HookRun, Report, RunAllocator, Said, silent
from moorage.storage import Command, Output
from moorage.units import MIB, Mib

from . import exports
from .addresses import SimAddresses
from .storage import San
from .stored import ALLOCATORS_DIR, EXPORTS_DIR, PROVIDERS_DIR

Hook = Callable[[Mapping[str, str]], str]
Refuse = Callable[[str, Command], bool]
"""Whether a command fails on a node."""


def _never(_node: str, _command: Command) -> bool:
    return False


def provider(
    name: str, *optional: str, by_uuid: bool = False, **parameters: str
) -> Provider:
    """Return a provider that is valid on a simulated node."""
    return Provider(
        name=name,
        path=f"{PROVIDERS_DIR}/{name}",
        optional=optional,
        parameters=parameters,
        by_uuid=by_uuid,
    )


PROVIDERS = (
    provider("san", "snapshot", "open", "close", "list", tier="ssd or hdd"),
    provider("plainsan"),
    provider("usersan", "snapshot", "open", "close", by_uuid=True),
)
"""What simulated nodes have: with all scripts, with the first seven, userspace only.

The last one says that it knows volumes by uuid; the others do not say so.
"""
NAMED = (
    provider("named", reuse_data="whether the volume is there already"),
    provider("namedlist", "list"),
)
"""Providers that know a volume by the name of its disk; they are put on nodes apart."""
SYSTEMS = (Os(name="tiny", path="/sim/os/tiny"),)


LINKS = (
    Link(name="br0"),
    Link(name="br1", vlans=True),
    Link(name="ovs0", kind="openvswitch", vlans=True),
)
"""Bridges of simulated nodes."""


class SimMachine:
    """One simulated machine.

    Attributes
    ----------
    ran
        Every command, in order.
    refuse
        Decides which commands fail.
    systems
        Its OS definitions.
    room
        MiB that each directory has; None where nobody can tell.
    rooms
        MiB of directories that have others than `room`.
    used
        Tells how many of them are taken.
    size
        Its memory, MiB.
    busy
        Tells how much memory guests have touched, MiB.
    missing
        Directories that are not there.
    allowed
        The only directories for image files; None if all are allowed.
    lacking
        Programs and modules of the kernel that are not there.
    served
        Every URI that was made a file, in order.
    exports
        The directory of exports; each node has its own one there.
    offers
        What other nodes may come for, by what it is withdrawn by.
    adopted
        The doors that a master named last as its own.
    serves
        Whether it can do that.
    bridges
        What network cards can be connected to.
    unreached
        Why other machines are not reached, by their addresses.
    hooks
        What a hook says when it fails, by directory and name: a function of its
        variables that returns nothing when it does not.
    hook_scripts
        Real scripts, where there are such.
    admin_scripts
        Those that an administrator put there, by kind and name: functions of words.
    allocators
        Real programs that say where instances go.
    ssconf
        Where Ganeti's small files about the cluster lie; None where there are none.
    orders
        What its administrator allows beyond that; None where nothing can be.
    addresses
        Those that it has for a while; None where it can have none.
    boots
        How often it was switched on.
    """

    def __init__(self, node: str, san: San, memory: int = 65536) -> None:
        self.node = node
        self.ran: list[Command] = []
        self.refuse: Refuse = _never
        self.installed: list[Provider] = list(PROVIDERS)
        self.systems: list[Os] = list(SYSTEMS)
        self.room: Mib | None = Mib(1024 * 1024)
        self.rooms: dict[str, int] = {}
        self.used: Callable[[], int] = lambda: 0
        self.busy: Callable[[], int] = lambda: 0
        self.missing: set[str] = set()
        self.allowed: tuple[str, ...] | None = None
        self.lacking: set[str] = set()
        self.served: list[str] = []
        self.exports = EXPORTS_DIR
        self.offers: dict[str, Offer] = {}
        self.adopted: tuple[str, ...] = ()
        self.serves = True
        self.bridges = LINKS
        self.unreached: dict[str, str] = {}
        self.hooks: dict[str, dict[str, Hook]] = {}
        self.hook_scripts: Hooks | None = None
        self.admin_scripts: dict[str, Callable[[tuple[str, ...]], Said]] = {}
        self.allocators = Allocators([Path(ALLOCATORS_DIR)])
        self.ssconf: SsconfFiles | None = None
        self.orders: Orders | None = None
        self.addresses: Addresses | None = SimAddresses()
        self._san = san
        self.size = memory
        self.boots = 1

    async def run(
        self, command: Command, limit: float, report: Report = silent
    ) -> Output:
        """Answer a command; other tasks get a turn before and after, as in life."""
        del limit, report
        await asyncio.sleep(0)
        self.ran.append(command)
        if self.refuse(self.node, command):
            title = command.title
            raise CommandFailed(
                f"{title} failed (exited with exit code 1): it was told to"
            )
        if command.cwd.startswith("/sim/os"):
            return exports.os_script(self._san, self.node, command)
        if command.argv[:1] == ("systemctl",):
            return Output()
        if command.argv[:2] == ("stat", "--file-system"):
            return self._file_system(command.argv[-1].removesuffix("/."))
        if command.argv[:2] == ("test", "-d") and command.argv[-1] in self.missing:
            return Output(code=1)
        output = self._san.answer(self.node, command)
        await asyncio.sleep(0)
        return output

    def _file_system(self, path: str) -> Output:
        """Tell the room of a directory in MiB: a terabyte, unless somebody set it."""
        if path in self.missing:
            return Output(code=1)
        room = self.rooms.get(path, self.room)
        if room is None:
            return Output()
        return Output(f"{MIB} {room} {max(0, room - self.used())}\n")

    @asynccontextmanager
    async def pinned(self, path: str) -> AsyncIterator[Mapping[str, int]]:
        """Yield no descriptor: nobody swaps simulated files."""
        del path
        yield {}

    async def offer(self, offer: Offer) -> Door:
        """Say where the files are: simulated nodes see each other's storage."""
        await asyncio.sleep(0)
        self.offers[offer.ident] = offer
        return Door(port=1, place=exports.offered(self._san, self.node, offer))

    def withdraw(self, ident: str) -> None:
        """Forget an offer."""
        self.offers.pop(ident, None)

    def keep(self, believes: Callable[[frozenset[str]], bool]) -> None:
        """Do nothing: simulated offers have no keys."""

    def adopt(self, doors: Collection[str]) -> None:
        """Note which doors the master has open."""
        self.adopted = tuple(doors)

    async def fetch(
        self, parcels: Sequence[Parcel], address: str, door: Door, report: Report
    ) -> None:
        """Copy files from another node's storage."""
        del report
        await asyncio.sleep(0)
        if address in self.unreached:
            raise Failed(f"no connection to {address}: {self.unreached[address]}")
        exports.fetched(self._san, self.node, parcels, door.place)
        await asyncio.sleep(0)

    @asynccontextmanager
    async def exported(self, uri: str) -> AsyncIterator[str | None]:
        """Pretend that a URI is a file."""
        if not self.serves:
            yield None
            return
        self.served.append(uri)
        yield f"/sim/served/{len(self.served)}"

    async def settle(self, objects: Collection[str]) -> None:
        """Wait for nothing: simulated commands end with their agent."""

    def kill(self, objects: Collection[str]) -> int:
        """End nothing: simulated commands take no time."""
        del objects
        return 0

    def extstorage_path(self) -> tuple[str, ...]:
        """Return where providers are looked for."""
        return (PROVIDERS_DIR,)

    def allowed_directories(self) -> tuple[str, ...] | None:
        """Return the only directories for image files."""
        return self.allowed

    def exports_directory(self) -> str:
        """Return the directory of this node's exports."""
        return self.exports

    def providers(self) -> list[Provider]:
        """Return what is installed."""
        return self.installed

    def oses(self) -> list[Os]:
        """Return the OS definitions."""
        return list(self.systems)

    def has_hooks(self, name: str) -> bool:
        """Whether a directory of hooks has scripts."""
        real = self.hook_scripts and self.hook_scripts.found(name)
        return bool(self.hooks.get(name) or real)

    async def reach(self, address: str, port: int, source: str) -> str:
        """Return why another machine is not reached; empty if it is."""
        del port, source
        await asyncio.sleep(0)
        return self.unreached.get(address, "")

    async def run_hooks(self, name: str, env: Mapping[str, str]) -> list[HookRun]:
        """Run the scripts of a directory of hooks, in their order."""
        if self.hook_scripts:
            return await self.hook_scripts.run(name, env)
        await asyncio.sleep(0)
        scripts = sorted(self.hooks.get(name, {}).items())
        return [
            HookRun(script=f"{name}/{called}", problem=hook(env))
            for called, hook in scripts
        ]

    def allocator_names(self) -> tuple[str, ...]:
        """Return the names of its allocators."""
        return self.allocators.names()

    async def run_allocator(self, asked: RunAllocator) -> Said:
        """Run an allocator, and return what it printed."""
        return await self.allocators.run(asked)

    async def admin_script(
        self, kind: str, name: str, arguments: tuple[str, ...]
    ) -> Said:
        """Run a script that the administrator put here for it."""
        if f"{kind}/{name}" not in self.admin_scripts:
            raise NotFound(f"there is no /etc/ganeti/{kind}/{name}")
        return self.admin_scripts[f"{kind}/{name}"](arguments)

    def has_program(self, name: str) -> bool:
        """Whether a program is installed: all are, but for those of `lacking`."""
        return name not in self.lacking

    def has_module(self, name: str) -> bool:
        """Whether the kernel has a module."""
        return name not in self.lacking

    async def links(self) -> tuple[Link, ...]:
        """Return the bridges."""
        return self.bridges

    def memory(self) -> Memory:
        """Return how large the machine is said to be; its own system has its part."""
        total = Mib(self.size)
        free = Mib(max(0, total - kept(total) - self.busy()))
        return Memory(total=total, free=free, cpus=8, bootid=f"boot-{self.boots}")

    async def device(self, path: str) -> Device:
        """Return what the storage says; devices may differ from node to node."""
        return self._san.device(self.node, path)
