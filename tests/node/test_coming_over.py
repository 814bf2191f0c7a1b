# SPDX-License-Identifier: BSD-2-Clause
"""A cluster whose candidates had the master's key comes over, whatever dies then."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from msgspec.structs import replace

from moorage.api.query import Sources
from moorage.daemons.leadership import Standing
from moorage.daemons.leading_keys import Watch
from moorage.errors import BadInput, Unreachable
from moorage.jobs import Engine
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority, _signed
from moorage.node.certificates.keys import Keys, listed
from moorage.ops import certificates, parse
from moorage.protocol import (
    GetFacts,
    GetStanding,
    MakeMasterRequest,
    RequestMaster,
    TakeMasterKey,
    TrustMasters,
    silent,
)
from moorage.store import ConfigStore, MemoryStore, create
from moorage.testing.cluster import ClusterBuilder
from moorage.testing.storage import San

from .conftest import Served, SlowMachine, lodge

pytestmark = pytest.mark.memory

NAMES = ("node1", "node2", "node3")
NEW = (TrustMasters, MakeMasterRequest, TakeMasterKey, RequestMaster)
"""What an agent of before each master had a key of its own does not know."""


class Mortal:
    """A master's way to the nodes, which ends in the middle.

    Attributes
    ----------
    dies
        Before which step it does, even numbers, or behind which, odd ones.
    old, off
        Nodes with agents that are too old, and those that give no answer.
    """

    def __init__(
        self, nodes: HttpNodes, dies: int, old: set[str], off: set[str]
    ) -> None:
        self.nodes, self.dies, self.old, self.off = nodes, dies, old, off
        self.point = 0
        self.dead = asyncio.Event()

    async def call(self, node: Any, call: Any, term: int, report: Any) -> Any:
        if node.name in self.old and isinstance(call, NEW):
            raise BadInput(f"the agent has no verb '{call.verb}'")
        if node.name in self.off:
            raise Unreachable(f"node {node.name} is off")
        await self.passed()
        found = await self.nodes.call(node, call, term, report)
        await self.passed()
        return found

    async def ask(self, node: Any, calls: Any, term: int) -> list[object]:
        return [await self.call(node, one, term, lambda *_: None) for one in calls]

    async def passed(self) -> None:
        if self.point == self.dies:
            self.dead.set()
        self.point += 1
        if self.dead.is_set():
            await asyncio.Event().wait()


@dataclass
class Old:
    """A cluster as it was: one authority, whose key and the master's all have.

    Attributes
    ----------
    thief
        Has what each candidate had.
    """

    authority: Authority
    thief: HttpNodes
    store: Any
    served: list[Served]
    old: set[str] = field(default_factory=set)
    off: set[str] = field(default_factory=set)

    async def lives(self, dies: int = -1) -> int:
        """Let a master live until all have come over, or it dies; return its steps."""
        config_store, records = await ConfigStore.open(self.store)
        nodes = HttpNodes(Authority(self.authority.directory))
        way = Mortal(nodes, dies, self.old, self.off)
        standing = Standing(way)  # type: ignore[arg-type]
        standing.masters = lambda: certificates.masters(config_store.config)
        engine = Engine(config_store, standing, parse)
        await engine.start(records)
        working = asyncio.create_task(
            self._works(Sources(config_store, standing, engine))
        )
        dying = asyncio.create_task(way.dead.wait())
        async with asyncio.timeout(60):
            await asyncio.wait({working, dying}, return_when=asyncio.FIRST_COMPLETED)
        for task in (working, dying, *engine._running.values()):
            task.cancel()
        await asyncio.wait({working, dying})
        await engine.stop()
        await nodes.close()
        await config_store.close()
        if not way.dead.is_set():
            working.result()
        return -1 if way.dead.is_set() else way.point

    async def _works(self, at: Sources) -> None:
        watch = Watch(at)
        await watch.look()
        while not self._is_done(at.config_store):
            await asyncio.sleep(0.01)
            await watch.look()

    def _is_done(self, config_store: ConfigStore) -> bool:
        due = set(listed(certificates.masters(config_store.config).certificates))
        up = [one for one in self.served if one.name not in self.old | self.off]
        keys = {_own(one) for one in up}
        told = [set(Keys(one.keys).masters) for one in up]
        return "" not in keys and keys <= due and all(one == due for one in told)

    async def known(self) -> list[str]:
        """Return which nodes hear the thief."""
        return await self._answering(self.thief, GetStanding(), 0)

    async def obeying(self) -> list[str]:
        """Return which nodes obey the master."""
        nodes = HttpNodes(Authority(self.authority.directory), leads=False)
        try:
            return await self._answering(
                nodes, GetFacts(brief=True), self.store.head.term
            )
        finally:
            await nodes.close()

    async def _answering(self, nodes: HttpNodes, call: Any, term: int) -> list[str]:
        calls = (nodes.call(one.node, call, term, silent) for one in self.served)
        found = await asyncio.gather(*calls, return_exceptions=True)
        return [
            name
            for name, one in zip(NAMES, found, strict=True)
            if not isinstance(one, Exception)
        ]


def _own(served: Served) -> str:
    path = served.top / "run" / "state" / "keys" / "own.pem"
    if not path.exists():
        return ""
    return tls.pin_of(tls.load_certificate(path.read_bytes()))


def _as_it_was(authority: Authority) -> None:
    """Let the authority sign the master, as it did."""
    key, pair = tls.new_key(), authority._pair()
    asks = ExtendedKeyUsageOID.CLIENT_AUTH
    name = tls.common_name(pair[1])
    drawn = tls.draft(tls.MASTER, name, key.public_key(), authority.clock(), 365)
    text = tls.key_pem(key) + tls.pem(_signed(drawn, asks, pair))
    (authority.directory / "master.pem").write_bytes(text)


@asynccontextmanager
async def made(authority: Authority, place: Path) -> AsyncIterator[Old]:
    _as_it_was(authority)
    shutil.copytree(authority.directory, place / "stolen")
    served = [
        Served(name, place / name, authority, SlowMachine(name, San()))
        for name in NAMES
    ]
    builder = ClusterBuilder(3)
    for one in served:
        lodge(authority, one.keys, one.name)
        (one.keys / "ca.pem").write_bytes(tls.pem(authority.certificate))
        await one.start()
        where = {"primary_ip": "127.0.0.1", "port": one.port, "pins": ()}
        node = replace(builder.objects[one.name], master_candidate=True, **where)
        builder.objects[one.name] = node
    store = MemoryStore()
    await create(store, builder.change())
    thief = HttpNodes(Authority(place / "stolen"), leads=False)
    try:
        yield Old(authority, thief, store, served)
    finally:
        await thief.close()
        for one in served:
            await one.stop()


@pytest.fixture
async def old(authority: Authority, tmp_path: Path) -> AsyncIterator[Old]:
    async with made(authority, tmp_path / "old") as found:
        yield found


async def test_it_comes_over_whatever_its_masters_die_of(old: Old) -> None:
    """Each master dies a step later than the one before, until one gets through."""
    assert await old.known() == [*NAMES]
    old.authority.prepare_master()  # one died before it had its next key
    lived = 0
    while await old.lives(lived) < 0:
        assert await old.obeying() == [*NAMES], lived
        lived += 1
    assert lived > 10
    assert await old.known() == []
    assert await old.obeying() == [*NAMES]
    assert await old.lives() > 0  # what comes twice changes nothing
    assert await old.known() == []


async def test_who_is_off_or_too_old_meanwhile_comes_over_later(old: Old) -> None:
    old.old, old.off = {"node2"}, {"node3"}
    await old.lives()
    assert await old.known() == ["node2", "node3"]
    assert await old.obeying() == [*NAMES]  # they go on as they did
    old.off = set()
    await old.lives()
    assert await old.known() == ["node2"]
    old.old = set()
    await old.lives()
    assert await old.known() == []
    assert await old.obeying() == [*NAMES]
