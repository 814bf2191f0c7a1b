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
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from moorage import durable
from moorage.directories import NODE_DIR
from moorage.errors import Failed, MoorageError, NotFound, WrongState
from moorage.jobs import Nodes
from moorage.jobs.job import decode as decode_job
from moorage.model import Change, Config, Lead, Node, successor
from moorage.model.commits import Head
from moorage.node.certificates.authority import Authority
from moorage.node.certificates.keys import listed
from moorage.node.doors import enrolment
from moorage.node.records import leader
from moorage.node.records.copies import OWN, read_keys
from moorage.node.records.state_copy import StateCopy
from moorage.protocol import GetStanding, HeedTerm, Standing, silent
from moorage.protocol.sender import HIGHEST
from moorage.store import ConfigStore, inspect, loaded, raise_term, store_at
from moorage.store.records import copied, head_of, to_read
from moorage.units import counted

from . import handing, master, process, voting
from .handing import Ending
from .paths import KEPT, MasterPlaces, NodePlaces
from .state_directory import claim
from .succession import drafted, put_aside
from .voting import LEAP, ask, asking

_WHOLE = 15.0
"""Seconds; a copy that was found whole so shortly ago has what was acknowledged."""


_LEADS = 20
"""Changes of lead that are on record."""
_FORMER = 5
"""Masters that were followed, and are told so when they come back."""


@dataclass(frozen=True, slots=True)
class Heritage:
    """What lies on a candidate for the next master.

    Attributes
    ----------
    path
        The file of the copy.
    keys
        Directory of the key to lead with.
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
    def keepers(self) -> set[str]:
        """Names of those whose word on copies counts."""
        return voting.keepers(self.config)

    @property
    def own_key(self) -> str:
        """Name of the file with the key to lead with, without its end.

        A master of before each candidate had a key of its own sent it its own.

        Raises
        ------
        WrongState
            If there is none yet.
        """
        for name in (OWN, "master"):
            if (self.keys / f"{name}.pem").exists():
                return name
        raise WrongState(
            f"node {self.own} keeps a copy of the state, and no key to lead with yet: "
            "the master gives it one",
            hint="gnt-cluster master-failover, on another candidate",
        )

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
    kept = StateCopy(node.run / "state")
    while True:
        path = kept.path
        if path is None:
            known = leader.read(node.run)
            who = f"; the master is {known.sender.node}" if known else ""
            raise NotFound(
                f"node {own} keeps no copy of the cluster's state: it is no master "
                f"candidate, or became one just now{who}",
                hint="gnt-cluster master-failover, on a candidate",
            )
        try:
            return _heritage(own, path, node.run / "state" / "keys")
        except (WrongState, sqlite3.Error, OSError):
            if kept.path == path:  # else the agent has put a new one in its place
                raise


def _heritage(own: str, path: Path, keys: Path) -> Heritage:
    """Return what is in a copy."""
    found = inspect(path, live=True)
    if found.faults:
        raise WrongState(
            f"the copy of the state on {own} is damaged: {found.faults[0]}",
            hint="gnt-cluster master-failover, on another candidate",
        )
    config, others = loaded(found.records)
    jobs = [decode_job(value) for value in others.get("job", {}).values()]
    under_way = sum(not job.finished for job in jobs)
    return Heritage(own, path, keys, _head(path), config, under_way)


def _head(path: Path) -> Head:
    with to_read(path) as database:
        return head_of(database)[0]


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
        master.start(places)
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
        await _settle(places, heritage, term)
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
            other = _heritage(heritage.own, where, heritage.keys)
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


# -- files -----------------------------------------------------------------------------


async def _settle(places: MasterPlaces, heritage: Heritage, term: int) -> None:
    """Lay the keys, then the store: a master starts on whole ones only."""
    claim(places.root, KEPT, given=True)
    put_aside(places)
    places.keys.mkdir(mode=0o700, exist_ok=True)
    files = read_keys(heritage.keys)
    if heritage.own_key == OWN:  # what lies beside it is of the master's
        own = (heritage.keys / f"{OWN}.pem").read_bytes()
        files = {"ca.pem": files["ca.pem"], "master.pem": own}
    for name, data in files.items():
        durable.write(places.keys / name, data)
    with drafted(places) as draft:
        await _written(draft / places.store.name, heritage, term)
        (draft / places.store.name).replace(places.store)


async def _written(path: Path, heritage: Heritage, term: int) -> None:
    """Write the copy as a store that its new master leads."""
    copied(heritage.path, path)
    truth, _ = await ConfigStore.open(store_at(path))
    try:
        await truth.commit(moved(truth.config, heritage.own, term))
    finally:
        await truth.close()
    raise_term(path, term)


def moved(config: Config, own: str, term: int) -> Change:
    """Return the change that makes a node the master's, from a term on."""
    node, now = config.node(own), time.time()
    cluster = config.cluster
    known = (*cluster.former_masters, *config.node(cluster.master_node).master_certs)
    where = {
        "master_node": node.uuid,
        "master_ip": node.primary_ip,
        "former_masters": tuple(dict.fromkeys(known))[-_FORMER:],
        "leads": _leads(config, node, term, now)[-_LEADS:],
    }
    cluster = successor(config.cluster, now, **where)
    if node.master_candidate:
        return Change((cluster,))
    return Change((cluster, successor(node, now, master_candidate=True)))


def _leads(config: Config, node: Node, term: int, now: float) -> tuple[Lead, ...]:
    """Return who has led, with the keys that each had at the end of it."""
    former = config.node(config.cluster.master_node)
    known = config.cluster.leads or (Lead(term=0, node=former.name),)
    had = (*known[-1].pins, *listed((*former.led_with, *former.master_certs)))
    ended = replace(known[-1], pins=tuple(dict.fromkeys(had)))
    pins = tuple(listed(node.master_certs))
    return (*known[:-1], ended, Lead(term=term, node=node.name, pins=pins, time=now))
