# SPDX-License-Identifier: BSD-2-Clause
"""The one truth: the current snapshot, and the only way to change it."""

import asyncio
from collections.abc import Sequence

from msgspec import json

from moorage.errors import Exists, NotFound
from moorage.model import KIND_OF, KINDS, Change, Config, apply, load
from moorage.model.change import decode, encode

from .base import Store, Write

_SERIAL = ("config", "serial_no")


class Truth:
    """The configuration in memory, kept equal to the store.

    Readers take :attr:`config`, a snapshot that never changes. Writers call
    :meth:`commit`; one at a time gets through.

    Attributes
    ----------
    config
        The newest snapshot.
    term
        Number of this leadership; nodes refuse steps of earlier ones.
    """

    def __init__(self, store: Store) -> None:
        self.config = Config()
        self.term = 0
        self._store = store
        self._version = 0
        self._writer = asyncio.Lock()

    @classmethod
    async def open(cls, store: Store) -> tuple["Truth", dict[str, dict[str, bytes]]]:
        """Take the lead of `store`.

        Returns
        -------
        The truth, and the records that are not configuration, by kind and name.
        """
        truth = cls(store)
        truth.term = await store.lead()
        stored = await store.load()
        truth._version = stored.version
        others: dict[str, dict[str, bytes]] = {}
        entities = []
        for (kind, name), value in stored.records.items():
            if kind in KINDS:
                entities.append(decode(kind, json.decode(value)))
            else:
                others.setdefault(kind, {})[name] = value
        serial_no = int(others.pop("config", {}).get("serial_no", b"0"))
        truth.config = load(serial_no, entities)
        return truth, others

    async def commit(
        self, change: Change | None, records: Sequence[Write] = ()
    ) -> Config:
        """Apply `change` and write `records`, all or nothing, durably.

        Raises
        ------
        Conflict
            If an object of `change` is not the successor of what is stored; nothing
            is written.
        """
        # A caller that is cancelled must not leave the store a version ahead of us.
        work = asyncio.create_task(self._commit(change, records))
        work.add_done_callback(_heard)
        return await asyncio.shield(work)

    async def _commit(self, change: Change | None, records: Sequence[Write]) -> Config:
        async with self._writer:
            config = apply(self.config, change) if change else self.config
            writes = [*_writes(change, config), *records]
            self._version = await self._store.commit(writes, expected=self._version)
            self.config = config
            return config

    async def close(self) -> None:
        """Let go of the store."""
        async with self._writer:
            await self._store.close()


def _heard(work: asyncio.Task[Config]) -> None:
    """Take note of the end of a commit that its caller may not wait for."""
    if not work.cancelled():
        work.exception()


def _writes(change: Change | None, config: Config) -> list[Write]:
    if change is None:
        return []
    dropped: list[Write] = [
        ((KIND_OF[type(old)], old.uuid), None) for old in change.drop
    ]
    put: list[Write] = [
        ((KIND_OF[type(new)], new.uuid), json.encode(encode(new))) for new in change.put
    ]
    return [*dropped, *put, (_SERIAL, b"%d" % config.serial_no)]


async def create(store: Store, change: Change) -> None:
    """Write the first configuration of a cluster into an empty store.

    Raises
    ------
    Exists
        If there is a cluster already.
    """
    truth, _ = await Truth.open(store)
    if truth.config.objects:
        raise Exists("there is a cluster already", hint="gnt-cluster info")
    await truth.commit(change)


def require_cluster(truth: Truth) -> None:
    """Raise `NotFound` if the store holds no cluster."""
    if not truth.config.objects:
        raise NotFound("there is no cluster yet", hint="gnt-cluster init NAME")
