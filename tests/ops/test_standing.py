# SPDX-License-Identifier: BSD-2-Clause
"""A master ends when its nodes have left it, and not for one node's word."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from moorage.api.query import Sources
from moorage.daemons.leadership import Standing
from moorage.errors import MoorageError, Stale, Unreachable
from moorage.protocol import GetFacts
from moorage.testing.cluster import ClusterBuilder, SimCluster

REFUSED = Stale("a master of term 9 has spoken", term=3, seen=9)
SILENT = Unreachable("no answer", sent=False)
FULL = MoorageError("no space left on device")


class Words:
    """Nodes that say what they are told to."""

    def __init__(self, **words: Any) -> None:
        self.words = words
        self.asked = 0
        self.all_asked = asyncio.Event()

    async def call(self, node: Any, *_: Any) -> Any:
        self.asked += 1
        if self.asked > len(self.words):
            self.all_asked.set()
        word = self.words[node.name]
        if isinstance(word, Exception):
            raise word
        return word


@pytest.mark.parametrize(
    ("words", "over"),
    [
        ((REFUSED, REFUSED, REFUSED), True),
        ((REFUSED, REFUSED, SILENT), True),
        ((REFUSED, SILENT, SILENT), False),
        ((REFUSED, REFUSED, {}), True),
        ((REFUSED, REFUSED, FULL), True),
        ((REFUSED, {}, FULL), False),
    ],
)
async def test_what_nodes_say_of_their_master(
    words: tuple[Any, ...], over: bool, tmp_path: Path
) -> None:
    cluster = await SimCluster.start(tmp_path, ClusterBuilder(3))
    nodes = Words(node1=words[0], node2=words[1], node3=words[2])
    standing = Standing(nodes)
    watching = asyncio.create_task(
        standing.watch(Sources(cluster.config_store, standing, cluster.engine))
    )
    with pytest.raises(Stale):
        await standing.call(cluster.config.node("node1"), GetFacts(), 3, print)
    await nodes.all_asked.wait()
    for _ in range(100):
        await asyncio.sleep(0)
    assert standing.over.is_set() is over
    watching.cancel()
    await cluster.stop()
