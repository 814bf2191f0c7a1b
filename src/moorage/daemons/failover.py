# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-cluster master-failover``: a candidate becomes the master.

First all nodes are asked, and nothing is changed. Then they are told to heed no earlier
master: from there on the old one gets no order through and no commit acknowledged. Only
then is the copy read. Whatever is interrupted can be begun again.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from moorage import durable
from moorage.errors import Failed, MoorageError, NotFound, WrongState
from moorage.jobs import Nodes
from moorage.jobs.job import decode as decode_job
from moorage.model import Change, Config, Node, successor
from moorage.model.commits import Head
from moorage.node import enrolment, leader
from moorage.node.authority import Authority
from moorage.node.copies import read_keys
from moorage.node.state_copy import StateCopy
from moorage.protocol import GetStanding, HeedTerm
from moorage.store import ConfigStore, SqliteStore, inspect, loaded
from moorage.store.records import copied, head_of, to_read
from moorage.units import counted

from . import master, process, voting
from .paths import KEPT, MasterPlaces, NodePlaces
from .state_directory import claim
from .succession import drafted, put_aside, raise_term
from .voting import LEAP, ask, asking


@dataclass(frozen=True, slots=True)
class Heritage:
    """What lies on a candidate for the next master.

    Attributes
    ----------
    path
        The file of the copy.
    keys
        Directory of the cluster's keys.
    jobs
        How many jobs had not ended.
    """

    own: str
    path: Path
    keys: Path
    head: Head
    config: Config
    jobs: int

    @property
    def voters(self) -> list[Node]:
        """The nodes that are asked: those that nobody has marked offline."""
        return self.config.online()

    @property
    def former(self) -> str:
        """Name of the node of the master before."""
        return self.config.node(self.config.cluster.master_node).name


def read(node: NodePlaces) -> Heritage:
    """Return what a candidate has.

    Raises
    ------
    NotFound
        If it is no candidate, or got no whole copy yet.
    WrongState
        If its copy is damaged.
    """
    if not enrolment.joined(node.keys):
        raise NotFound(f"the node in {node.root} belongs to no cluster")
    own = enrolment.name(node.keys)
    path = StateCopy(node.run / "state").path
    if path is None or not path.exists():
        known = leader.read(node.run)
        who = f"; the master is {known.sender.node}" if known else ""
        raise NotFound(
            f"node {own} keeps no copy of the cluster's state: it is no master "
            f"candidate, or became one just now{who}",
            hint="gnt-cluster master-failover, on a candidate",
        )
    found = inspect(path, live=True)
    if found.faults:
        raise WrongState(
            f"the copy of the state on {own} is damaged: {found.faults[0]}",
            hint="gnt-cluster master-failover, on another candidate",
        )
    config, others = loaded(found.records)
    jobs = [decode_job(value) for value in others.get("job", {}).values()]
    return Heritage(
        own,
        path,
        node.run / "state" / "keys",
        _head(path),
        config,
        sum(not job.finished for job in jobs),
    )


def _head(path: Path) -> Head:
    with to_read(path) as database:
        return head_of(database)[0]


def failover(
    places: MasterPlaces,
    node: NodePlaces,
    *,
    voting: bool = True,
    agreed: Callable[[list[str]], None],
) -> list[str]:
    """Make this machine's node the master; return what is to be told.

    Parameters
    ----------
    voting
        Whether more than half of the nodes have to answer.
    agreed
        Called with what may be lost; it raises an error if nobody agrees.

    Raises
    ------
    WrongState
        If the master is here already, or too few nodes answer.
    NotFound
        If this node has no copy.
    """
    if process.holder(places.lock):
        raise WrongState(
            "the master is on this node already", hint="gnt-cluster getmaster"
        )
    keys = Authority(read(node).keys)

    async def promoted() -> list[str]:
        async with asking(keys) as nodes:
            return await promote(nodes, node, places, voting=voting, agreed=agreed)

    told = asyncio.run(promoted())
    with _told_to_repeat():
        master.start(places)
    return told


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


async def promote(
    nodes: Nodes,
    node: NodePlaces,
    places: MasterPlaces,
    *,
    voting: bool,
    agreed: Callable[[list[str]], None],
) -> list[str]:
    """Ask, agree, fence, and lay the state where a master finds it."""
    votes = await ask(nodes, read(node).voters, GetStanding(), 0)
    heritage = read(node)  # a master that lives has gone on meanwhile
    check(heritage, votes, voting=voting)
    agreed(list(warnings(heritage, votes)))
    term = max(votes.highest(heritage.head.term), heritage.head.term) + LEAP
    asked = read(node)  # somebody may have thought for hours, and nodes come and go
    fenced = await ask(nodes, asked.voters, HeedTerm(), term)
    with _told_to_repeat():
        heritage = read(node)  # now that no earlier master changes it any more
        _check_same(asked, heritage)
        check(heritage, fenced, voting=voting)
        told = list(fenced.told(heritage.own, heritage.head))
        await _settle(places, heritage, term)
    told.append(f"node {heritage.own} is the master, from term {term} on")
    return told


def _check_same(asked: Heritage, heritage: Heritage) -> None:
    """Raise `WrongState` if others were told than those that have a vote by now."""
    before, now = ({one.uuid for one in each.voters} for each in (asked, heritage))
    if before != now:
        raise WrongState("nodes came or went while they were told of the next master")


def check(heritage: Heritage, votes: voting.Votes, *, voting: bool) -> None:
    """Raise `WrongState` unless this candidate can become the master safely."""
    own, head = heritage.own, heritage.head
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
    further = votes.further(head)
    if further and voting:
        raise WrongState(
            f"the copy on {further[0]} {further[1]} the one here",
            hint=f"gnt-cluster master-failover, on {further[0]}",
        )
    missed = _missed(heritage, votes)
    if missed and voting:
        raise WrongState(
            f"{missed}, and no copy that could be asked for has it",
            hint="gnt-cluster master-failover, on another candidate; to go on without "
            "it: gnt-cluster master-failover --no-voting",
        )


def _missed(heritage: Heritage, votes: voting.Votes) -> str:
    """Say which master followed the one that this copy is of; empty for none.

    A start of the same master counts one, and a failover more than a hundred.
    """
    term = heritage.head.term
    found = votes.successor(term + LEAP - 1)
    if found is None:
        return ""
    return (
        f"the copy here is of term {term}, and a later master has led since (on "
        f"{found.leader}, term {found.led}): what it did is not here"
    )


def warnings(heritage: Heritage, votes: voting.Votes) -> Iterator[str]:
    """Say what the failover ends, takes up, and may lose."""
    former = heritage.former
    if votes.hears(former):
        yield f"the master on {former} is alive: it will end by itself"
    yield from votes.told(heritage.own, heritage.head)
    missed = _missed(heritage, votes)
    if missed:
        yield missed
    if heritage.jobs:
        under_way = counted(heritage.jobs, "job")
        yield f"under way: {under_way}, which the new master takes up"


# -- files -----------------------------------------------------------------------------


async def _settle(places: MasterPlaces, heritage: Heritage, term: int) -> None:
    """Lay the keys, then the store: a master starts on whole ones only."""
    claim(places.root, KEPT, given=True)
    put_aside(places)
    places.keys.mkdir(mode=0o700, exist_ok=True)
    for name, data in read_keys(heritage.keys).items():
        durable.write(places.keys / name, data)
    with drafted(places) as draft:
        await _written(draft / places.store.name, heritage, term)
        (draft / places.store.name).replace(places.store)


async def _written(path: Path, heritage: Heritage, term: int) -> None:
    """Write the copy as a store that its new master leads."""
    copied(heritage.path, path)
    truth, _ = await ConfigStore.open(SqliteStore(path))
    try:
        await truth.commit(moved(truth.config, heritage.own))
    finally:
        await truth.close()
    raise_term(path, term)


def moved(config: Config, own: str) -> Change:
    """Return the change that makes a node the master's."""
    node, now = config.node(own), time.time()
    where = {"master_node": node.uuid, "master_ip": node.primary_ip}
    cluster = successor(config.cluster, now, **where)
    if node.master_candidate:
        return Change((cluster,))
    return Change((cluster, successor(node, now, master_candidate=True)))
