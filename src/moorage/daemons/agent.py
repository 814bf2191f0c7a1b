# SPDX-License-Identifier: BSD-2-Clause
"""The agent's process: waits to be let in, then serves its cluster."""

import asyncio
import logging
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import DecodeError, Struct, ValidationError, json, toml
from msgspec.structs import replace

from moorage import durable
from moorage.directories import GANETI
from moorage.errors import BadInput, MoorageError, NotFound
from moorage.hypervisors import SIMULATED, USUAL, check_hypervisor
from moorage.model.addresses import place
from moorage.model.misfit import misfit
from moorage.node import server
from moorage.node.agent import Agent
from moorage.node.certificates.keys import Keys, forget
from moorage.node.doors import enrolment
from moorage.node.extensions.admin_scripts import DIRECTORY as SCRIPTS
from moorage.node.extensions.admin_scripts import AdminScripts
from moorage.node.extensions.allocators import SEARCH_PATH as ALLOCATORS
from moorage.node.extensions.allocators import Allocators
from moorage.node.extensions.hooks import DIRECTORY as HOOKS
from moorage.node.extensions.hooks import Hooks
from moorage.node.extensions.orders import Orders
from moorage.node.extensions.oses import SEARCH_PATH as OS_PATH
from moorage.node.extensions.providers import Providers
from moorage.node.host import Machine
from moorage.node.hypervisors.base import Hypervisor
from moorage.node.hypervisors.known import Station, hypervisor_named
from moorage.node.hypervisors.wiring import SCRIPTS as WIRING
from moorage.node.hypervisors.wiring import Wiring
from moorage.node.local_host import LocalMachine
from moorage.node.machine import cgroup
from moorage.node.machine.addresses import KernelAddresses
from moorage.node.machine.contents import Contents
from moorage.node.machine.exports import Exports
from moorage.node.machine.images import EXPORTS, LIST, Images
from moorage.node.machine.scripts import Scripts
from moorage.node.records import leader
from moorage.node.records.fence import forget_masters
from moorage.node.records.ssconf import DIRECTORY as SSCONF
from moorage.node.records.ssconf import SsconfFiles
from moorage.record_types import look_at_types
from moorage.storage.provider import SEARCH_PATH as EXTSTORAGE_PATH

from . import log_limit, node_socket, own_address, process, systemd
from .paths import NodePlaces
from .state_directory import claim

_LOG = logging.getLogger(__name__)


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an agent is to run.

    Attributes
    ----------
    address, port
        Where it listens: an address of the machine's, or a name of it; ``0.0.0.0`` is
        everywhere. The cluster is told an address at which others reach it: then the
        one of the machine's name, or of its route to others.
    hypervisor
        ``kvm`` or ``fake``; ``sim`` simulates the machine, too.
    extstorage_path, os_path
        Where providers and OS definitions are looked for.
    file_storage_paths
        Ganeti's list of the directories that image files may be kept in, one a line;
        root writes it, and no master can. Where there is none, two are allowed:
        ``/srv/ganeti/file-storage`` and ``/srv/ganeti/shared-file-storage``.
    hooks_dir
        Where the directories of hooks are, Ganeti's.
    scripts_dir
        Has the directories ``restricted-commands`` and ``oob``: scripts that the
        cluster may run by their names; and the files ``cluster-command`` and
        ``copyfile-paths``: whether it may run any command, and write which files.
    iallocator_path
        Where allocators are looked for: Ganeti's programs that choose nodes.
    export_dir
        Where exports of this node lie, ``gnt-backup``'s; no master can change it.
    network_scripts
        Directory of scripts that connect network cards, as Ganeti's
        ``kvm-ifup-custom``; they run as root.
    ganeti_run
        Where Ganeti keeps what it knows of the guests that it started, which are found
        by their pid files there.
    ssconf_dir
        Where Ganeti's ``ssconf`` files lie, if the cluster is told to have them.
    san
        For ``sim``: the directory that holds the simulated storage of all nodes.
    unsafe_live_emulation
        For tests of live migration where there is no KVM: emulated guests run while
        they are sent, and may lose what they write. The agent warns of it.
    """

    address: str = "0.0.0.0"  # noqa: S104
    port: int = 1811
    hypervisor: str = USUAL
    extstorage_path: tuple[str, ...] = EXTSTORAGE_PATH
    os_path: tuple[str, ...] = OS_PATH
    file_storage_paths: str = LIST
    hooks_dir: str = HOOKS
    scripts_dir: str = SCRIPTS
    iallocator_path: tuple[str, ...] = ALLOCATORS
    export_dir: str = EXPORTS
    network_scripts: str = WIRING
    ganeti_run: str = GANETI
    ssconf_dir: str = SSCONF
    san: str = ""
    unsafe_live_emulation: bool = False


def write_settings(places: NodePlaces, settings: Settings) -> None:
    """Write the settings of an agent into its directory."""
    durable.make(places.root)
    durable.write(places.settings, json.format(json.encode(settings)) + b"\n")


def read_settings(places: NodePlaces) -> Settings:
    """Return the settings that were written; the defaults if none were.

    Those in the node's directory count before those of the machine.

    Raises
    ------
    BadInput
        If the file holds something else, or there is no such hypervisor.
    """
    for file, decode in (
        (places.settings, json.decode),
        (places.machine_settings, toml.decode),
    ):
        try:
            found = decode(file.read_bytes(), type=Settings)
        except FileNotFoundError:
            continue
        except (DecodeError, UnicodeError) as error:
            told = misfit(error) if isinstance(error, ValidationError) else error
            raise BadInput(
                f"{file} does not hold settings: {told}",
                hint=f"mv {file} {file}.old brings the defaults back",
            ) from None
        if found.hypervisor != SIMULATED:
            check_hypervisor(found.hypervisor)
        return found
    return Settings()


def run(directory: Path) -> None:
    """Run the agent of the node that lives in `directory`, until it is told to end.

    Raises
    ------
    NotFound
        If there is no such directory.
    WrongState
        If others could write to it, or another agent runs there.
    Failed
        If its settings or keys cannot be read.
    """
    if not directory.is_dir():
        raise NotFound(f"there is no directory {directory}")
    claim(directory, "the node's keys and records")
    # What the agent starts is told paths that hold wherever it stands.
    places = NodePlaces(directory.absolute())
    with process.held(places.lock, f"an agent serves {places.root} already"):
        log_limit.write_log()
        look_at_types()  # before there are threads
        asyncio.run(_run(places))


async def _run(places: NodePlaces) -> None:
    settings = read_settings(places)
    settings = replace(settings, address=own_address.resolved(settings.address))
    log_limit.allow_descriptors()
    asyncio.get_running_loop().set_exception_handler(log_limit.complain)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    signs = systemd.Signs()
    while not stopped.is_set():
        live = _serve if enrolment.joined(places.keys) else _wait_outside
        await live(places, settings, stopped, signs.begin)
    signs.end()


async def _serve(
    places: NodePlaces,
    settings: Settings,
    stopped: asyncio.Event,
    up: Callable[[], None],
) -> None:
    """Serve the cluster until the process is told to end, or the node leaves."""
    left = asyncio.Event()
    name = enrolment.name(places.keys)
    machine, hypervisors = _parts(name, places, settings)
    keys = Keys(places.keys)
    agent = Agent(name, places.run, machine, hypervisors, left.set, keys)
    await agent.begin()
    runner = await server.serve(agent, keys, settings.address, settings.port)
    _LOG.info("node %s serves at %s", name, place(settings.address, settings.port))
    local = await node_socket.serve(places, agent)
    for sign in (places.pid, places.serving):  # not before the address is ours
        with suppress(OSError):  # a full disk keeps no agent from serving
            sign.write_text(f"{os.getpid()}\n")
    up()
    chores = [asyncio.create_task(_tended(one)) for one in hypervisors.values()]
    waits = {asyncio.create_task(one.wait()) for one in (stopped, left)}
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for one in (*waits, *chores):
        one.cancel()
    places.serving.unlink(missing_ok=True)
    if local:
        await local.stop()
    await runner.cleanup()
    if left.is_set():
        if machine.ssconf:
            machine.ssconf.restore()  # a last change may have come after the farewell
        forget(places.keys)
        # The next cluster counts its terms from one.
        for kept in ("fence", "state"):
            shutil.rmtree(places.run / kept, ignore_errors=True)
        leader.forget(places.run)
        _LOG.info("node %s has left its cluster", name)


async def _tended(hypervisor: Hypervisor) -> None:
    """Do a hypervisor's chores; what stops them is told, and stops nothing else."""
    try:
        await hypervisor.tend()
    except (OSError, MoorageError):
        _LOG.exception("the chores of hypervisor %s have ended", hypervisor.name)


async def _wait_outside(
    places: NodePlaces,
    settings: Settings,
    stopped: asyncio.Event,
    up: Callable[[], None],
) -> None:
    forget_masters(places.run / "fence")
    leader.forget(places.run)
    told = own_address.told(settings.address)
    place = (settings.address, settings.port)
    door = asyncio.create_task(
        enrolment.open_door(places.keys, *place, places.token, told=told, opened=up)
    )
    stop = asyncio.create_task(stopped.wait())
    _LOG.info("waiting to be let in; the token is in %s", places.token)
    await asyncio.wait({door, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if not door.done():
        door.cancel()
        await asyncio.wait({door})
        return
    door.result()
    _LOG.info(
        "let in as %s by the master whose certificate has the SHA-256 %s",
        enrolment.name(places.keys),
        enrolment.taken_by(places.keys),
    )


def _parts(
    name: str, places: NodePlaces, settings: Settings
) -> tuple[Machine, Mapping[str, Hypervisor]]:
    allocators = [Path(one) for one in settings.iallocator_path]
    own = Path(settings.scripts_dir)
    ssconf = SsconfFiles(Path(settings.ssconf_dir))
    if settings.hypervisor == SIMULATED:
        # Simulated nodes are for trying and testing: a real one never loads them.
        from moorage.testing.guests import SimHypervisor  # noqa: PLC0415
        from moorage.testing.machine import SimMachine  # noqa: PLC0415
        from moorage.testing.storage import San  # noqa: PLC0415

        san = San.in_directory(Path(settings.san))
        simulated = SimMachine(name, san)
        simulated.hook_scripts = Hooks(Path(settings.hooks_dir))
        simulated.allocators = Allocators(allocators, apart=False)
        simulated.ssconf = ssconf
        simulated.orders = Orders(own)
        return simulated, {USUAL: SimHypervisor(name, san)}
    extstorage = [Path(one) for one in settings.extstorage_path]
    images = Images(
        name,
        Path(settings.file_storage_paths),
        [places.root],
        settings.export_dir,
    )
    scripts = _scripts(places)
    machine = LocalMachine(
        places.logs,
        Providers(extstorage, places.providers),
        [Path(one) for one in settings.os_path],
        images,
        scripts,
        Exports.where_possible(places.run / "exports", scripts, images),
    )
    machine.contents = Contents(places.run / "images", scripts)
    machine.os_cache = places.root / "system-images"
    machine.hooks = Hooks(Path(settings.hooks_dir), scripts)
    machine.admin_scripts = AdminScripts(own, scripts)
    machine.allocators = Allocators(allocators, scripts)
    machine.ssconf = ssconf
    machine.orders = Orders(own, scripts)
    machine.addresses = KernelAddresses()
    station = Station(
        run=places.run,
        address=settings.address,
        images=images,
        wiring=Wiring(Path(settings.network_scripts)),
        ganeti=Path(settings.ganeti_run),
        unsafe_live_emulation=settings.unsafe_live_emulation,
    )
    kind = settings.hypervisor
    return machine, {kind: hypervisor_named(kind, station)}


def _scripts(places: NodePlaces) -> Scripts:
    groups = cgroup.own()
    if groups is None:
        _LOG.warning(
            "no cgroup can be made here: when a script is ended, what left its process "
            "group goes on"
        )
    return Scripts(places.run / "scripts", groups)
