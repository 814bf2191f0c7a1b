# SPDX-License-Identifier: BSD-2-Clause
"""What nodes have heard of masters, and what their copies are worth."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from moorage.errors import MoorageError, Unreachable
from moorage.jobs import Nodes
from moorage.model import Node
from moorage.model.commits import Head
from moorage.node.authority import Authority
from moorage.node.client import HttpNodes
from moorage.protocol import Standing, Verb, silent

T = TypeVar("T")

_PATIENCE = 10.0
"""Seconds that a node may take to answer."""
_ALIVE = 15.0
"""Seconds; a master that was heard so shortly ago is taken to be alive."""
LEAP = 100
"""By how much a claim raises the term: an old master that is cut off, and starts again
some times, must not count as far."""
_FARTHEST = 1 << 32
"""Terms that a node may be ahead of a store: no cluster has had so many masters."""


@dataclass(slots=True)
class Votes:
    """What the nodes answered.

    Attributes
    ----------
    said, silent
        By the name of the node: its answer, or why it gave none.
    """

    said: dict[str, Standing] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)

    @property
    def asked(self) -> int:
        """How many nodes there are."""
        return len(self.said) + len(self.silent)

    @property
    def majority(self) -> bool:
        """Whether more than half of the nodes answered."""
        return len(self.said) * 2 > self.asked

    def highest(self, known: int) -> int:
        """Return the highest term that a node has heard, or else the one of a store.

        A term that no master can have counted is a lie: the next one would have to
        count further than any node believes.
        """
        told = (one.term for one in self.said.values())
        return max((one for one in told if one - known < _FARTHEST), default=known)

    def later(self, term: int) -> list[Standing]:
        """Return what those said who have heard a later master than that of a term."""
        return [one for one in self.said.values() if one.term > term]

    def further(self, head: Head) -> tuple[str, str] | None:
        """Return the node whose copy is furthest ahead of `head`, and how it differs.

        A later master's copy is ahead of one with more commits: these were made by a
        master that had been followed by then, and did not know it.
        """
        copies = {name: one.copy for name, one in self.said.items() if one.copy}
        name = max(copies, key=lambda one: _order(copies[one]), default="")
        found = copies.get(name, head)
        if _order(found) <= _order(head) or found.holds(head):
            return None
        if found.version > head.version:
            return name, f"has {found.version - head.version} commits more than"
        return name, f"is of a later master (term {found.term}, not {head.term}) than"

    def successor(self, term: int) -> Standing | None:
        """Return who led last of all that nodes have heard, if later than `term`."""
        led = [one for one in self.said.values() if term < one.led < term + _FARTHEST]
        return max(led, key=lambda one: one.led, default=None)

    def hears(self, name: str) -> bool:
        """Whether a node has heard the master on the node of a name just now."""
        return any(
            one.leader == name and one.silent is not None and one.silent < _ALIVE
            for one in self.said.values()
        )

    def told(self, own: str, head: Head) -> Iterator[str]:
        """Say how this node's copy compares with the others', in figures."""
        mine = self.said.get(own)
        known = mine.confirmed if mine else None
        age = (
            "since its agent was started nobody said that it is whole"
            if known is None
            else f"the master found it whole {known:.0f} s ago"
        )
        yield f"the copy here has {head.version} commits (term {head.term}); {age}"
        for name, one in sorted(self.said.items()):
            if name != own and one.copy:
                more = one.copy.version - head.version
                told = (
                    "as many"
                    if not more
                    else f"{abs(more)} " + ("more" if more > 0 else "fewer")
                )
                yield f"the copy on {name} has {told}"
        for name, why in sorted(self.silent.items()):
            yield f"{name} gives no answer ({why}): what it has, nobody knows"


@asynccontextmanager
async def asking(authority: Authority) -> AsyncIterator[HttpNodes]:
    """Yield a way to the nodes for one that does not lead yet, or no more."""
    nodes = HttpNodes(authority, leads=False)
    try:
        yield nodes
    finally:
        await nodes.close()


def _order(head: Head) -> tuple[int, int]:
    return head.term, head.version


async def ask(
    nodes: Nodes,
    whom: Iterable[Node],
    call: Verb[Standing],
    term: int,
    patience: float = _PATIENCE,
) -> Votes:
    """Ask nodes where they stand, all at the same time.

    Parameters
    ----------
    patience
        Seconds that each may take; the others count all the same.
    """
    found = list(whom)
    answers = await asyncio.gather(
        *(_ask(nodes, node, call, term, patience) for node in found)
    )
    votes = Votes()
    for node, said in zip(found, answers, strict=True):
        if isinstance(said, Standing):
            votes.said[node.name] = said
        else:
            votes.silent[node.name] = str(said.facts.get("cause", said.message))
    return votes


async def _ask(
    nodes: Nodes, node: Node, call: Verb[Standing], term: int, patience: float
) -> Standing | MoorageError:
    try:
        async with asyncio.timeout(patience):
            return await nodes.call(node, call, term, silent)
    except TimeoutError:
        return Unreachable(f"node {node.name} said nothing", cause="it says nothing")
    except MoorageError as error:
        return error
