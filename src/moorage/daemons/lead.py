# SPDX-License-Identifier: BSD-2-Clause
"""The lead: who takes it at a start, and what becomes of who has lost it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from moorage.copies import CommitLog
from moorage.errors import WrongState
from moorage.node.certificates.authority import Authority
from moorage.store import ConfigStore, StoreLost, raise_term

from . import succession, voting
from .leadership import fenced
from .paths import MasterPlaces

_LOG = logging.getLogger(__name__)
_HEARD = 15
"""How often, once a second, a master that nobody obeys asks for its successor."""
_HANDED = 60
"""The same for one that has let another node lead; then it goes on."""

Opened = tuple[CommitLog, ConfigStore, dict[str, dict[str, bytes]]]
"""A store of which the lead was taken, and its records that are no configuration."""


async def taken(
    places: MasterPlaces,
    authority: Authority,
    opened: Opened,
    reopen: Callable[[], Awaitable[Opened | None]],
) -> Opened | None:
    """Return the store with a term that nodes take orders of.

    Parameters
    ----------
    opened
        The store, with the term that it has counted.
    reopen
        Opens it again, which counts one more; None if the master is told to end.

    Raises
    ------
    WrongState
        If another master has followed this one; its store goes.
    """
    log, config_store, _ = opened
    votes = await _heard(places, authority, log, config_store)
    first = succession.jumped(votes, config_store.term)
    if votes.later(config_store.term) and await _raised(
        places, authority, log, config_store
    ):
        again = await reopen()
        if again is None:
            return None
        opened, first = again, True
    if first:
        with suppress(StoreLost):  # the store says so, too
            await opened[1].commit(None)  # so that copies are of this term, too
    return opened


async def followed(
    places: MasterPlaces,
    authority: Authority,
    log: CommitLog,
    config_store: ConfigStore,
) -> WrongState:
    """Return what a master says whose nodes obey another one, or have to."""
    for _ in range(_HEARD):  # its successor may be about to start
        async with voting.asking(authority) as nodes:
            leader = await succession.follower(
                nodes, config_store.config, config_store.term
            )
        if leader:
            return succession.stand_down(places, log.head, leader)
        await asyncio.sleep(1.0)
    return fenced(config_store.term)


async def handed_over(
    places: MasterPlaces,
    authority: Authority,
    log: CommitLog,
    config_store: ConfigStore,
    stopped: asyncio.Event,
) -> bool:
    """Wait until the node leads that was let lead; then lay this store aside.

    Returns False if it does not, or when the master is told to end meanwhile.
    """
    for _ in range(_HANDED):
        async with voting.asking(authority) as nodes:
            leader = await succession.follower(
                nodes, config_store.config, config_store.term
            )
        if leader:
            said = succession.stand_down(places, log.head, leader)
            _LOG.info("%s", said.message)
            return True
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), 1.0)
        if stopped.is_set():
            return False
    return False


async def _heard(
    places: MasterPlaces,
    authority: Authority,
    log: CommitLog,
    config_store: ConfigStore,
) -> voting.Votes:
    """Return which masters some nodes have heard."""
    async with voting.asking(authority) as nodes:
        votes = await succession.ask_some(nodes, config_store.config)
    leader = succession.followed(votes, config_store.config, config_store.term)
    if leader:
        await config_store.close()
        raise succession.stand_down(places, log.head, leader)
    return votes


async def _raised(
    places: MasterPlaces,
    authority: Authority,
    log: CommitLog,
    config_store: ConfigStore,
) -> bool:
    """Say whether the store was closed, for its next opening takes a higher term."""
    async with voting.asking(authority) as nodes:
        term = await succession.claimed(nodes, config_store.config, log.head)
    if not term:
        return False
    _LOG.warning(
        "some nodes have promised a later term to a failover that broke: this master "
        "goes on with term %s, which more than half have promised it",
        term + 1,
    )
    await config_store.close()
    raise_term(places.store, term)
    return True
