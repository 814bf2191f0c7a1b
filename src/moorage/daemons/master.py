# SPDX-License-Identifier: BSD-2-Clause
"""The master's process: store, engine, nodes and LUXI, wired together."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from moorage import durable, ops
from moorage.api.luxi_server import LuxiServer
from moorage.api.query import Sources
from moorage.api.store_health import KnownHealth
from moorage.copies import CommitLog, Replication
from moorage.directories import SOCKET
from moorage.errors import (
    Failed,
    MoorageError,
    WrongState,
)
from moorage.jobs import Engine, queue
from moorage.model import Config
from moorage.node.calling.aside import NodesAside
from moorage.node.certificates.authority import Authority
from moorage.node.records.copies import public_keys
from moorage.ops import certificates, hooks
from moorage.ops.backup import carrying
from moorage.protocol.sender import Sender, ourselves
from moorage.record_types import look_at_types
from moorage.store import ConfigStore, Elsewhere, StoreLost, etcd_of
from moorage.store.etcd import health, troubles

from . import (
    chores,
    doors,
    lead,
    log_limit,
    moving,
    opening,
    pauses,
    process,
    standby,
    systemd,
    watched,
)
from .leadership import Standing
from .master_process import LEAVE, check_cluster, no_store
from .opening import STORE_LOST
from .paths import KEPT, MasterPlaces
from .state_directory import claim
from .supervisor import HANDED_OVER

_LOG = logging.getLogger(__name__)
_LAST_WORDS = 0.2
"""Seconds in which those who asked for a change learn that the store is lost."""
BROKEN = 70
"""Exit status of a defect of ours; ``EX_SOFTWARE``."""


def run(places: MasterPlaces) -> None:
    """Run the master until it is told to end.

    It ends the process with status :data:`STORE_LOST` when the store cannot be
    written: nobody must go on in memory with what is on no disk; and when it has the
    lead in etcd and may not use it, to look again. With
    :data:`HANDED_OVER` it ends when another node leads.

    Raises
    ------
    NotFound
        If there is no cluster.
    WrongState
        If its master runs already, or others could write to its directory.
    Damaged
        If its store is none.
    """
    check_cluster(places)
    claim(places.root, KEPT)
    pauses.begin()
    log_limit.write_log()
    log_limit.allow_descriptors()
    look_at_types()  # before there are threads
    refusal = f"a master serves {places.root} already"
    with process.held(places.lock, refusal, "moorage master stop"):
        try:
            status = asyncio.run(_run(places))
        except Elsewhere as error:
            if not moving.came(places, error):
                raise
            _LOG.warning("%s: starting again there", error.message)
            status = STORE_LOST
        except MoorageError as error:
            if not error.facts.keys() & {"leader", "barred"}:
                raise
            _LOG.warning("%s; hint: %s", error.message, error.hint)
            status = STORE_LOST if "barred" in error.facts else HANDED_OVER
        except StoreLost as error:
            _LOG.critical("the lead or the store is lost: %s", error)
            status = STORE_LOST
        except Exception:  # noqa: BLE001 - told apart from a refusal, for a restart
            _LOG.exception("the master broke")
            status = BROKEN
    if status:
        sys.exit(status)


def authority(places: MasterPlaces) -> Authority:
    """Return the cluster's certificate authority.

    Raises
    ------
    Failed
        If its keys cannot be read.
    """
    try:
        return Authority(places.keys)
    except (OSError, ValueError) as error:
        raise Failed(
            f"the cluster's keys in {places.keys} cannot be read: {error}; put a copy "
            "in their place"
        ) from error


async def _run(places: MasterPlaces) -> int:
    asyncio.get_running_loop().set_exception_handler(log_limit.complain)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    if places.socket == Path(SOCKET):
        claim(places.socket.parent, "the master's socket")
    else:
        durable.make(places.socket.parent)
    server = LuxiServer(None, places.socket, doors=doors.of(places))
    await server.start()
    with contextlib.suppress(OSError):  # the lock tells it, on a full disk, too
        places.pid.write_text(f"{os.getpid()}\n")
    signs = systemd.Signs()
    signs.begin()  # from now on, whoever asks is told why it has to wait
    try:
        opened = await opening.opened(places, server, stopped)
        return await _serve(places, server, *opened, stopped) if opened else 0
    finally:
        signs.end()
        await server.stop()  # a refusal's sentence is the last of what is said
        places.pid.unlink(missing_ok=True)


async def _serve(
    places: MasterPlaces,
    server: LuxiServer,
    log: CommitLog,
    config_store: ConfigStore,
    records: dict[str, dict[str, bytes]],
    stopped: asyncio.Event,
) -> int:
    """Serve until the end; return the exit status."""
    if not config_store.config.objects:
        await config_store.close()
        raise no_store(f"{places.store} holds no cluster")
    queue.read(records)  # no node is asked for what cannot be carried on
    keys = authority(places)
    opened = log, config_store, records
    if places.etcd.exists():  # which knows who leads, unless it is of before
        try:
            await standby.taken(places, keys, config_store, records)
            await standby.check_obeyed(keys, config_store)
        except WrongState as error:
            if await opening.stopped_while_barred(server, error, stopped):
                return 0
            raise
        return await _lead(places, server, keys, opened, stopped)
    keys.complete()
    reopen = partial(opening.opened, places, server, stopped)
    leading = await lead.taken(places, keys, opened, reopen)
    if leading is None:
        return 0
    return await _lead(places, server, keys, leading, stopped)


async def _lead(
    places: MasterPlaces,
    server: LuxiServer,
    keys: Authority,
    leading: lead.Opened,
    stopped: asyncio.Event,
) -> int:
    """Look after the cluster until the end; return the exit status."""
    log, config_store, records = leading
    nodes = NodesAside(keys, _sender(config_store.config), log.look)
    standing = Standing(nodes)
    copies = _replication(places, log, config_store, standing)
    engine = Engine(config_store, standing, ops.parse, hooks=hooks.of)
    standing.masters = lambda: replace(
        certificates.masters(config_store.config),
        doors=carrying.doors(engine.jobs.values()),
    )
    # Jobs go on at once, and none may if a candidate has heard a later master.
    copying = await copies.begin()
    if not await standing.left(config_store):
        await engine.start(records)
        _LOG.info("master of term %s serves at %s", config_store.term, places.socket)
    pauses.keep_short()
    server.look = log.look
    sources = server.sources = Sources(
        config_store,
        standing,
        engine,
        copies=copies.status,
        lines=nodes.line,
        store=_health(places),
    )
    followed = asyncio.Event()
    more = standby.chores(places, keys, followed)
    begun = chores.begun(sources, standing.watch, *more)
    ends = stopped, standing.over, followed
    await _able(nodes, copying, config_store.lost, copies.wished, *ends)
    for one in begun:
        one.cancel()
    handed = await _ended(server, engine, config_store, copies, *ends)
    copying.cancel()  # now that no job does anything more
    if config_store.lost.is_set():
        _LOG.critical("the store is lost: ending, to start from what it holds")
        await asyncio.sleep(_LAST_WORDS)
        os._exit(STORE_LOST)
    await nodes.close()
    await config_store.close()
    if places.etcd.exists():
        return standby.ended(config_store.term, standing.over, stopped, followed)
    if standing.over.is_set():
        raise await lead.followed(places, keys, log, config_store)
    if handed and await lead.handed_over(places, keys, log, config_store, stopped):
        return HANDED_OVER
    if stopped.is_set() or not copies.wished.is_set():
        return 0
    _LOG.warning("the next master does not lead: this one goes on")
    return STORE_LOST


async def _ended(
    server: LuxiServer,
    engine: Engine,
    config_store: ConfigStore,
    copies: Replication,
    *ends: asyncio.Event,
) -> bool:
    """Let jobs come to a stop; say whether another node was let lead.

    When the store is lost, those who wait still learn that.
    """
    if not config_store.lost.is_set():
        await engine.leave(LEAVE)
    if config_store.lost.is_set():
        return False
    await server.stop()  # nobody asks for what could no longer be written
    await config_store.end()
    return not any(one.is_set() for one in ends) and await copies.release()


def _replication(
    places: MasterPlaces, log: CommitLog, config_store: ConfigStore, standing: Standing
) -> Replication:
    """Return the copies that commits wait for from now on."""
    made = Replication(
        config_store,
        log,
        standing,
        lambda: public_keys(places.keys),
        lambda within: standing.superseded(config_store, within),
    )
    made.wanted = not places.etcd.exists()
    config_store.settled = made.settled
    standing.copies = made.status
    standing.watcher = watched.since_now(places)
    settings = etcd_of(places.store)
    if settings:
        standing.store = partial(troubles, settings)
    return made


def _health(places: MasterPlaces) -> KnownHealth:
    settings = etcd_of(places.store)
    return KnownHealth(partial(health, settings) if settings else None)


def _sender(config: Config) -> Sender:
    """Return what this master says of itself to the nodes."""
    cluster = config.cluster
    node = config.node(cluster.master_node)
    return ourselves(node.name, node.primary_ip, cluster.cluster_name)


async def _able(
    nodes: NodesAside, copying: asyncio.Task[None], *ends: asyncio.Event
) -> None:
    """Wait for an end; raise the defect that leaves this master unable to go on.

    What the next one can do: ask nodes, and have what it tells as done on candidates.
    """
    waits = [asyncio.create_task(event.wait()) for event in (nodes.broken, *ends)]
    await asyncio.wait([copying, *waits], return_when=asyncio.FIRST_COMPLETED)
    for one in waits:
        one.cancel()
    if nodes.broken.is_set():
        raise RuntimeError("nodes can be asked no more")
    if copying.done():
        copying.result()
