# SPDX-License-Identifier: BSD-2-Clause
"""The master's process: store, engine, nodes and LUXI, wired together."""

import asyncio
import fcntl
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from moorage import ops
from moorage.api.luxi_methods import AutoArchiveJobs
from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.errors import Failed, NotFound, WrongState
from moorage.jobs import Engine
from moorage.node.client import HttpNodes
from moorage.node.tls import Authority
from moorage.store import SqliteStore, Truth, require_cluster

from . import process, settling
from .places import MasterPlaces

_LOG = logging.getLogger(__name__)
_KEPT = 6 * 3600.0
"""Seconds that a finished job stays in the list."""
_TIDIED = 300.0
WORD = "moorage.cli.moorage"


def run(places: MasterPlaces) -> None:
    """Run the master until it is told to end.

    Raises
    ------
    NotFound
        If there is no cluster.
    WrongState
        If its master runs already.
    """
    _check_cluster(places)
    form = "%(asctime)s %(levelname)s %(message)s"
    logging.basicConfig(level=logging.INFO, format=form)
    with _alone(places):
        asyncio.run(_run(places))


def _check_cluster(places: MasterPlaces) -> None:
    if not places.store.exists():
        raise NotFound(
            f"there is no cluster in {places.root}", hint="gnt-cluster init NAME"
        )


@contextmanager
def _alone(places: MasterPlaces) -> Iterator[None]:
    """Lock the directory; the lock falls with the process, however that ends."""
    handle = os.open(places.root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise WrongState(
            f"a master serves {places.root} already", hint="moorage master stop"
        ) from None
    else:
        yield
    finally:
        os.close(handle)


async def _run(places: MasterPlaces) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    truth, others = await Truth.open(SqliteStore(places.store))
    require_cluster(truth)
    nodes = HttpNodes(Authority(places.keys))
    engine = Engine(truth, nodes, ops.parse)
    await engine.start(others.get("job", {}).values())
    sources = Sources(truth, nodes, engine)
    server = LuxiServer(sources, places.socket)
    await server.start()
    tidying = asyncio.create_task(_tidy(sources))
    _LOG.info("master of term %s serves at %s", truth.term, places.socket)
    await stopped.wait()
    tidying.cancel()
    await server.stop()
    await engine.stop()
    await nodes.close()
    await truth.close()


async def _tidy(sources: Sources) -> None:
    """Put away old jobs, now and then; Ganeti's watcher does it after six hours."""
    await settling.tell_nodes(sources)
    while True:
        await AutoArchiveJobs(age=_KEPT).answer(sources)
        await asyncio.sleep(_TIDIED)


def start(places: MasterPlaces) -> int:
    """Start the master as a process of its own; return its pid when it answers.

    Raises
    ------
    NotFound
        If there is no cluster.
    Failed
        If it does not come up; the sentence ends with its last words.
    """
    _check_cluster(places)
    running = process.running(places.pid, WORD)
    if running:
        return running
    places.socket.unlink(missing_ok=True)
    arguments = ["master", "run", "--dir", str(places.root)]
    pid = process.spawn(arguments, places.pid, places.log)

    def up() -> bool:
        return places.socket.exists() or not process.alive(pid)

    if not process.wait_until(up, 30.0) or not places.socket.exists():
        words = places.log.read_text(errors="replace").splitlines()[-5:]
        raise Failed("the master does not come up:\n" + "\n".join(words))
    return pid


def stop(places: MasterPlaces) -> bool:
    """Stop the master; return whether there was one."""
    pid = process.running(places.pid, WORD)
    if pid:
        process.end(pid)
    places.pid.unlink(missing_ok=True)
    return pid is not None
