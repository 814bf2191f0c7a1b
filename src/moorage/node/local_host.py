# SPDX-License-Identifier: BSD-2-Clause
"""The real machine that an agent runs on."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace as changed
from itertools import count
from pathlib import Path

from moorage.errors import CommandFailed, Failed, NotFound
from moorage.model import Device, Link, Os, Provider
from moorage.node.records.ssconf import SsconfFiles
from moorage.protocol import Door, HookRun, Report, RunAllocator, Said, silent
from moorage.storage import Command, Confined, Content, Opened, Output
from moorage.storage.uri import local_files
from moorage.units import MIB, Mib

from .carrying import Carrier
from .extensions import oses
from .extensions.admin_scripts import AdminScripts
from .extensions.allocators import Allocators
from .extensions.hooks import Hooks
from .extensions.orders import Orders
from .extensions.providers import Providers
from .host import Addresses, Memory, Offer, Parcel, memory_of
from .machine import commands, installed, links
from .machine.contents import Contents, Image
from .machine.exports import Exports
from .machine.images import Handed, Images
from .machine.scripts import Scripts
from .machine.turns import CURRENT

_PRUNED = 100
"""After so many commands old logs are put away."""

_KNOCK = 3.0
"""Seconds in which another machine must answer."""


class LocalMachine:
    """The machine that this process runs on.

    Parameters
    ----------
    log_dir
        Gets the output of provider and OS scripts, in directories of their own.
    providers
        Where providers are, and how they are run here.
    os_path
        Where OS definitions are looked for, first one first.
    images
        Opens the image files that commands name.
    scripts
        Notes the commands that run.
    exports
        Serves as files what has a URI only; None where that cannot be.

    Attributes
    ----------
    contents
        Gives programs the content of images; None where no command asks for that.
    os_cache
        Where OS definitions of ours keep images; None where there are none.
    hooks, admin_scripts
        The scripts of administrators; None where there are none.
    allocators
        Their programs that say where instances go.
    ssconf
        Where Ganeti's small files about the cluster lie; None where there are none.
    orders
        What its administrator allows beyond that; None where nothing can be.
    addresses
        Those that it has for a while; None where it can have none.
    """

    def __init__(
        self,
        log_dir: Path,
        providers: Providers,
        os_path: Sequence[Path],
        images: Images,
        scripts: Scripts | None = None,
        exports: Exports | None = None,
    ) -> None:
        self._images = images
        self._carrier = Carrier(images)
        self._logs = {True: log_dir / "os", False: log_dir / "extstorage"}
        for directory in self._logs.values():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._providers = providers
        self._os_path = os_path
        self._scripts = scripts
        self._exports = exports
        self.contents: Contents | None = None
        self.os_cache: Path | None = None
        self.hooks: Hooks | None = None
        self.admin_scripts: AdminScripts | None = None
        self.allocators = Allocators(())
        self.ssconf: SsconfFiles | None = None
        self.orders: Orders | None = None
        self.addresses: Addresses | None = None
        self._ran = count()

    async def run(
        self, command: Command, limit: float, report: Report = silent
    ) -> Output:
        """Run a command; raise `CommandFailed` if it fails or lasts `limit` s."""
        at = Path(command.cwd)
        command = self._providers.applied(command)
        of_os = any(at.is_relative_to(path) for path in self._os_path)
        if of_os and self.os_cache:
            words = oses.own_words(self.os_cache)
            command = changed(command, env={**command.env, **words})
        if next(self._ran) % _PRUNED == 0:
            for directory in self._logs.values():
                commands.prune(directory)
        async with AsyncExitStack() as stack:
            named = {
                path: Opened.VOLUME
                for word in command.argv
                if word.startswith("json:")  # QEMU's, of what has a URI alone
                for path in local_files(word)
            }
            images = {**named, **command.images}
            opened = self._images.handed(images, command.pins)
            # A file server that hangs stops nobody else.
            handed = await asyncio.to_thread(stack.enter_context, opened)
            if handed is None:
                return _not_there(command)
            if command.confined:
                apart = self._confined(command.confined, command.pins, stack)
                handed = _both(handed, await apart)
            return await commands.run(
                command,
                log_dir=self._logs[of_os],
                timeout=command.limit or limit,
                scripts=None if command.reads else self._scripts,
                handed=handed,
                report=report,
            )

    async def _confined(
        self, wanted: Confined, pins: Mapping[str, int], stack: AsyncExitStack
    ) -> Handed:
        """Return what a program gets by a QEMU that has no rights."""
        if self.contents is None:
            raise Failed("this node has no place where images are read apart")
        found: dict[str, Image] = {}
        for path, content in wanted.contents.items():
            flags = os.O_RDWR if content.writes else os.O_RDONLY
            device = path if content.block else None
            told = await asyncio.to_thread(self._open, path, flags, device, pins)
            stack.callback(os.close, told)
            if content.made:
                await asyncio.to_thread(_emptied, told, content)
            found[path] = Image(told, content)
        served = self.contents.served(found, wanted.users, alone=wanted.alone)
        return await stack.enter_async_context(served)

    def _open(
        self, path: str, flags: int, device: str | None, pins: Mapping[str, int]
    ) -> int:
        if path in pins:
            return os.dup(pins[path])
        if not device:
            return self._images.open(path, flags)
        try:
            return os.open(device, flags | os.O_CLOEXEC)
        except OSError as error:
            raise Failed(f"{path} cannot be opened: {error.strerror}") from None

    @asynccontextmanager
    async def pinned(self, path: str) -> AsyncIterator[Mapping[str, int]]:
        """Open an image file once, for all commands that are to see this very one."""
        found = await asyncio.to_thread(self._images.open, path, os.O_RDONLY)
        try:
            yield {path: found}
        finally:
            os.close(found)

    async def offer(self, offer: Offer) -> Door:
        """Wait for the one who is to have some files; return where, and its key."""
        return await self._carrier.offer(offer)

    def withdraw(self, ident: str) -> None:
        """Wait for nobody any more, and hang up on who has come."""
        self._carrier.withdraw(ident)

    def keep(self, believes: Callable[[frozenset[str]], bool]) -> None:
        """Withdraw what was offered by order of keys that are not believed any more."""
        self._carrier.keep(believes)

    def adopt(self, doors: Collection[str]) -> None:
        """Let whoever orders this have offered what waits behind some doors, too."""
        self._carrier.adopt(doors)

    async def fetch(
        self, parcels: Sequence[Parcel], address: str, door: Door, report: Report
    ) -> None:
        """Fetch files from where another machine offers them."""
        await self._carrier.fetch(parcels, address, door, report)

    @asynccontextmanager
    async def exported(self, uri: str) -> AsyncIterator[str | None]:
        """Serve what is at a URI as a file meanwhile; None where that cannot be."""
        if self._exports is None:
            yield None
            return
        async with self._exports.served(uri) as path:
            yield path

    async def settle(self, objects: Collection[str]) -> None:
        """Wait for the end of commands on `objects` that an earlier agent left."""
        if self._scripts:
            await self._scripts.settle(objects)

    def kill(self, objects: Collection[str]) -> int:
        """End what earlier steps started on `objects`: commands, and what comes."""
        before = CURRENT.get().step
        ended = self._scripts.kill(objects, before) if self._scripts else 0
        return ended + self._carrier.end(objects, before)

    def extstorage_path(self) -> tuple[str, ...]:
        """Return where providers are looked for."""
        return tuple(map(str, self._providers.search_path))

    def allowed_directories(self) -> tuple[str, ...] | None:
        """Return the directories that image files may be kept in."""
        return self._images.allowed()

    def exports_directory(self) -> str:
        """Return the directory of this node's exports."""
        return self._images.exports

    def providers(self) -> list[Provider]:
        """Return every entry of the ExtStorage search path."""
        return self._providers.scan()

    def oses(self) -> list[Os]:
        """Return every entry of the search path of OS definitions."""
        return oses.scan(self._os_path)

    def has_hooks(self, name: str) -> bool:
        """Whether a directory of hooks has scripts."""
        return bool(self.hooks and self.hooks.found(name))

    async def run_hooks(self, name: str, env: Mapping[str, str]) -> list[HookRun]:
        """Run the scripts of a directory of hooks, in their order."""
        return await self.hooks.run(name, env) if self.hooks else []

    async def admin_script(
        self, kind: str, name: str, arguments: tuple[str, ...]
    ) -> Said:
        """Run a script that the administrator put here for it."""
        if not self.admin_scripts:
            raise NotFound(f"this node has no scripts: {name}")
        return await self.admin_scripts.run(kind, name, arguments)

    def allocator_names(self) -> tuple[str, ...]:
        """Return the names of its allocators."""
        return self.allocators.names()

    async def run_allocator(self, asked: RunAllocator) -> Said:
        """Run an allocator, and return what it printed."""
        return await self.allocators.run(asked)

    async def reach(self, address: str, port: int, source: str) -> str:
        """Return why another machine is not reached; empty if it is."""
        own = (source, 0) if source else None
        try:
            async with asyncio.timeout(_KNOCK):
                _, there = await asyncio.open_connection(address, port, local_addr=own)
        except ConnectionRefusedError:
            return ""  # that it said itself
        except TimeoutError:
            return f"no answer in {_KNOCK:g} s"
        except OSError as error:
            return error.strerror or str(error)
        there.close()
        return ""

    def has_program(self, name: str) -> bool:
        """Whether commands of templates find a program."""
        return installed.has_program(name)

    def has_module(self, name: str) -> bool:
        """Whether the kernel has a module, were it not loaded yet."""
        return installed.has_module(name)

    async def links(self) -> tuple[Link, ...]:
        """Return what network cards can be connected to."""
        return await links.found()

    def memory(self) -> Memory:
        """Return how large the machine is."""
        return memory_of(Path("/proc"))

    async def device(self, path: str) -> Device:
        """Return what there is at a path; a file server that hangs stops nobody."""
        return await asyncio.to_thread(self._at, Path(path))

    def _at(self, path: Path) -> Device:
        try:
            known = path.stat()
            if stat.S_ISREG(known.st_mode):
                return self._image(path)
            return _block_device(known) if stat.S_ISBLK(known.st_mode) else Device()
        except (OSError, ValueError):  # no path, no device, or one that goes away
            return Device()

    def _image(self, path: Path) -> Device:
        try:
            found = self._images.open(str(path), os.O_RDONLY)
        except Failed as error:
            return Device(problem=error.message)
        try:
            return Device(kind="file", size=Mib(os.fstat(found).st_size // MIB))
        finally:
            os.close(found)


def _emptied(descriptor: int, content: Content) -> None:
    """Let a file have nothing, or the zeros that a raw disk begins with."""
    os.ftruncate(descriptor, 0)
    if content.form == "raw":
        os.ftruncate(descriptor, content.made)


def _both(one: Handed, other: Handed) -> Handed:
    words = {**one.words, **other.words}
    return Handed(words, [*one.descriptors, *other.descriptors], other.front)


def _not_there(command: Command) -> Output:
    if command.check:
        said = f"{command.title} failed: no such file"
        raise CommandFailed(said, argv=command.words)
    return Output(code=1)


def _block_device(known: os.stat_result) -> Device:
    number = f"{os.major(known.st_rdev)}:{os.minor(known.st_rdev)}"
    about = Path("/sys/dev/block") / number
    size = Mib(int((about / "size").read_text()) * 512 // MIB)
    return Device(
        kind="block",
        size=size,
        identity=_identity(about),
        number=number,
        used=_use(about, number),
    )


def _use(about: Path, number: str) -> str:
    """Return what this machine uses a block device for; empty for nothing.

    Who merely has it open, as a guest's QEMU, is not seen.
    """
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words = line.split(" ")
        if words[2] == number:
            return f"it is mounted at {words[4]}"
    holders = sorted(one.name for one in (about / "holders").glob("*"))
    return f"{', '.join(holders)} is made of it" if holders else ""


def _identity(about: Path) -> str:
    """Return what names a device on every node that sees it; empty if nothing does.

    A part of a device bears the device's name and its own number.
    """
    part = about / "partition"
    if part.exists():
        whole = _identity(about.resolve().parent)
        return f"{whole}-part{part.read_text().strip()}" if whole else ""
    for name in ("device/wwid", "wwid", "dm/uuid", "device/serial"):
        try:
            told = (about / name).read_text().strip()
        except OSError:
            continue
        if told:
            return told
    return ""
