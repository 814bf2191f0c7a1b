# SPDX-License-Identifier: BSD-2-Clause
"""What nodes have heard of masters, and what their copies are worth.

A node's word may be anybody's. What its copy has counts where it is a candidate by the
record that is known here, and what is taken of it is fetched and summed up. That a
later master has led is believed of a candidate, and else of more than half.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from moorage.errors import MoorageError, Stale, Unreachable, cause_of
from moorage.jobs import Nodes
from moorage.model import Config, Node
from moorage.model.commits import Head
from moorage.node.calling.client import HttpNodes
from moorage.node.certificates.authority import Authority
from moorage.protocol import Standing, Verb, silent
from moorage.units import counted

T = TypeVar("T")

_PATIENCE = 10.0
"""Seconds that a node may take to answer."""
_ALIVE = 15.0
"""Seconds; a master that was heard so shortly ago is taken to be alive."""
LEAP = 100
"""By how much a claim raises the term: an old master that is cut off, and starts again
some times, must not count as far."""
_FARTHEST = 1 << 32
"""Terms that a node may be ahead of a store, or of more than half of the others: no
cluster has had so many masters."""


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

    def highest(self, known: int, among: Collection[str]) -> int:
        """Return the highest term that a node has heard, or else the one of a store.

        A term that no master can have counted is a lie: the next one would have to
        count further than any node believes. But a claim may have been made beyond
        one, and those who promised it heed nothing lower. So more than half are
        believed in any case, and nodes `among` these further than others.
        """
        told = sorted((one.term for one in self.said.values()), reverse=True)
        sure = max(known, told[len(told) // 2] if told else known)
        believed = (
            one.term
            for name, one in self.said.items()
            if one.term - sure < _FARTHEST * (2 if name in among else 1)
        )
        return max(believed, default=sure)

    def later(self, term: int) -> list[Standing]:
        """Return what those said who have heard a later master than that of a term."""
        return [one for one in self.said.values() if one.term > term]

    def further(self, head: Head, among: Collection[str]) -> tuple[str, str] | None:
        """Return the node whose copy is furthest ahead of `head`, and how it differs.

        Only nodes `among` these count.

        A later master's copy is ahead of one with more commits: these were made by a
        master that had been followed by then, and did not know it.
        """
        copies = {
            n: one.copy for n, one in self.said.items() if one.copy and n in among
        }
        name = max(copies, key=lambda one: _order(copies[one]), default="")
        found = copies.get(name, head)
        if _order(found) <= _order(head) or found.holds(head):
            return None
        if found.version > head.version:
            return name, f"has {_commits(found.version - head.version)} more than"
        return name, f"is of a later master (term {found.term}, not {head.term}) than"

    def successor(self, term: int, among: Collection[str]) -> Standing | None:
        """Return who led last of all that nodes have heard, if later than `term`.

        One node that is not `among` these is not believed, and more than half are.
        """
        led = {name: one for name, one in self.said.items() if term < one.led}
        if len(led) * 2 <= len(self.said):
            led = {name: one for name, one in led.items() if name in among}
        return max(led.values(), key=lambda one: one.led, default=None)

    def hears(self, name: str) -> bool:
        """Whether a node has heard the master on the node of a name just now."""
        return any(
            one.leader == name and one.silent is not None and one.silent < _ALIVE
            for one in self.said.values()
        )

    def merged(self, other: "Votes") -> "Votes":
        """Return these answers with others."""
        return Votes(self.said | other.said, self.silent | other.silent)

    def told(self, own: str, head: Head, among: Collection[str]) -> Iterator[str]:
        """Say how this node's copy compares with the others', in figures."""
        mine = self.said.get(own)
        known = mine.confirmed if mine else None
        age = (
            "since its agent was started nobody said that it is whole"
            if known is None
            else f"the master found it whole {known:.0f} s ago"
        )
        yield f"the copy here has {_commits(head.version)} (term {head.term}); {age}"
        for name, one in sorted(self.said.items()):
            if name != own and one.copy:
                more = one.copy.version - head.version
                told = (
                    "as many"
                    if not more
                    else f"{abs(more)} " + ("more" if more > 0 else "fewer")
                )
                whose = "" if name in among else ", it says, and is no candidate"
                yield f"the copy on {name} has {told}{whose}"
        for name, why in sorted(self.silent.items()):
            yield f"{name} gives no answer ({why}): what it has, nobody knows"


def keepers(config: Config) -> set[str]:
    """Return the names of those whose word on copies counts: the candidates' alone."""
    master = config.cluster.master_node
    nodes = config.named(Node)
    return {n.name for n in nodes if n.master_candidate or n.uuid == master}


@asynccontextmanager
async def asking(authority: Authority) -> AsyncIterator[HttpNodes]:
    """Yield a way to the nodes for one that does not lead yet, or no more."""
    nodes = HttpNodes(authority, leads=False)
    try:
        yield nodes
    finally:
        await nodes.close()


def _commits(number: int) -> str:
    return counted(number, "commit")


def _order(head: Head) -> tuple[int, int]:
    return head.term, head.version


async def ask(
    nodes: Nodes,
    whom: Iterable[Node],
    call: Verb[Standing],
    term: int,
    patience: float = _PATIENCE,
    *,
    refusals: bool = False,
) -> Votes:
    """Ask nodes where they stand, all at the same time.

    Parameters
    ----------
    patience
        Seconds that each may take; the others count all the same.
    refusals
        Whether one that obeys this key no more has said so much: who leads now.
    """
    found = list(whom)
    answers = await asyncio.gather(
        *(_ask(nodes, node, call, term, patience) for node in found)
    )
    votes = Votes()
    for node, answer in zip(found, answers, strict=True):
        said = _followed(answer) if refusals else answer
        if isinstance(said, Standing):
            votes.said[node.name] = said
        else:
            votes.silent[node.name] = cause_of(said)
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


def _followed(error: Standing | MoorageError) -> Standing | MoorageError:
    """Return what a node says to a key that it obeys no more: another master leads."""
    if not isinstance(error, Stale):
        return error
    term, led, leader = (error.facts.get(one) for one in ("term", "led", "leader"))
    if isinstance(term, int) and isinstance(led, int) and leader:
        return Standing(term=term, led=led, leader=str(leader))
    return error
