# SPDX-License-Identifier: BSD-2-Clause
"""A master that was followed by another one becomes a node, and says so."""

import time
from collections import Counter
from pathlib import Path

from moorage.errors import WrongState
from moorage.jobs import Nodes
from moorage.model import Config, Node
from moorage.model.commits import Head
from moorage.node import durable
from moorage.protocol import GetStanding

from . import voting
from .paths import MasterPlaces

_ASKED = 15
"""How many nodes are asked at most, candidates first: a start must not take long."""
_PATIENCE = 3.0
"""Seconds that they may take."""


async def follower(
    nodes: Nodes, config: Config, term: int, patience: float = _PATIENCE
) -> str | None:
    """Return the node of the master that has followed the one of a term, if one has.

    More than half of those that are asked must have heard it. Where too few answer, as
    after a power cut, nobody is taken to have followed: fences keep nodes from harm.

    Parameters
    ----------
    patience
        Seconds that a node may take to answer.
    """
    own = config.node(config.cluster.master_node)
    others = [one for one in config.named(Node) if not one.offline and one != own]
    others.sort(key=lambda one: not one.master_candidate)
    if not others:
        return None
    whom = [own, *others][:_ASKED]
    votes = await voting.ask(nodes, whom, GetStanding(), 0, patience)
    later = votes.later(term)
    leaders = Counter(one.leader for one in later if one.leader != own.name)
    name = leaders.most_common(1)[0][0] if leaders else ""
    return name if len(later) * 2 > len(whom) and name else None


def stand_down(places: MasterPlaces, head: Head, leader: str) -> WrongState:
    """Lay the store of a master that was followed aside; return what it has to say."""
    aside = put_aside(places)
    return WrongState(
        f"the cluster's master is on node {leader} now, and this machine is one of its "
        f"nodes; the store that was here ({head.version} commits, term {head.term}) is "
        f"in {aside}: what the master on {leader} does not have of it was never "
        "acknowledged, unless it was behind then",
        hint=f"on {leader}: gnt-cluster verify",
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
