# SPDX-License-Identifier: BSD-2-Clause
"""The address that moves with the master is set on the node whose master leads.

The node is told again and again, for some seconds each time, so it is gone soon where
nobody leads any more. Whoever gets the lead takes it off the other candidates first.
"""

import asyncio
import logging
from contextlib import suppress

from moorage.api.query import Sources
from moorage.errors import MoorageError
from moorage.jobs.turns import together
from moorage.model import Change, Node
from moorage.model.master_address import MasterAddress, held_address
from moorage.ops.cluster.master_address import LEASE, candidates
from moorage.protocol import DropAddress, HoldAddress, silent

_LOG = logging.getLogger(__name__)
_EACH = LEASE / 3
"""Seconds between two times that the node is told."""
_AGAIN = 1.0
"""The same, as long as it cannot have it: another machine may still."""
_PATIENCE = 2.0
"""Seconds in which other candidates answer that do not hold up the next master."""


class _Address:
    """What nodes were told of the address by this master.

    Attributes
    ----------
    complaint
        What was said last in the log.
    """

    def __init__(self, at: Sources) -> None:
        self.complaint = ""
        self._at = at
        self._dropped: set[tuple[str, MasterAddress]] = set()

    async def bring(self) -> bool:
        """Have the address where it is to be; say whether it is there."""
        config = self._at.config_store.config
        wanted = held_address(config.cluster)
        if wanted is None:
            return True
        own = config.node(config.cluster.master_node)
        others = [one for one in candidates(config) if one != own]
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await together(self._drop(one, wanted) for one in others)
        try:
            verb = HoldAddress(address=wanted, seconds=LEASE)
            term = self._at.config_store.term
            async with asyncio.timeout(LEASE):
                await self._at.nodes.call(own, verb, term, silent)
        except TimeoutError:
            return False
        except MoorageError as error:
            if self.complaint != error.message:
                self.complaint = error.message
                _LOG.warning("the master's address %s: %s", wanted.ip, error)
            return False
        if self.complaint:
            _LOG.info("the master's address %s is up", wanted.ip)
        self.complaint = ""
        return True

    async def _drop(self, node: Node, address: MasterAddress) -> None:
        """Take it off another node, once: there it would go by itself, but later."""
        if (node.uuid, address) in self._dropped:
            return
        verb, term = DropAddress(address=address), self._at.config_store.term
        with suppress(MoorageError):
            await self._at.nodes.call(node, verb, term, silent)
            self._dropped.add((node.uuid, address))


async def keep(at: Sources) -> None:
    """Have the address on this master's node, for ever, if the cluster has one."""
    changed = asyncio.Event()

    def hear(change: Change) -> None:
        if any(one.uuid == at.config_store.config.cluster.uuid for one in change.put):
            changed.set()

    at.config_store.watchers.append(hear)
    address = _Address(at)
    try:
        while True:
            changed.clear()
            there = await address.bring()
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), _EACH if there else _AGAIN)
    finally:
        at.config_store.watchers.remove(hear)
