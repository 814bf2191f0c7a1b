# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-cluster master-failover``: a candidate becomes the master.

First all nodes are asked, and nothing is changed. A master that lives ends as planned,
when it has sent all that it has. Then the nodes are told to heed no earlier master:
from there on the old one gets no order through and no commit acknowledged. Only then is
the copy read, or a candidate's that is further. Whatever is interrupted can be begun
again.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from moorage.directories import NODE_DIR
from moorage.errors import Failed, MoorageError, WrongState
from moorage.jobs import Nodes
from moorage.model import Node
from moorage.node.certificates.authority import Authority
from moorage.protocol import GetStanding, HeedTerm, Standing, silent
from moorage.protocol.sender import HIGHEST
from moorage.store import etcd_of
from moorage.units import counted

from . import handing, master_process, peaceful, process, voting
from .handing import Ending
from .heritage import Heritage, heritage_at, read
from .lead_record import settle
from .paths import MasterPlaces, NodePlaces
from .voting import LEAP, ask, asking

_WHOLE = 15.0
"""Seconds; a copy that was found whole so shortly ago has what was acknowledged."""


def failover(
    places: MasterPlaces,
    node: NodePlaces,
    *,
    voting: bool = True,
    lossy: bool = False,
    agreed: Callable[[list[str]], None],
) -> list[str]:
    """Make this machine's node the master; return what is to be told.

    Parameters
    ----------
    voting
        Whether more than half of the nodes have to answer.
    lossy
        Whether to go on without what others are known to have, and do not give.
    agreed
        Called with what may be lost; it raises an error if nobody agrees.

    Raises
    ------
    WrongState
        If the master is here already, or too few nodes answer.
    NotFound
        If this node has no copy.
    """
    settings = etcd_of(places.store)
    if settings:
        return peaceful.failover(
            places, settings, voting=voting, lossy=lossy, agreed=agreed
        )
    if process.holder(places.lock):
        raise WrongState(
            "the master is on this node already", hint="gnt-cluster getmaster"
        )
    keys = _authority(read(node))

    async def promoted() -> list[str]:
        async with asking(keys) as nodes:
            return await promote(
                nodes, node, places, voting=voting, lossy=lossy, agreed=agreed
            )

    told = asyncio.run(promoted())
    with _told_to_repeat():
        master_process.start(places)
    return told


def _authority(heritage: Heritage) -> Authority:
    """Return the keys that the candidate asks with."""
    try:
        return Authority(heritage.keys, own=heritage.own_key)
    except (Failed, OSError) as error:
        why = error.message if isinstance(error, Failed) else error
        raise Failed(
            f"{heritage.own} did not get all of the cluster's keys: {why}",
            hint="gnt-cluster master-failover, on another candidate",
        ) from error


@contextmanager
def _told_to_repeat() -> Iterator[None]:
    """Say what to type when it breaks after nodes have left the former master."""
    try:
        yield
    except (MoorageError, OSError) as error:
        why = error.message if isinstance(error, MoorageError) else str(error)
        raise Failed(
            f"{why}; nodes that were told by then take no orders of the former master "
            "any more, and wait for the next one",
            hint="gnt-cluster master-failover, here again or on another candidate",
        ) from error


async def promote(  # noqa: PLR0913 - two are what somebody decided
    nodes: Nodes,
    node: NodePlaces,
    places: MasterPlaces,
    *,
    voting: bool,
    agreed: Callable[[list[str]], None],
    lossy: bool = False,
    patience: float = handing.LET_GO,
) -> list[str]:
    """Ask, agree, let the master end, fence, and lay the state where one finds it.

    Parameters
    ----------
    patience
        Seconds that a living master gets to end.
    """
    votes = await ask(nodes, read(node).voters, GetStanding(), 0)
    heritage = read(node)  # a master that lives has gone on meanwhile
    check(heritage, votes, voting=voting, lossy=lossy)
    agreed(list(warnings(heritage, votes)))
    if not _heard(heritage, votes):
        return await _followed(nodes, node, places, voting=voting, lossy=lossy)
    own = heritage.config.node(heritage.own)
    async with handing.wish(nodes, own, patience):
        ending = await handing.let_go(nodes, own, patience)
        if ending is Ending.GONE:
            agreed([f"the master on {heritage.former} does not speak any more"])
        elif ending is Ending.STAYS:
            said = await nodes.call(own, GetStanding(), 0, silent)
            agreed([_held_on(heritage, said, patience, lossy=lossy)])
        return await _followed(nodes, node, places, voting=voting, lossy=lossy)


def _heard(heritage: Heritage, votes: voting.Votes) -> bool:
    """Whether this node itself hears the master: then that one can be asked to end."""
    mine = {heritage.own: votes.said[heritage.own]}
    return voting.Votes(mine).hears(heritage.former)


def _held_on(
    heritage: Heritage, said: Standing, patience: float, *, lossy: bool
) -> str:
    """Say that the master did not let go; raise `WrongState` if it has more than here.

    What is known of that is a guess, where it stands still at this moment.
    """
    text = (
        f"the master on {heritage.former} is alive, and did not let this node lead "
        f"within {patience:g} s"
    )
    if lossy or (said.confirmed is not None and said.confirmed < _WHOLE):
        return f"{text}: it goes on without its word"
    raise WrongState(
        f"{text}: it did not find the copy here whole, and may have acknowledged "
        "what is not here",
        hint=f"gnt-cluster verify, on {heritage.former}; to go on without what is not "
        "here: gnt-cluster master-failover --accept-loss",
    )


async def _followed(
    nodes: Nodes, node: NodePlaces, places: MasterPlaces, *, voting: bool, lossy: bool
) -> list[str]:
    """Fence, and lay the state where a master finds it; return what is to be told."""
    # Somebody may have thought for hours, and nodes come and go.
    asked = read(node)
    votes = await ask(nodes, asked.voters, GetStanding(), 0)
    term = _next_term(votes.highest(asked.head.term, asked.keepers))
    fenced = await ask(nodes, asked.voters, HeedTerm(), term)
    with _told_to_repeat(), TemporaryDirectory(dir=node.run) as scratch:
        heritage = read(node)  # now that no earlier master changes it any more
        _check_same(asked, heritage)
        check(heritage, fenced, voting=voting, lossy=lossy)
        told = list(fenced.told(heritage.own, heritage.head, heritage.keepers))
        heritage = await _furthest(
            nodes, heritage, fenced, term, Path(scratch), lossy=lossy
        )
        if {one.name for one in heritage.voters} - fenced.said.keys():
            fenced = await _all_told(nodes, heritage, fenced, term)
            check(heritage, fenced, voting=voting, lossy=lossy)
        await settle(places, heritage, term)
    told.append(f"node {heritage.own} is the master, from term {term} on")
    return told


def _next_term(highest: int) -> int:
    """Return the term to claim; raise `WrongState` if nodes can count no further.

    Somebody who had a candidate's key may have seen to that.
    """
    term = highest + LEAP
    if term > HIGHEST:
        raise WrongState(
            f"nodes have heard term {highest}, and no master can count further: "
            "somebody raised it on purpose",
            hint="moorage master stop, where one runs; then on each node: rm "
            f"{NODE_DIR}/run/fence/term; then: gnt-cluster verify tells "
            "whose key it was",
        )
    return term


async def _furthest(
    nodes: Nodes,
    heritage: Heritage,
    fenced: voting.Votes,
    term: int,
    scratch: Path,
    *,
    lossy: bool,
) -> Heritage:
    """Return the furthest copy that candidates have who promised, fetched if need be.

    A copy that was behind may not know who the candidates are; the fetched one does.
    """
    failed: set[str] = set()
    while found := fenced.further(heritage.head, heritage.keepers - failed):
        name, differs = found
        head = fenced.said[name].copy
        try:
            if head is None or not heritage.config.knows(Node, name):
                raise Failed("it is unknown")
            where = await handing.fetched(
                nodes, heritage.config.node(name), head, term, scratch / name
            )
            other = heritage_at(heritage.own, where, heritage.keys)
            _check_ours(heritage, other)
            heritage = other
        except (MoorageError, sqlite3.Error, ValueError) as error:
            failed.add(name)
            if not lossy:
                raise WrongState(
                    f"the copy on {name} {differs} the one here, and it does not give "
                    f"it ({error})",
                    hint=f"gnt-cluster master-failover, again, or on {name}; if it "
                    "cannot be believed: gnt-cluster master-failover --accept-loss",
                ) from error
    return heritage


def _check_ours(heritage: Heritage, other: Heritage) -> None:
    if other.config.cluster.uuid != heritage.config.cluster.uuid:
        raise WrongState("it is another cluster's")
    other.config.node(heritage.own)


async def _all_told(
    nodes: Nodes, heritage: Heritage, fenced: voting.Votes, term: int
) -> voting.Votes:
    """Tell nodes of a fetched copy, too, which the one here did not know."""
    known = fenced.said.keys() | fenced.silent.keys()
    new = [one for one in heritage.voters if one.name not in known]
    votes = fenced.merged(await ask(nodes, new, HeedTerm(), term))
    names = {one.name for one in heritage.voters}
    return voting.Votes(
        {name: one for name, one in votes.said.items() if name in names},
        {name: one for name, one in votes.silent.items() if name in names},
    )


def _check_same(asked: Heritage, heritage: Heritage) -> None:
    """Raise `WrongState` if others were told than those that have a vote by now."""
    before, now = ({one.uuid for one in each.voters} for each in (asked, heritage))
    if before != now:
        raise WrongState("nodes came or went while they were told of the next master")


def check(
    heritage: Heritage, votes: voting.Votes, *, voting: bool, lossy: bool
) -> None:
    """Raise `WrongState` unless this candidate can become the master safely."""
    own = heritage.own
    if own not in votes.said:
        raise WrongState(
            f"the agent of this node, {own}, gives no answer "
            f"({votes.silent.get(own, 'it is marked offline')}): it has to guard the "
            "copy of the state",
            hint="start it, then: gnt-cluster master-failover",
        )
    if voting and not votes.majority:
        raise WrongState(
            f"{len(votes.said)} of {votes.asked} nodes answer, and more than half have "
            f"to: the master on {heritage.former} may lead the others",
            hint="when you have made sure that it does not: gnt-cluster "
            "master-failover --no-voting",
        )
    missed = _missed(heritage, votes)
    if missed and not lossy:
        raise WrongState(
            f"{missed}, and no copy that could be asked for has it",
            hint="gnt-cluster master-failover, on another candidate; to go on without "
            "it: gnt-cluster master-failover --accept-loss",
        )


def _missed(heritage: Heritage, votes: voting.Votes) -> str:
    """Say which master followed the one that the copies are of; empty for none.

    A start of the same master counts one, and a failover more than a hundred.
    """
    term, keepers = heritage.head.term, heritage.keepers
    further = votes.further(heritage.head, keepers)
    copy = votes.said[further[0]].copy if further else None
    found = votes.successor(max(term, copy.term if copy else 0) + LEAP - 1, keepers)
    if found is None:
        return ""
    return (
        f"the copy here is of term {term}, and a later master has led since (on "
        f"{found.leader}, term {found.led}): what it did is not here"
    )


def warnings(heritage: Heritage, votes: voting.Votes) -> Iterator[str]:
    """Say what the failover ends, takes up, and may lose."""
    former = heritage.former
    if _heard(heritage, votes):
        yield f"the master on {former} is alive: it ends first, when all is here"
    elif votes.hears(former):
        yield (
            f"the master on {former} is alive, other nodes say, and does not reach "
            "this one: it will end by itself, and what it did since is here only as "
            "far as a candidate has it"
        )
    yield from votes.told(heritage.own, heritage.head, heritage.keepers)
    further = votes.further(heritage.head, heritage.keepers)
    if further:
        yield f"the copy on {further[0]} {further[1]} the one here: it is fetched"
    missed = _missed(heritage, votes)
    if missed:
        yield missed
    if heritage.jobs:
        under_way = counted(heritage.jobs, "job")
        yield f"under way: {under_way}, which the new master takes up"
