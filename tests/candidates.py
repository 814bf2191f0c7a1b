# SPDX-License-Identifier: BSD-2-Clause
"""A master whose candidates are simulated nodes with real copies on their disks."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from moorage.copies import CommitLog, Pace, Replication
from moorage.daemons import failover
from moorage.daemons.leadership import Standing
from moorage.daemons.paths import MasterPlaces, NodePlaces
from moorage.jobs import Nodes
from moorage.model import Change, successor
from moorage.model.commits import Head, Key
from moorage.node.records.state_copy import StateCopy
from moorage.store import ConfigStore, Store, checksums, inspect
from moorage.testing.nodes import SimNodes

QUICK = Pace(patience=0.4, beat=0.05, again=0.02, checked=3600.0)
PATIENT = replace(QUICK, patience=1.2)
"""For steps that take a while each, also where the machine is busy."""
LEDGER = "ledger"
"""Kind of the records that are counted."""
KEYS = {"ca.key": b"key", "ca.pem": b"pem", "master.pem": b"own"}


@dataclass
class Town:
    """A master, its store, and what it knows of its copies."""

    directory: Path
    nodes: SimNodes
    store: Store
    log: CommitLog
    config_store: ConfigStore
    standing: Standing
    copies: Replication
    life: asyncio.Task[None]
    keys: dict[str, bytes]
    acknowledged: list[int] = field(default_factory=list)

    async def commit(self, number: int) -> None:
        """Commit a record, and note it when it is acknowledged."""
        await self.config_store.commit(None, [((LEDGER, str(number)), b"x" * 50)])
        self.acknowledged.append(number)

    async def mark(self, name: str, **changes: Any) -> None:
        """Change a node's record."""
        node = self.config_store.config.node(name)
        await self.config_store.commit(Change((successor(node, 1.0, **changes),)))

    def state(self, name: str) -> str:
        """Return how the copy on a node is."""
        uuid = self.config_store.config.node(name).uuid
        return next((s.state for s in self.copies.status() if s.node == uuid), "none")

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until a claim is true."""
        async with asyncio.timeout(20):
            while not true():  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def whole(self, *names: str) -> None:
        """Wait until the copies on some nodes are whole, and nothing is on its way."""

        def whole() -> bool:
            told = {one.node: one for one in self.copies.status()}
            found = [
                told.get(self.config_store.config.node(name).uuid) for name in names
            ]
            return all(
                one and (one.state, one.commits) == ("current", 0) for one in found
            )

        await self.until(whole)

    async def stop(self) -> None:
        """End the master, with nothing under way on the nodes afterwards."""
        self.life.cancel()
        await asyncio.gather(self.life, return_exceptions=True)
        await self.nodes.settle()


def on_disk(town: Town, name: str) -> tuple[Head | None, Mapping[Key, bytes]]:
    """Return what lies on a candidate's disk, read by somebody else than its agent."""
    path = StateCopy(town.directory / name / "state").path
    if path is None:
        return None, {}
    found = inspect(path, live=True)
    if found.faults:
        raise AssertionError(found.faults)
    total = checksums.combined(
        checksums.of_record(*record) for record in found.records.items()
    )
    return Head(found.version, found.term, total), found.records


async def led(
    directory: Path,
    nodes: SimNodes,
    store: Store,
    way: Nodes | None = None,
    pace: Pace = QUICK,
) -> Town:
    """Start a master on a store.

    Parameters
    ----------
    way
        Its way to the nodes, where that is no plain one.
    """
    log = CommitLog(store)
    config_store, _ = await ConfigStore.open(log)
    standing = Standing(way or nodes)
    keys = dict(KEYS)
    copies = Replication(
        config_store,
        log,
        standing,
        lambda: dict(keys),
        lambda within: standing.superseded(config_store, within),
        pace,
    )
    config_store.settled = copies.settled
    life = asyncio.create_task(copies.run())
    return Town(
        directory, nodes, store, log, config_store, standing, copies, life, keys
    )


async def follow(town: Town, name: str, way: Any = None, **how: bool) -> Any:
    """Let a candidate take over; return what it says, with what it said before."""
    root = town.directory / "homes" / name
    (root / "keys").mkdir(parents=True, exist_ok=True)
    (root / "keys" / "node.pem").touch()
    (root / "keys" / "name").write_text(name)
    if not (root / "run").exists():
        (root / "run").symlink_to(town.directory / name)
    said: list[str] = []
    told = await failover.promote(
        way or town.nodes,
        NodePlaces(root),
        MasterPlaces(town.directory / f"master-{name}"),
        voting=how.get("voting", True),
        lossy=how.get("lossy", False),
        patience=0.2,
        agreed=said.extend,
    )
    return [*said, *told]
