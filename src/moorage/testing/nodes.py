# SPDX-License-Identifier: BSD-2-Clause
"""Simulated nodes in this process, and the ways in which they and the network fail."""

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, cast

from msgspec import json

from moorage.errors import Unreachable
from moorage.model import Node
from moorage.node.agent import Agent
from moorage.node.calling import key_issuing
from moorage.node.certificates.keys import Keys
from moorage.node.lines import Line, StreamLine
from moorage.protocol import (
    EnrolNode,
    ExpelNode,
    GetCopies,
    GetFacts,
    GetStore,
    GetWatcher,
    Pause,
    Report,
    TellMasters,
    Verb,
    fitting,
    one_by_one,
    silent,
    to_wire,
)
from moorage.protocol.line import GuestLine

from .guests import SimHypervisor
from .machine import SimMachine
from .storage import San

R = TypeVar("R")


class SimNode:
    """One simulated node: its agent, its machine, and whether it has power.

    Parameters
    ----------
    keys
        Where it keeps its keys, if it is to have any.
    """

    def __init__(
        self, name: str, directory: Path, san: San, keys: Path | None = None
    ) -> None:
        self.name = name
        self.powered = True
        self.machine = SimMachine(name, san)
        self._directory = directory
        self._san = san
        self._keys = keys
        self._boot()

    def _boot(self) -> None:
        self._begun = False
        self.hypervisor = SimHypervisor(self.name, self._san)
        hypervisors = {"kvm": self.hypervisor}
        self.keys = Keys(self._keys) if self._keys else None
        self.agent = Agent(
            self.name, self._directory, self.machine, hypervisors, keys=self.keys
        )

    async def begin(self) -> None:
        """Let an agent that has just started begin, before it serves."""
        if not self._begun:
            self._begun = True
            await self.agent.begin()

    def lose_power(self) -> None:
        """Stop answering, and forget all that was in memory."""
        self.powered = False
        self._san.lose_power(self.name)
        self.machine.boots += 1

    def boot(self) -> None:
        """Start the agent, with what it finds on its disk."""
        self.powered = True
        self._boot()


class SimNodes:
    """The way to simulated nodes.

    Attributes
    ----------
    calls
        Every (node, verb) that was delivered.
    lose_reply
        Calls whose reply gets lost, by their number from 0; the verb runs all the same.
    cut
        Nodes that lose power when a call has taken effect, before its reply, by the
        number of the call.
    hold
        When set, a verb waits for it before it starts: a step that arrives late.
    under_way
        The verbs that nodes work on.
    watched
        When the watcher looked last, in seconds; None where none is expected.
    """

    def __init__(self, directory: Path, san: San | None = None) -> None:
        self.san = san or San()
        self.nodes: dict[str, SimNode] = {}
        self.calls: list[tuple[str, str]] = []
        self.lose_reply: set[int] = set()
        self.cut: dict[int, str] = {}
        self.hold: asyncio.Event | None = None
        self.watched: float | None = None
        self._numbers = count(1)
        self._directory = directory
        self.under_way: set[asyncio.Task[Any]] = set()
        self._pauses: set[asyncio.Task[Any]] = set()

    def add(self, name: str) -> SimNode:
        """Add a node."""
        node = SimNode(name, self._directory / name, self.san)
        self.nodes[name] = node
        return node

    async def call(self, node: Node, call: Verb[R], term: int, report: Report) -> R:
        """Run a verb; it goes on when the caller dies, as on another machine."""
        if key_issuing.goes_nowhere(call) or isinstance(call, GetCopies | GetStore):
            return cast("R", None)  # no network is used, and nobody signs anything
        if isinstance(call, GetWatcher):
            return cast("R", self.watched)
        if isinstance(call, ExpelNode | TellMasters):
            return cast("R", None)
        if isinstance(call, EnrolNode):  # it answers, and that is all there is to it
            return cast("R", await self.call(node, GetFacts(), term, report))
        target = self.nodes[node.name]
        if not target.powered:
            raise Unreachable(f"node {node.name} does not answer", sent=False)
        number = len(self.calls)
        self.calls.append((node.name, call.verb))
        work = self._begun(target, call, term, report)
        await asyncio.wait([work])
        if number in self.cut:
            self.cut_power(self.cut[number])
        lost = number in self.lose_reply or not target.powered
        if lost or work.cancelled():
            raise Unreachable(
                f"the connection to {node.name} broke",
                sent=True,
                silent=not target.powered,  # who breaks off is there
            )
        return work.result()

    def _begun(
        self, target: SimNode, call: Verb[R], term: int, report: Report
    ) -> asyncio.Task[R]:
        number = next(self._numbers)
        delivery = self._deliver(target, call, term, report, number)
        work = asyncio.create_task(delivery, name=target.name)
        self.under_way.add(work)
        if isinstance(call, Pause):
            self._pauses.add(work)
        work.add_done_callback(self._over)
        return work

    async def ask(
        self, node: Node, calls: Sequence[Verb[object]], term: int
    ) -> list[object]:
        """Ask one after the other."""
        return await one_by_one(lambda one: self.call(node, one, term, silent), calls)

    async def line(self, node: Node, wanted: GuestLine, term: int) -> Line:
        """Open a line to a guest."""
        target = self.nodes[node.name]
        if not target.powered:
            raise Unreachable(f"node {node.name} does not answer", sent=False)
        return await StreamLine.over(await target.agent.line(wanted, term))

    def _over(self, work: asyncio.Task[Any]) -> None:
        self.under_way.discard(work)
        self._pauses.discard(work)
        if not work.cancelled():
            work.exception()  # whoever asked may be gone

    def cut_power(self, name: str) -> None:
        """Let a node lose its power, and with it all that it was about to do."""
        self._end_verbs(name)
        self.nodes[name].lose_power()

    def kill_agent(self, name: str) -> None:
        """Kill an agent in the middle of whatever it does, and start it again."""
        self._end_verbs(name)
        self.nodes[name].boot()

    def _end_verbs(self, name: str) -> None:
        for work in self.under_way:
            if work.get_name() == name:
                work.cancel()

    async def _deliver(
        self, target: SimNode, call: Verb[R], term: int, report: Report, number: int
    ) -> R:
        if self.hold is not None:
            await self.hold.wait()
        await target.begin()
        verb, args = json.decode(json.encode(to_wire(call)))
        result = await target.agent.handle(verb, args, term, report, number)
        return fitting(call, json.decode(json.encode(result)))

    async def settle(self) -> None:
        """Wait until no verb is under way, but for those that do nothing but wait."""
        for work in self._pauses & self.under_way:
            work.cancel()
        while self.under_way:
            await asyncio.gather(*self.under_way, return_exceptions=True)
