# SPDX-License-Identifier: BSD-2-Clause
"""An agent on the network, with the certificates of a cluster of its own."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from moorage import durable
from moorage.model import Node
from moorage.node import server
from moorage.node.agent import Agent
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.certificates.keys import Keys
from moorage.node.doors.doorkeeper import Limits
from moorage.testing.guests import SimHypervisor
from moorage.testing.machine import SimMachine
from moorage.testing.storage import San


class SlowMachine(SimMachine):
    """A simulated machine whose commands wait until the test lets them go on."""

    def __init__(self, node: str, san: San) -> None:
        super().__init__(node, san)
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def run(self, command: Any, limit: float, *more: Any) -> Any:
        self.started.set()
        await self.go_on.wait()
        return await super().run(command, limit, *more)


@dataclass
class Served:
    """A node that belongs to a cluster and serves it.

    Attributes
    ----------
    top
        Has ``keys`` (the node's) and ``run``.
    """

    name: str
    top: Path
    authority: Authority
    machine: SlowMachine
    runner: web.AppRunner | None = None
    port: int = 0
    san: San = field(default_factory=San)

    @property
    def node(self) -> Node:
        ip = "127.0.0.1"
        fields = {"primary_ip": ip, "secondary_ip": ip, "group": "g"}
        return Node(uuid=self.name, name=self.name, port=self.port, **fields)

    @property
    def keys(self) -> Path:
        return self.top / "keys"

    async def start(self, limits: Limits = server.STRANGERS) -> None:
        """Serve, at the same port as before if there was one."""
        hypervisors = {"kvm": SimHypervisor(self.name, self.san)}
        keys = Keys(self.keys)
        place = self.top / "run"
        agent = Agent(self.name, place, self.machine, hypervisors, keys=keys)
        where = ("127.0.0.1", self.port)
        self.runner = await server.serve(agent, keys, *where, limits)
        self.port = self.runner.addresses[0][1]

    async def stop(self) -> None:
        if self.runner:
            await self.runner.cleanup()
        self.runner = None


def lodge(authority: Authority, keys: Path, name: str) -> None:
    """Give a node the keys that it gets when it is let in."""
    keys.mkdir(mode=0o700, parents=True)
    key = tls.new_key()
    signed = authority.sign_node(tls.self_signed(key, name), name)
    durable.write(keys / "node.key", tls.key_pem(key))
    durable.write(keys / "node.pem", tls.pem(signed))
    durable.write(keys / "ca.pem", tls.pem(authority.own))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Return the authority of a cluster."""
    (tmp_path / "master").mkdir()
    return Authority.make(tmp_path / "master", "one")


@pytest.fixture
def other_authority(tmp_path: Path) -> Authority:
    """Return the authority of another cluster of the same name."""
    (tmp_path / "other").mkdir()
    return Authority.make(tmp_path / "other", "one")


@pytest.fixture
async def served(tmp_path: Path, authority: Authority) -> AsyncIterator[Served]:
    """Serve a node of the cluster."""
    machine = SlowMachine("node1", San())
    found = Served("node1", tmp_path / "node1", authority, machine)
    lodge(authority, found.keys, found.name)
    await found.start()
    yield found
    machine.go_on.set()
    await found.stop()


@pytest.fixture
async def nodes(authority: Authority) -> AsyncIterator[HttpNodes]:
    found = HttpNodes(authority, connect=2, silence=5)
    yield found
    await found.close()
