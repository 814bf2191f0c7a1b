# SPDX-License-Identifier: BSD-2-Clause
"""``moorage store move``: the state from SQLite to etcd, or from there to SQLite.

The master is stopped meanwhile, as for an upgrade: a job that runs gets its ten
seconds, then it stops between two tasks, and the next master carries it on. Guests know
nothing of it.
"""

import asyncio
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from moorage import durable
from moorage.errors import Exists, Failed, Refused, WrongState
from moorage.jobs.job import decode as decode_job
from moorage.model import Config
from moorage.model.commits import Head, Key
from moorage.store import (
    Elsewhere,
    SqliteStore,
    etcd_of,
    inspect,
    lay,
    loaded,
)
from moorage.store.base import ADVICE
from moorage.store.etcd import EtcdSettings, EtcdStore, settings_from, to_bytes, wishing
from moorage.units import counted

from . import etcd_prefix, master_process, moving, peaceful, process
from .moving import Move
from .paths import MasterPlaces
from .state_directory import as_owner

SQLITE = "sqlite"
_AHEAD = 60
"""Seconds that the master gets to stop, before one that waits may lead after all."""
_PAST = 3.0
"""Seconds beyond a lease in which a lead ends that a killed process has left."""


class Plan(NamedTuple):
    """What a move would do.

    Attributes
    ----------
    etcd
        Where to; None for the SQLite file.
    told
        What there is to say, a line each.
    over
        Whether it is decided already, or taken back: it only remains to clear up.
    """

    move: Move
    told: list[str]
    over: bool = False


def plan(places: MasterPlaces, word: str) -> Plan:
    """Return what a move to `word` would do; nothing is changed.

    Parameters
    ----------
    word
        ``sqlite``, or where in etcd, as for ``gnt-cluster init --store``.

    Raises
    ------
    BadInput
        If the settings are off.
    Exists
        If the state is there already, or another one.
    WrongState
        If another move was begun, or it is to be typed on another machine.
    """
    master_process.check_cluster(places)
    given = None if word == SQLITE else settings_from(word)
    return as_owner(places.root, _plan, places, given)


def _plan(places: MasterPlaces, given: EtcdSettings | None) -> Plan:
    now, begun = etcd_of(places.store), moving.noted(places)
    if begun and begun.etcd and given and _same(begun.etcd, given):
        known = begun.etcd  # its members and passwords may be others by now
        etcd = replace(given, cluster=known.cluster, node=known.node)
        begun = Move(id=begun.id, etcd=etcd)
    decided = ["this move was decided: what is left is to clear up"]
    if begun and not _same(begun.etcd, given):
        return _back(begun, now, given)
    if begun and _same(now, given):
        return Plan(begun, decided, over=True)
    _check_way(places, now, given)
    try:
        return _new(places, now, begun or Move(id=str(uuid.uuid4()), etcd=given))
    except Elsewhere as error:
        if begun and error.facts.get("move") == begun.id:
            return Plan(begun, decided)
        raise


def _check_way(
    places: MasterPlaces, now: EtcdSettings | None, given: EtcdSettings | None
) -> None:
    if _same(now, given):
        raise Exists(f"the state is in {_label(places, given)} already")
    if now and given:
        raise WrongState(
            f"the state is in {now.label}: from etcd it moves to SQLite only",
            hint=f"moorage store move {SQLITE}",
        )


def _new(places: MasterPlaces, now: EtcdSettings | None, move: Move) -> Plan:
    """Return the plan of a move that is not decided, by what the store holds."""
    found = inspect(places.store, live=process.holder(places.lock) is not None)
    if found.faults:
        raise Failed(f"{places.store} is damaged: {found.faults[0]}", hint=ADVICE)
    config, others = loaded(found.records)
    if now:
        _master_here(now, config)
    if move.etcd and not moving.noted(places):
        own = config.cluster.master_node
        drawn = replace(move.etcd, cluster=str(uuid.uuid4()), node=own)
        asyncio.run(_check_free(move.etcd, drawn))
        move = Move(id=move.id, etcd=drawn)
    jobs = [decode_job(one) for one in others.get("job", {}).values()]
    left = counted(sum(not job.finished for job in jobs), "job")
    there = f"from {_label(places, now)} to {_label(places, move.etcd)}"
    told = [
        f"{len(found.records)} records, {found.version} commits: {there}",
        f"The master stops meanwhile; not ended, and carried on afterwards: {left}",
    ]
    return Plan(move, told)


async def _check_free(given: EtcdSettings, drawn: EtcdSettings) -> None:
    if given.cluster:
        raise Exists(
            "these are the settings of a cluster that is made already",
            hint="leave 'cluster' out, and give a prefix that nobody uses",
        )
    await etcd_prefix.check_free(drawn)


def _back(begun: Move, now: EtcdSettings | None, given: EtcdSettings | None) -> Plan:
    """Return the plan of who takes a move back that was begun, and not decided."""
    if _same(now, given):
        return Plan(begun, ["the move that was begun is taken back"], True)
    there = begun.etcd.label if begun.etcd else SQLITE
    raise WrongState(
        f"a move to {there} was begun here, and did not end",
        hint="type that again, or name the place where the state is, to take it back",
    )


def _same(one: EtcdSettings | None, other: EtcdSettings | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.label == other.label


def _label(places: MasterPlaces, etcd: EtcdSettings | None) -> str:
    return etcd.label if etcd else str(places.store)


def do(places: MasterPlaces, wanted: Plan) -> None:
    """Carry a plan out; the master runs again afterwards if it ran, or if one was cut.

    Raises
    ------
    WrongState
        If another move or an import is under way.
    MoorageError
        If something is in the way; then the state is where it was.
    """
    busy = f"a move or an import of the state in {places.root} is under way"
    with process.held(places.importing, busy, "wait for its end"):
        now = etcd_of(places.store)
        if now and (not wanted.over or peaceful.waits(places) is None):
            # Masters that wait on candidates leave the lead be while this one is
            # stopped.
            with wishing(now, _AHEAD):
                _stopped(places, wanted)
        else:
            _stopped(places, wanted)


def _stopped(places: MasterPlaces, wanted: Plan) -> None:
    cut = moving.noted(places) is not None  # with the master stopped, or not
    was_running = master_process.runs(places)
    as_owner(places.root, moving.note, places, wanted.move)
    try:
        master_process.stop(places)
        as_owner(places.root, carry_out, places, wanted)
    finally:
        if was_running or cut:
            master_process.stop(places)  # Ctrl-C may have found it ending
            master_process.start(places)


def carry_out(places: MasterPlaces, wanted: Plan) -> None:
    """Do the part for which no master may run."""
    with process.held(places.lock, f"a master serves {places.root}", "try again"):
        if wanted.over:
            asyncio.run(_clear_up(places, wanted.move))
        elif wanted.move.etcd:
            asyncio.run(_to_etcd(places, wanted.move, wanted.move.etcd))
        else:
            asyncio.run(_to_sqlite(places, wanted.move, etcd_of(places.store)))


async def _clear_up(places: MasterPlaces, move: Move) -> None:
    now = etcd_of(places.store)
    if move.etcd and now:
        moving.went(places, move, move.etcd.label)
        return
    if move.etcd:  # it was not decided: nobody needs what lies in etcd by now
        store = await _led(move.etcd, new=True)
        try:
            await store.drop()
        finally:
            await store.close()
    if now:
        store = EtcdStore(now, new=False)
        try:
            await store.whole()  # it refuses where the move was decided
        finally:
            await store.close()
        moving.draft(places).unlink(missing_ok=True)
    durable.remove(places.moving)


async def _to_etcd(places: MasterPlaces, move: Move, etcd: EtcdSettings) -> None:
    moving.note(places, move)
    source = SqliteStore(places.store)
    try:
        await source.lead()
        head, records = await source.whole()
        store = await _led(etcd, new=True)
        try:
            if store.head.version:  # of a try that was cut: the state has gone on
                await store.drop()
                await store.close()
                await store.lead()
            await store.fill(head, records)
            _compare(etcd.label, await store.whole(), head, records)
        finally:
            await store.close()
        durable.write(places.etcd, to_bytes(etcd))  # from now on that one leads
    finally:
        await source.close()
    moving.went(places, move, etcd.label)


async def _to_sqlite(
    places: MasterPlaces, move: Move, etcd: EtcdSettings | None
) -> None:
    if etcd is None:
        raise WrongState("the state has moved meanwhile", hint="gnt-cluster verify")
    moving.note(places, move)
    try:
        store = await _led(etcd, new=False)
    except Elsewhere as error:
        if moving.came(places, error):
            return
        raise
    try:
        head, records = await store.whole()
        name = _master_here(etcd, loaded(records)[0])
        path = moving.draft(places)
        for end in ("-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
        lay(path, head, records)
        durable.sync(path.parent)
        _compare(str(path), await SqliteStore(path).whole(), head, records)
        await store.leave(move.id, f"{places.store} on node {name}")
    finally:
        await store.close()
    moving.came(places, Elsewhere("", move=move.id))


def _master_here(etcd: EtcdSettings, config: Config) -> str:
    """Return the name of the master's node; raise `WrongState` if it is elsewhere."""
    name = config.node(config.cluster.master_node).name
    if etcd.node and etcd.node != config.cluster.master_node:
        raise WrongState(
            f"the master is on node {name}: the state moves to where that is",
            hint=f"on {name}: moorage store move {SQLITE}",
        )
    return name


async def _led(etcd: EtcdSettings, *, new: bool) -> EtcdStore:
    """Take the lead in etcd, which a process that was killed may have for a while."""
    store = EtcdStore(etcd, new=new)
    clock = asyncio.get_running_loop().time
    until = clock() + etcd.lease + _PAST
    while True:
        try:
            await store.lead()
        except Refused:
            if clock() < until:
                await asyncio.sleep(0.2)
                continue
            await store.close()
            raise
        except BaseException:
            await store.close()
            raise
        return store


def _compare(
    label: str,
    there: tuple[Head, Mapping[Key, bytes]],
    head: Head,
    records: Mapping[Key, bytes],
) -> None:
    """Raise `Failed` unless a store holds all records of the other one."""
    found, held = there
    same = (found.version, found.total) == (head.version, head.total)
    if not same or found.term < head.term or dict(held) != dict(records):
        raise Failed(f"{label} did not become what it was made from: nothing is moved")
