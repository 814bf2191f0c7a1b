# SPDX-License-Identifier: BSD-2-Clause
"""Who is to lead next: a key with a lease, so that no wish outlives who has it.

Who leads sees it and ends as planned; who waits, and is not meant, leaves the lead be.
It is for order, as the lead is: whoever can write it can write the state.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from moorage.store.base import StoreError

from . import gateway
from .gateway import Gateway, Lease, now
from .layout import Keys
from .lead import check_ours
from .settings import EtcdSettings

_LOOK = 0.5
"""Seconds between two looks of who leads."""
_LIMIT = 5.0
"""Seconds that etcd gets for an answer."""


@asynccontextmanager
async def wish(settings: EtcdSettings, seconds: int) -> AsyncIterator[None]:
    """Wish that this machine's node leads next, until this ends, or that much later.

    Raises
    ------
    StoreError
        If etcd gives no answer, refuses, or holds another cluster's state.
    """
    etcd, keys = Gateway(settings), Keys(settings.prefix)
    until = now() + _LIMIT
    try:
        _, cluster = await etcd.range(keys.cluster, None, until)
        check_ours(settings, cluster)
        lease = await etcd.ask("lease/grant", {"TTL": seconds}, Lease, until)
        try:
            put = gateway.put(keys.wish, settings.node.encode(), lease.ID)
            await etcd.txn([], [put], [], until)  # whose comes last counts
            yield
        finally:
            await etcd.revoke(lease.ID, now() + _LIMIT)
    finally:
        await etcd.close()


@contextmanager
def wishing(settings: EtcdSettings, seconds: int) -> Iterator[None]:
    """Wish the same for a command that waits meanwhile without a loop of events.

    So Ctrl-C ends its waiting at once, and the wish is there until it has ended.
    """
    wanted = wish(settings, seconds)
    with asyncio.Runner() as runner:
        runner.run(wanted.__aenter__())
        try:
            yield
        finally:
            runner.run(wanted.__aexit__(None, None, None))


async def wished(settings: EtcdSettings) -> None:
    """Wait until another node is wished to lead than this machine's."""
    etcd, keys = Gateway(settings), Keys(settings.prefix)
    try:
        while True:
            try:
                _, found = await etcd.range(keys.wish, None, now() + _LIMIT)
            except StoreError:
                found = []  # whether the lead is lost, others look after
            if found and found[0].value != settings.node.encode():
                return
            await asyncio.sleep(_LOOK)
    finally:
        await etcd.close()
