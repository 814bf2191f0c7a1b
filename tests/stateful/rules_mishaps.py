# SPDX-License-Identifier: BSD-2-Clause
"""What guests do, and what goes wrong. In a life of peace nothing does."""

import asyncio
from itertools import count
from typing import Any

import comparing
from asking import Asking
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition
from life import NODES, nodes, step, which

turns = st.integers(0, 40)
"""Turns of the event loop."""


def mishap(**choices: Any) -> Any:
    """Make a rule of what goes wrong, at times."""

    def made(method: Any) -> Any:
        def befallen(self: "Mishaps", **chosen: Any) -> None:
            self.upset = True
            method(self, **chosen)

        befallen.__name__ = method.__name__
        return precondition(lambda self: not self.peace)(step(**choices)(befallen))

    return made


class Mishaps(Asking):
    """What nobody asked for."""

    @initialize(peace=st.booleans())
    def fate(self, peace: bool) -> None:
        """Decide whether anything goes wrong in this life."""
        self.peace = peace

    @step(disk=which)
    def write(self, disk: int) -> None:
        """Let a guest write to its disk, if one has it and runs."""
        if not self.taken:
            return
        uuid = self.taken[disk % len(self.taken)]
        for node, record in [one for two in self.guests().values() for one in two]:
            state = record["state"]
            if state["state"] == "running" and uuid in state["disks"]:
                data = f"write {next(self.fresh)}"
                comparing.write_by(self.cluster, node, record["drives"][uuid], data)
                self.expected.disks[uuid].writes.append(data)

    @step(turns=turns)
    def wait(self, turns: int) -> None:
        """Let everybody go on for a while."""
        self.loop.run(self.turn(turns))

    async def turn(self, turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)

    @step()
    def take_stock(self) -> None:
        self.rest()

    @mishap()
    def kill_master(self) -> None:
        self.next_master()

    @mishap()
    def hold_back(self) -> None:
        """Hold up on their way all steps from now on."""
        if self.cluster.nodes.hold is None:
            self.cluster.nodes.hold = asyncio.Event()
            self.late.append(self.cluster.nodes.hold)

    @mishap(node=nodes)
    def kill_agent(self, node: str) -> None:
        if node not in self.dark:
            self.cluster.nodes.kill_agent(node)
            self.shaken.add(node)

    @mishap(node=st.sampled_from(NODES[1:]))
    def cut_power(self, node: str) -> None:
        if not self.dark:
            self.cluster.nodes.cut_power(node)
            self.dark.add(node)
            self.shaken.add(node)

    @mishap(node=st.sampled_from(NODES[1:]), offline=st.booleans())
    def mark(self, node: str, offline: bool) -> None:
        """Say that a node is off, or back, whatever others are about there."""
        self.ask("NODE_SET_PARAMS", node_name=node, offline=offline)
        self.shaken.add(node)

    @precondition(lambda self: self.dark)
    @step()
    def give_power(self) -> None:
        self.power()

    @mishap(after=st.integers(0, 10))
    def lose_reply(self, after: int) -> None:
        calls = self.cluster.nodes
        calls.lose_reply.add(len(calls.calls) + after)

    @mishap(node=nodes, after=st.integers(0, 5))
    def fail_command(self, node: str, after: int) -> None:
        """Let one of the next commands of a node fail."""
        left = count(after, -1)
        machine = self.cluster.nodes.nodes[node].machine
        machine.refuse = lambda _node, _command: next(left) == 0
        self.shaken.add(node)
