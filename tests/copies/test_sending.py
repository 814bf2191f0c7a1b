# SPDX-License-Identifier: BSD-2-Clause
"""What is sent to candidates: commits, and a whole copy only where nothing else helps.

The store is a file whose thread is ahead of the loop at times, as a master's is.
"""

import asyncio
from pathlib import Path

import pytest

from candidates import led
from moorage.store import SqliteStore, create
from moorage.testing.cluster import ClusterBuilder
from moorage.testing.nodes import SimNodes

_CLIENTS = 4


@pytest.mark.parametrize(
    "each", [pytest.param(60, id="some"), pytest.param(250, marks=pytest.mark.slow)]
)
async def test_no_whole_copy_is_sent_while_several_clients_commit(
    tmp_path: Path, each: int
) -> None:
    store = SqliteStore(tmp_path / "state.sqlite")
    await create(store, ClusterBuilder(3).change())
    await store.close()
    nodes = SimNodes(tmp_path)
    for number in range(1, 4):
        nodes.add(f"node{number}")
    town = await led(tmp_path, nodes, SqliteStore(store.path))
    await town.whole("node2", "node3")
    begun = nodes.calls.count(("node2", "state.begin"))

    async def client(number: int) -> None:
        for turn in range(each):
            await town.commit(number * each + turn)

    await asyncio.gather(*map(client, range(_CLIENTS)))
    assert len(town.acknowledged) == _CLIENTS * each
    sent = [one for one in nodes.calls if one[1] == "state.begin"]
    assert sent.count(("node2", "state.begin")) == begun, "a whole copy, again"
    assert sent.count(("node3", "state.begin")) == 1
    await town.stop()
    await town.log.close()


async def test_a_candidate_with_what_the_log_never_had_gets_a_whole_copy(
    tmp_path: Path,
) -> None:
    """The log of a master that has just started knows what it began with."""
    store = SqliteStore(tmp_path / "state.sqlite")
    await create(store, ClusterBuilder(2).change())
    await store.close()
    nodes = SimNodes(tmp_path)
    for number in range(1, 3):
        nodes.add(f"node{number}")
    town = await led(tmp_path, nodes, SqliteStore(store.path))
    await town.whole("node2")
    head = town.log.head
    assert town.log.after(head) == []
    await town.commit(1)
    (one,) = town.log.after(head) or []
    assert one.head == town.log.head
    assert town.log.after(head._replace(total=head.total + 1)) is None
    await town.stop()
    await town.log.close()
