# SPDX-License-Identifier: BSD-2-Clause
"""The master sees to it that each candidate has a key to lead with, and nodes know it.

Nodes take orders of the keys that the configuration has: the master's and those of its
candidates. Jobs that change them tell the nodes that answer; here the others are told,
when they are back. Clusters of before each master had a key of its own come over here.
"""

import asyncio
import logging
import socket
from collections.abc import Coroutine, Iterator
from contextlib import closing, suppress
from typing import Any

from moorage.api.query import Sources
from moorage.errors import Conflict, MoorageError
from moorage.jobs.turns import together
from moorage.model import Change, Cluster, Node
from moorage.node.certificates import tls
from moorage.ops import certificates
from moorage.protocol import (
    GetAuthority,
    GetStanding,
    HandKeyOver,
    RenewMaster,
    Standing,
    TellMasters,
    TrustMasters,
    silent,
)

_LOG = logging.getLogger(__name__)
_PAUSE = 5.0
"""Seconds between two looks at those that gave no answer."""
_LATER = 60.0
"""Seconds until a candidate that got no key is given one again."""
_OPERATION = "OP_NODE_RENEW_CRYPTO"


class Watch:
    """What is known of the nodes and keys, since this master started."""

    def __init__(self, at: Sources) -> None:
        self._at = at
        self._told: dict[str, TrustMasters] = {}
        self._sure: dict[str, tuple[str, ...]] = {}
        self._tried: dict[str, float] = {}

    async def look(self) -> None:
        """Do what there is to do now."""
        own = await self._recorded()
        if not own:
            return  # no network is used, and nobody has keys
        await together(self._tell(node) for node in self._untold())
        await together(self._provide(node, own) for node in self._unsure())

    async def _recorded(self) -> str:
        """Let the master have a key of its own, on record; return its certificate."""
        at = self._at
        node = at.config_store.config.node(at.config_store.config.cluster.master_node)
        facts = await at.nodes.call(node, GetAuthority(), at.config_store.term, silent)
        if facts is None:
            return ""
        if not tls.introduces(tls.load_certificate(facts.master.encode())):
            await at.nodes.call(node, RenewMaster(), at.config_store.term, silent)
            return await self._recorded()
        if facts.master not in node.master_certs:
            now = at.clock()
            new = certificates.with_key(node, facts.master, now, leads=True)
            with suppress(Conflict):  # it is tried again
                await at.config_store.commit(Change((new,)))
        return facts.master

    def _untold(self) -> Iterator[Node]:
        config = self._at.config_store.config
        masters = certificates.masters(config)
        nodes = config.online()
        return (one for one in nodes if self._told.get(one.uuid) != masters)

    async def _tell(self, node: Node) -> None:
        masters = certificates.masters(self._at.config_store.config)
        telling = self._at.nodes.call(
            node, TellMasters(), self._at.config_store.term, silent
        )
        with suppress(MoorageError):  # an agent that is too old goes on as it did
            if await self._while_known(node, telling):
                self._told[node.uuid] = masters  # or it was told of a later one already

    async def _while_known(self, node: Node, call: Coroutine[Any, Any, object]) -> bool:
        """Await a call; give it up, and say so, once the node has other keys.

        It is tried for a while where an agent is away. Who has a key that was taken
        back meanwhile is not to hear it.
        """
        calling = asyncio.ensure_future(call)

        def look(_change: Change) -> None:
            known = self._at.config_store.config.objects.get(node.uuid)
            if not isinstance(known, Node) or known.pins != node.pins:
                calling.cancel()

        self._at.config_store.watchers.append(look)
        try:
            await asyncio.wait({calling})
        finally:
            self._at.config_store.watchers.remove(look)
            calling.cancel()
        if calling.cancelled():
            return False
        calling.result()
        return True

    def _unsure(self) -> Iterator[Node]:
        for node in self._at.config_store.config.online():
            known = self._sure.get(node.uuid)
            if node.master_candidate and (not known or known != node.master_certs):
                yield node

    async def _provide(self, node: Node, own: str) -> None:
        """Give a candidate a key to lead with, if it has none that is on record."""
        at = self._at
        with suppress(MoorageError):
            call = GetStanding()
            said = await at.nodes.call(node, call, at.config_store.term, silent)
            if _holds(node, said):
                self._sure[node.uuid] = node.master_certs
                self._tried.pop(node.uuid, None)  # it may be let in anew at once
            elif node.uuid != at.config_store.config.cluster.master_node:
                await self._submit(node)
            elif own in node.master_certs and _is_here(node.primary_ip):
                await at.nodes.call(node, HandKeyOver(), at.config_store.term, silent)
                self._sure[node.uuid] = node.master_certs

    async def _submit(self, node: Node) -> None:
        now = asyncio.get_running_loop().time()
        known = {"OP_ID": _OPERATION, "node_name": node.name}
        waits = any(
            not job.finished and known.items() <= op.input.items()
            for job in self._at.engine.jobs.values()
            for op in job.ops
        )
        if waits or now - self._tried.get(node.uuid, -_LATER) < _LATER:
            return
        self._tried[node.uuid] = now
        _LOG.info("candidate %s gets a key to lead with", node.name)
        await self._at.engine.submit([known | {"lead_only": True}])


async def watch(at: Sources) -> None:
    """Look after the keys to lead with, for ever."""
    changed = asyncio.Event()

    def look(change: Change) -> None:
        if any(isinstance(one, Node | Cluster) for one in (*change.put, *change.drop)):
            changed.set()

    at.config_store.watchers.append(look)
    watching = Watch(at)
    try:
        while True:
            changed.clear()
            with suppress(MoorageError):
                await watching.look()
            with suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE):
                    await changed.wait()
    finally:
        at.config_store.watchers.remove(look)


def _holds(node: Node, said: Standing) -> bool:
    """Whether a node has one of the keys that are on record."""
    signed = (tls.load_certificate(one.encode()) for one in node.master_certs)
    return said.key in map(tls.pin_of, signed)


def _is_here(address: str) -> bool:
    """Whether an address is of this machine."""
    with suppress(OSError):
        family, kind, _, _, where = socket.getaddrinfo(
            address, 0, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )[0]
        with closing(socket.socket(family, kind)) as found:
            found.bind(where)
            return True
    return False
