# SPDX-License-Identifier: BSD-2-Clause
"""A cluster of many nodes on one machine: the real master, and agents that simulate.

The master is a process of its own, as its daemon starts it. All agents share another
process: they speak HTTPS with certificates of their own, as on a network, and each has
its address in 127.0.0.0/8; what they run is simulated.
"""

import asyncio
import multiprocessing
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path

from msgspec.structs import replace

from moorage.daemons import master, pauses
from moorage.daemons.log_limit import allow_descriptors
from moorage.daemons.paths import MasterPlaces
from moorage.model import Disk
from moorage.node.agent import Agent
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.certificates.keys import Keys
from moorage.node.hypervisors.base import Drive, GuestSpec
from moorage.node.records.attachments import Attachments
from moorage.storage import Where
from moorage.store import SqliteStore, create
from moorage.testing.cluster import ClusterBuilder
from moorage.testing.guests import SimHypervisor
from moorage.testing.machine import PROVIDERS, SimMachine
from moorage.testing.storage import San
from moorage.units import Mib

PER_NODE = 10
"""Instances of each node, unless somebody asks for more."""
PAIR = ("node2", "node1")
"""The volumes of the second one's instances are there on the first one, too."""
_LACKING = 20
"""Of so many nodes one lacks the provider."""
_VOLUME = {"size": 1024, "provider": "san", "data": ""}
_MEMORY = 2600
_SIZE = Mib(1024)
_STARTING = 600.0
_LOOKS, _BUSY = 20, 3
"""So many looks, a tenth of a second apart, find somebody at work at most so often."""
_CPU_CLOCK = 2
"""Of a process, as clock_getcpuclockid(3) names it: finer than the ticks of /proc."""
_LOWER = 5
"""A lower priority; at the lowest one, nodes say nothing for seconds on a busy machine,
and are given up."""
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Fleet:
    """A cluster that runs.

    Attributes
    ----------
    socket
        Of the master.
    """

    socket: str
    _master: int
    _agents: int
    _turn: "Synchronized[float]"
    _garbage: "Connection"

    def cpu(self) -> float:
        """Return the CPU seconds of the master until now, all its threads together."""
        return time.clock_gettime((~self._master << 3) | _CPU_CLOCK)

    def memory(self) -> float:
        """Return the MiB of the master that are in memory."""
        status = Path(f"/proc/{self._master}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def garbage(self) -> float:
        """Let the master look for cyclic garbage; return how many seconds it took."""
        self._garbage.send(None)
        return float(self._garbage.recv())

    def rest(self) -> None:
        """Wait until the master has put in order what a new one does.

        What waits for a processor that others use is at work, however little it gets.
        """
        found = deque([True], _LOOKS)
        while len(found) < _LOOKS or sum(found) > _BUSY:
            time.sleep(0.1)
            found.append(any(map(_works, (self._master, self._agents))))

    def longest_turn(self) -> float:
        """Return CPU seconds of the longest turn of the master's loop since asked."""
        with self._turn:
            found, self._turn.value = self._turn.value, 0.0
        return found


def _works(process: int) -> bool:
    """Whether a thread of a process runs, or would if it had a processor."""
    found = Path(f"/proc/{process}/task").glob("*/stat")
    return any(one.read_text().rpartition(")")[2].split()[0] == "R" for one in found)


@contextmanager
def fleet(directory: Path, nodes: int, per_node: int = PER_NODE) -> Iterator[Fleet]:
    """Yield a cluster with that many nodes; its master has asked each of them once."""
    places = MasterPlaces(directory / "master")
    addresses = _addresses(nodes)
    asyncio.run(_found(places, directory, addresses, per_node))
    turn = _SPAWN.Value("d", 0.0)
    serving, over = _SPAWN.Event(), _SPAWN.Event()
    shared = (directory, addresses, per_node, serving, over)
    processes = [_SPAWN.Process(target=_run_agents, args=shared)]
    processes[0].start()
    try:
        if not serving.wait(_STARTING):
            raise SystemExit("the agents do not serve")
        ours, garbage = _SPAWN.Pipe()
        shared_too = (places, turn, garbage)
        processes.append(_SPAWN.Process(target=_run_master, args=shared_too))
        processes[1].start()
        agents, led = (one.pid or 0 for one in processes)
        yield Fleet(str(places.socket), led, agents, turn, ours)
    finally:
        over.set()
        for one in reversed(processes):
            one.terminate()
            one.join()


def _addresses(nodes: int) -> list[tuple[str, int]]:
    """Return an address and a port for each node, by number."""
    with socket.socket() as probe:
        probe.bind(("127.99.0.1", 0))
        port = probe.getsockname()[1]
    return [(f"127.99.{n // 250}.{n % 250 + 1}", port) for n in range(nodes)]


def lacks(number: int) -> bool:
    """Whether the node of a number, from 0, lacks the provider."""
    return number % _LACKING == _LACKING - 1


def _home(instance: int, per_node: int) -> int:
    """Return the number of the node of an instance: one that has the provider."""
    node = instance // per_node
    return node - 1 if lacks(node) else node


def _memory(per_node: int) -> Mib:
    """Return what an instance has: a node has room for twice as many."""
    return Mib(_MEMORY * PER_NODE // max(PER_NODE, per_node))


async def _found(
    places: MasterPlaces,
    directory: Path,
    addresses: Sequence[tuple[str, int]],
    per_node: int,
) -> None:
    """Write the master's directory, and the keys of the nodes."""
    places.root.mkdir(mode=0o700)
    places.keys.mkdir(mode=0o700)
    authority = Authority.make(places.keys, "test")
    builder = ClusterBuilder(len(addresses))
    for number, (address, port) in enumerate(addresses):
        name = f"node{number + 1}"
        pin = _lodge(authority, directory / name / "keys", name)
        builder.objects[name] = replace(
            builder.objects[name],
            primary_ip=address,
            secondary_ip=address,
            port=port,
            pins=(pin,),
            master_candidate=number == 0,
        )
    memory = _memory(per_node)
    for number in range(len(addresses) * per_node):
        home = f"node{_home(number, per_node) + 1}"
        builder.disk(f"d{number}", last_node=home)
        fields = {"admin_state": "up", "disks_active": True}
        fields |= {"beparams": {"maxmem": memory, "minmem": memory}}
        builder.instance(f"old{number}", home, (f"d{number}",), **fields)
    store = SqliteStore(places.store)
    await create(store, builder.change())
    await store.close()


def _lodge(authority: Authority, keys: Path, name: str) -> str:
    """Give a node its keys; return the pin of its key."""
    keys.mkdir(mode=0o700, parents=True)
    key = tls.new_key()
    signed = authority.sign_node(tls.self_signed(key, name), name)
    (keys / "node.key").write_bytes(tls.key_pem(key))
    (keys / "node.pem").write_bytes(tls.pem(signed))
    (keys / "ca.pem").write_bytes(tls.pem(authority.own))
    return tls.pin(key.public_key())


def _run_agents(
    directory: Path,
    addresses: Sequence[tuple[str, int]],
    per_node: int,
    serving: Event,
    over: Event,
) -> None:
    allow_descriptors()
    os.nice(_LOWER)  # a node works on a machine of its own, and keeps no master waiting
    asyncio.run(_serve(directory, addresses, per_node, serving, over))


async def _serve(
    directory: Path,
    addresses: Sequence[tuple[str, int]],
    per_node: int,
    serving: Event,
    over: Event,
) -> None:
    # A master serves nobody by HTTP, and is not to be weighed with what does.
    from moorage.node import server  # noqa: PLC0415

    for number, (address, port) in enumerate(addresses):
        agent = await _agent(directory, number, per_node)
        await server.serve(*agent, address, port)
    serving.set()
    await asyncio.to_thread(over.wait)


async def _agent(directory: Path, number: int, per_node: int) -> tuple[Agent, Keys]:
    """Return an agent whose guests run with their disks, on storage of its own."""
    name = f"node{number + 1}"
    san = San()
    machine, hypervisor = SimMachine(name, san), SimHypervisor(name, san)
    place = directory / name / "run"
    held = Attachments(place / "held", machine.memory().bootid)
    if lacks(number):
        machine.installed = [one for one in PROVIDERS if one.name != "san"]
    for one in range(number * per_node, (number + 2) * per_node):
        if _home(one, per_node) == number:
            guest = f"old{one}"
            san.volumes[f"vol-d{one}"] = dict(_VOLUME)
            where = Where(f"/dev/san/vol-d{one}", block=True)
            held.put(_disk(one), where)
            drive = Drive(disk=f"d{one}", slot=0, size=_SIZE, where=where)
            memory = _memory(per_node)
            await hypervisor.start(
                GuestSpec(uuid=guest, name=guest, memory=memory, drives=(drive,))
            )
    if name == PAIR[0]:
        san.volumes |= {f"vol-d{one}": dict(_VOLUME) for one in range(per_node)}
    keys = Keys(directory / name / "keys")
    return Agent(name, place, machine, {"kvm": hypervisor}, keys=keys), keys


def _disk(number: int) -> Disk:
    """Return what an agent is told of a disk."""
    volume = ("san", f"vol-d{number}")
    return Disk(uuid=f"d{number}", size=_SIZE, dev_type="ext", logical_id=volume)


def _run_master(
    places: MasterPlaces, turn: "Synchronized[float]", garbage: "Connection"
) -> None:
    class Timed(selectors.EpollSelector):
        """Notes the CPU time of the loop's thread between two looks."""

        _began = 0.0

        def select(
            self, timeout: float | None = None
        ) -> list[tuple[selectors.SelectorKey, int]]:
            took = time.thread_time() - self._began
            main = threading.current_thread() is threading.main_thread()
            if main and self._began and took > turn.value:
                turn.value = took
            found = super().select(timeout)
            self._began = time.thread_time()
            return found

    selectors.DefaultSelector = Timed  # type: ignore[misc]
    threading.Thread(target=_look_for_garbage, args=(garbage,), daemon=True).start()
    master.run(places)


def _look_for_garbage(asked: "Connection") -> None:
    """Do what the master's chore does, whenever somebody asks; tell how long it took.

    The CPU time of the thread that does it: all others stand still meanwhile.
    """
    while True:
        asked.recv()
        began = time.thread_time()
        pauses.sweep()
        asked.send(time.thread_time() - began)
