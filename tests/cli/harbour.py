# SPDX-License-Identifier: BSD-2-Clause
"""A master on simulated nodes, with disks and instances, and what types at it."""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.testing.cluster import ClusterBuilder, SimCluster


class Harbour(NamedTuple):
    cluster: SimCluster
    types: Callable[..., Any]
    refuses: Callable[..., str]
    refuses_out: Callable[..., str]
    any: Callable[..., list[str]]


def _builder() -> ClusterBuilder:
    return (
        ClusterBuilder()
        .disk("root", "plain", logical_id=("xenvg", "vol-root"), nodes=("node2",))
        .disk("data1")
        .instance("web1", "node2", ("root",))
        .instance("web2", "node3")
    )


async def _serve(
    root: Path, box: list[SimCluster], ready: threading.Event, done: threading.Event
) -> None:
    cluster = await SimCluster.start(root / "nodes", _builder())
    record = {"size": 1024, "data": "", "tags": "", "origin": "", "devices": []}
    cluster.nodes.san.logical["node2 xenvg/vol-root"] = record
    sources = Sources(cluster.config_store, cluster.nodes, cluster.engine)
    server = LuxiServer(sources, root / "luxi.sock")
    await server.start()
    box.append(cluster)
    ready.set()
    await asyncio.to_thread(done.wait)
    await server.stop()
    await cluster.stop()


@contextmanager
def harbour(typed: Any) -> Iterator[Harbour]:
    """Start a master; return it with what types at it."""
    ready, done, box = threading.Event(), threading.Event(), list[SimCluster]()
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "nodes").mkdir()
        thread = threading.Thread(
            target=lambda: asyncio.run(_serve(root, box, ready, done))
        )
        thread.start()
        assert ready.wait(20)
        where = {"MOORAGE_SOCKET": f"{directory}/luxi.sock"}

        def types(line: str) -> str:
            screen = typed(line, **where)
            assert screen.status == 0, screen.err
            return str(screen.out)

        def refuses(line: str) -> str:
            screen = typed(line, **where)
            assert screen.status == 1, screen.out
            return " ".join(screen.err.split())

        def refuses_out(line: str) -> str:
            screen = typed(line, **where)
            assert screen.status == 1, screen.err
            return str(screen.out)

        def findings(line: str) -> list[str]:
            shown = typed(line, **where).out.splitlines()
            return [one for one in shown if one.startswith("  - ")]

        yield Harbour(box[0], types, refuses, refuses_out, findings)
        done.set()
        thread.join(20)
