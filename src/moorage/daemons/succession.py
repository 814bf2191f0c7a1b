# SPDX-License-Identifier: BSD-2-Clause
"""A master that was followed by another one becomes a node, and says so."""

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moorage import durable
from moorage.errors import WrongState
from moorage.jobs import Nodes
from moorage.model import Config
from moorage.model.commits import Head
from moorage.protocol import GetStanding, HeedTerm

from . import voting
from .paths import MasterPlaces
from .state_directory import give

_ASKED = 15
"""How many nodes are asked at most, candidates first: a start must not take long."""
_PATIENCE = 3.0
"""Seconds that they may take."""


async def ask_some(
    nodes: Nodes, config: Config, patience: float = _PATIENCE
) -> voting.Votes:
    """Ask some nodes which masters they have heard: the own one, then candidates.

    Parameters
    ----------
    patience
        Seconds that a node may take to answer.
    """
    own = config.node(config.cluster.master_node)
    others = [one for one in config.online() if one != own]
    others.sort(key=lambda one: not one.master_candidate)
    if not others:
        return voting.Votes()
    whom = [own, *others][:_ASKED]
    return await voting.ask(nodes, whom, GetStanding(), 0, patience, refusals=True)


def followed(votes: voting.Votes, config: Config, term: int) -> str | None:
    """Return the node of the master that has followed the one of a term, if one has.

    More than half of those that were asked must have heard it: a term that they have
    promised may be of a failover that came to nothing. Where too few answer, as after a
    power cut, nobody is taken to have followed: fences keep nodes from harm.
    """
    own = config.node(config.cluster.master_node).name
    later = [one for one in votes.said.values() if one.led > term]
    leaders = Counter(one.leader for one in later if one.leader != own)
    name = leaders.most_common(1)[0][0] if leaders else ""
    return name if len(later) * 2 > votes.asked and name else None


def jumped(votes: voting.Votes, term: int) -> bool:
    """Whether a term is so far above what was heard that copies seem of another past.

    A copy that has all, but is of the term before, would look as if a later master had
    led without it; so the first commit of such a term is made at once.
    """
    led = [one.led for one in votes.said.values()]
    return bool(led) and term - max(led) >= voting.LEAP


async def follower(
    nodes: Nodes, config: Config, term: int, patience: float = _PATIENCE
) -> str | None:
    """Ask some nodes; return the node of the master that has followed, if one has."""
    return followed(await ask_some(nodes, config, patience), config, term)


@contextmanager
def drafted(places: MasterPlaces) -> Iterator[Path]:
    """Yield a directory for a state that is laid from there where a master finds it.

    What lies there at the end survives a power loss, and belongs to the master's user.
    """
    draft = places.root / "draft"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    try:
        yield draft
        durable.sync(places.root)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    for path in places.root.iterdir():
        give(path)


async def claimed(
    nodes: Nodes, config: Config, head: Head, patience: float = _PATIENCE
) -> int:
    """Return a higher term that more than half of the nodes have promised this master.

    A failover that broke may leave some nodes waiting for a master that never comes,
    and refusing the living one. That one asks for a term as a candidate does: so of it
    and of a failover that goes on meanwhile, one gets more than half. It asks only
    while more than half take its orders, and while nobody has heard a later master.

    Parameters
    ----------
    head
        Where this master's store stands, of the term that it has taken.
    patience
        Seconds that a node may take to answer.

    Returns
    -------
    The term; 0 if none is needed, or none may be taken.
    """
    voters = config.online()
    votes = await voting.ask(nodes, voters, GetStanding(), 0, patience)
    highest = votes.highest(head.term, voting.keepers(config))
    obeying = len(votes.said) - len(votes.later(head.term))
    if (
        highest <= head.term
        or obeying * 2 <= votes.asked
        or not _newest(votes, head, config)
    ):
        return 0
    term = highest + voting.LEAP
    promised = await voting.ask(nodes, voters, HeedTerm(), term, patience)
    return term if promised.majority and _newest(promised, head, config) else 0


def _newest(votes: voting.Votes, head: Head, config: Config) -> bool:
    """Whether nobody has heard another master of a term, or has what it made."""
    among = voting.keepers(config)
    led = votes.successor(head.term - 1, among)
    return led is None and votes.further(head, among) is None


def stand_down(places: MasterPlaces, head: Head, leader: str) -> WrongState:
    """Lay the store of a master that was followed aside; return what it has to say.

    The fact ``leader`` tells it apart: all is as it should be, and no start failed.
    """
    aside = put_aside(places)
    return WrongState(
        f"the cluster's master is on node {leader} now, and this machine is one of its "
        f"nodes; the store that was here ({head.version} commits, term {head.term}) is "
        f"in {aside}: what the master on {leader} does not have of it was never "
        "acknowledged, unless it was behind then",
        hint=f"on {leader}: gnt-cluster verify",
        leader=leader,
    )


def put_aside(places: MasterPlaces) -> Path | None:
    """Lay the store and keys of a master that was followed where no master finds them.

    Returns the directory where they are; None if there was nothing.
    """
    found = [*places.root.glob(f"{places.store.name}*"), places.keys]
    found = [one for one in found if one.exists() and not one.name.endswith(".lock")]
    if not places.store.exists():
        return None
    aside = places.root / f"former-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns()}"
    aside.mkdir(mode=0o700)
    # The store itself goes last: without it no master starts.
    for one in sorted(found, key=lambda one: one == places.store):
        one.replace(aside / one.name)
    durable.sync(places.root)
    return aside
