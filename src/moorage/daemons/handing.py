# SPDX-License-Identifier: BSD-2-Clause
"""What a candidate does before it leads: it lets the master end, and fetches copies."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from itertools import pairwise
from pathlib import Path

from moorage.errors import Failed, MoorageError, WrongState
from moorage.jobs import Nodes
from moorage.model import Node
from moorage.model.commits import Head, Key
from moorage.node.records.state_copy import StateCopy
from moorage.protocol import GetStanding, Portion, ReadCopy, Standing, WantLead, silent
from moorage.store.migrations import FORMAT

_LOOK = 0.2
"""Seconds between two looks at whether the master has ended."""
LET_GO = 45.0
"""Seconds that a master gets to end: to notice the wish, to let jobs come to a stop,
and to send all that it has."""
_STANDS = 30.0
"""Seconds that the wish stands beyond that, until nodes heed the next master."""
_GONE = 8.0
"""Seconds; a master that lives speaks at least every five."""
_FETCHED = 600.0
"""Seconds that a whole copy may take."""


@asynccontextmanager
async def wish(nodes: Nodes, own: Node, patience: float) -> AsyncIterator[None]:
    """Let the node's agent say that it is to lead, as long as this lasts."""
    await nodes.call(own, WantLead(seconds=patience + _STANDS), 0, silent)
    try:
        yield
    finally:
        # An agent that is gone has forgotten it.
        await _quietly(nodes, own, WantLead(seconds=0.0))


async def _quietly(nodes: Nodes, own: Node, call: WantLead) -> None:
    try:
        await nodes.call(own, call, 0, silent)
    except MoorageError:
        return


class Ending(Enum):
    """What became of a master that was to end."""

    ENDED = "it has sent all, and ended"
    GONE = "it does not speak any more"
    STAYS = "it lives, and did not end"


async def let_go(nodes: Nodes, own: Node, patience: float) -> Ending:
    """Wait until the master has ended as planned.

    Raises
    ------
    WrongState
        If another candidate became the master meanwhile.
    """
    clock = asyncio.get_running_loop().time
    until = clock() + patience
    before: Standing | None = None
    while clock() < until:
        now = await nodes.call(own, GetStanding(), 0, silent)
        before = before or now
        if now.released:
            return Ending.ENDED
        if now.silent is None or now.silent > _GONE:
            return Ending.GONE
        if now.leader != before.leader:
            raise WrongState(
                f"the master is on {now.leader} now: another candidate was faster",
                hint="gnt-cluster getmaster",
            )
        await asyncio.sleep(_LOOK)
    return Ending.STAYS


async def fetched(
    nodes: Nodes, node: Node, head: Head, term: int, directory: Path
) -> Path:
    """Fetch the copy that a node says it has; return the file.

    What is not the records of its head is refused: a number alone proves nothing.

    Raises
    ------
    Failed
        If the node does not give it.
    """
    copy = StateCopy(directory)
    copy.begin(FORMAT)
    after: Key = ("", "")
    try:
        async with asyncio.timeout(_FETCHED):
            while True:
                found = await nodes.call(node, ReadCopy(after=after), term, silent)
                _check(found, head, after)
                copy.add(found.records)
                if not found.more:
                    break
                after = found.records[-1][0]
        copy.seal(head)
    except TimeoutError:
        raise Failed(f"{node.name} is too slow") from None
    finally:
        copy.close()
    if copy.path is None:
        raise Failed(f"the copy of {node.name} is not there")
    return copy.path


def _check(found: Portion, head: Head, after: Key) -> None:
    """Refuse records that are none of the copy's, or never end."""
    if found.head != head:
        raise Failed(f"it stands at {found.head.version} now, and not {head.version}")
    keys = [after, *(key for key, _ in found.records)]
    rising = all(one < next_ for one, next_ in pairwise(keys))
    whole = all(value is not None for _, value in found.records)
    if not (rising and whole) or (found.more and not found.records):
        raise Failed("what it gives is no copy")
