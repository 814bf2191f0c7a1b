# SPDX-License-Identifier: BSD-2-Clause
"""A candidate's master that waits for the lead in etcd, and what it does with it.

It leads by the key that its node has got, which may have been renewed while it waited:
the one that is on record counts. Certificates of the authorities that
signed nodes are in the store beside the state, for whichever master leads next.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from moorage import durable
from moorage.api.query import Sources
from moorage.errors import BadInput, Exists, MoorageError, WrongState
from moorage.jobs.turns import together
from moorage.model import Config, Node
from moorage.model.audit import LEAD, deed
from moorage.model.caller import MASTER
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.doors import enrolment
from moorage.node.records.copies import OWN, read_keys
from moorage.protocol import GetStanding, silent
from moorage.store import ConfigStore, etcd_of, loaded
from moorage.store.etcd import EtcdSettings, EtcdStore, settings_from, to_bytes, wished

from . import voting
from .lead_record import moved
from .leadership import fenced
from .opening import STORE_LOST
from .paths import KEPT, MasterPlaces, NodePlaces, node_places
from .state_directory import as_owner, claim, give

_LOG = logging.getLogger(__name__)
KIND = "authority"
"""Kind of the record with the certificates of the authorities that signed nodes."""
_TRUSTED = "trusted"
_OFFERED = "own.pem"
"""Name of the file with the key that the node had when this master was started."""
_LOOK = 1.0
"""Seconds between two looks at whether there are new ones."""
_OWN = 1.0
"""Seconds that this machine's own node gets to answer: a takeover waits for it."""
_SIGN = 5.0
"""Seconds between two signs of life, and those that a node gets to answer."""


def prepare(places: MasterPlaces, node: NodePlaces, word: str) -> str:
    """Let this machine, a candidate's, have a master; return the node's name.

    Parameters
    ----------
    word
        The file ``etcd.json`` of the cluster's master.

    Raises
    ------
    Exists
        If there is a master's directory already.
    BadInput
        If it is another cluster's.
    WrongState
        If the node is no candidate, or has no key to lead with yet.
    """
    for path in (places.etcd, places.store):
        if path.exists():
            raise Exists(f"there is a master here already: {path}")
    given = settings_from(word)
    if not given.cluster:
        raise BadInput(
            f"{word} does not say which cluster it is of",
            hint="give a copy of etcd.json, from the master's directory",
        )
    name = enrolment.name(node.keys) if enrolment.joined(node.keys) else ""
    records = asyncio.run(_records(given))
    config, others = loaded(records)
    if not config.knows(Node, name):
        raise BadInput(f"the node in {node.root} is none of the cluster in {word}")
    own = config.node(name)
    kept = _kept(node)
    if not own.master_candidate or not kept.exists():
        raise WrongState(
            f"node {name} is no master candidate, or has no key to lead with yet",
            hint=f"gnt-node modify -C yes {name}",
        )
    trusted = others.get(KIND, {}).get(_TRUSTED)
    claim(places.root, KEPT, given=True)
    for path, data in (
        (places.keys / "ca.pem", trusted or (node.keys / "ca.pem").read_bytes()),
        (places.keys / "master.pem", kept.read_bytes()),
        (places.etcd, to_bytes(replace(given, node=own.uuid))),
    ):
        durable.write(path, data)
    for path in (places.keys, places.etcd):
        give(path)
    return name


def offer(places: MasterPlaces, node: NodePlaces) -> bool:
    """Lay the node's key to lead with beside the master's; return whether there is one.

    For a master whose user cannot enter the node's directory. Which key it leads by,
    the record says: the master's own may be a newer one.
    """
    if not places.etcd.exists():
        return False
    try:
        text = _kept(node).read_bytes()
    except FileNotFoundError:
        return False
    as_owner(places.root, durable.write, places.keys / _OFFERED, text)
    return True


def _kept(node: NodePlaces) -> Path:
    return node.run / "state" / "keys" / f"{OWN}.pem"


async def _records(settings: EtcdSettings) -> dict[tuple[str, str], bytes]:
    store = EtcdStore(settings)
    try:
        return dict((await store.whole())[1])
    finally:
        await store.close()


async def taken(
    places: MasterPlaces,
    keys: Authority,
    config_store: ConfigStore,
    records: dict[str, dict[str, bytes]],
) -> None:
    """Let the state say that the master is here, now that this one has the lead.

    Raises
    ------
    WrongState
        If this machine's node may not lead any more; the lead is given back. It has the
        fact ``barred``: that may be over when it is tried again.
    """
    settings = etcd_of(places.store)
    config = config_store.config
    own = settings.node if settings else ""
    recorded = records.get(KIND, {}).get(_TRUSTED)
    if own and own != config.cluster.master_node:
        _take_renewed(places, keys, config, own)
        why = _barred(config, own, keys)
        if why:
            await config_store.close()
            aside = f"moorage master stop; mv {places.root} {places.root}.old"
            raise WrongState(why, hint=f"to lead no more: {aside}", barred=True)
        if recorded:
            keys.follow(recorded)  # before it is on record that the master is here
        term = config_store.term
        led = deed(MASTER, time.time(), LEAD, about=config.node(own).name)
        change = moved(config, own, term, followed=False)
        await config_store.commit(change, deeds=[led])
    keys.complete()
    await _share(keys, config_store, recorded)


def keys_of_now(
    places: MasterPlaces,
    config: Config,
    records: dict[str, dict[str, bytes]],
    kept: dict[str, bytes],
) -> dict[str, bytes]:
    """Return the keys by which the master here would lead, if it had the lead now.

    Parameters
    ----------
    kept
        What is in the master's directory, by name. Where it waits, that is of the day
        when it led last, or began to wait; it is left as it is.
    """
    settings = etcd_of(places.store)
    own = settings.node if settings else ""
    if not own or own == config.cluster.master_node:
        return kept
    with TemporaryDirectory(dir=places.root) as scratch:
        for name, data in kept.items():
            durable.write(Path(scratch) / name, data)
        keys = Authority(Path(scratch))
        _take_renewed(places, keys, config, own)
        recorded = records.get(KIND, {}).get(_TRUSTED)
        if recorded:
            keys.follow(recorded)
        return read_keys(keys.directory)


def _barred(config: Config, own: str, keys: Authority) -> str:
    """Return why this machine's node may not lead; empty if it may."""
    if not config.knows(Node, own):
        return "this machine's node is no node of the cluster any more"
    node = config.node(own)
    if not node.master_candidate or tls.pin_of(keys.own) not in _known(node):
        return f"node {node.name} is no candidate with this key to lead any more"
    return ""


def _known(node: Node) -> set[str]:
    """Return the pins of the keys that a node can lead with, by the record."""
    known = (tls.load_certificate(one.encode()) for one in node.master_certs)
    return set(map(tls.pin_of, known))


def _take_renewed(
    places: MasterPlaces, keys: Authority, config: Config, own: str
) -> None:
    """Take the key that the node was given meanwhile, if that is the one on record."""
    known = _known(config.node(own)) if config.knows(Node, own) else set()
    if tls.pin_of(keys.own) in known:
        return
    for path in (_kept(node_places()), places.keys / _OFFERED):
        # There is none, or it is half of one.
        with suppress(OSError, ValueError, TypeError):
            text = path.read_bytes()
            if tls.pin_of(tls.load_certificate(text)) in known:
                keys.take_own(text)
                return


def chores(
    places: MasterPlaces, keys: Authority, followed: asyncio.Event
) -> list[Callable[[Sources], Awaitable[None]]]:
    """Return what a master does besides whose state is in etcd; none else.

    Parameters
    ----------
    followed
        Set when another node is wished to lead: this master is to end as planned.
    """
    settings = etcd_of(places.store)
    if settings is None:
        return []
    return [partial(share, keys), partial(_let_lead, settings, followed), show_life]


async def _let_lead(
    settings: EtcdSettings, followed: asyncio.Event, _: Sources
) -> None:
    await wished(settings)
    _LOG.info("another node is to lead: this master ends as planned, and waits")
    followed.set()


async def check_obeyed(keys: Authority, config_store: ConfigStore) -> None:
    """Raise `WrongState` if more than half of the nodes have heard a later master.

    That one's state is elsewhere: a backup was put back, or this etcd was brought back
    to what it held before. The lead here does not tell; this machine's node does, and
    all others are asked then.
    """
    config, term = config_store.config, config_store.term
    call, own = GetStanding(), config.node(config.cluster.master_node)
    async with voting.asking(keys) as nodes:
        votes = await voting.ask(nodes, [own], call, 0, _OWN, refusals=True)
        if votes.later(term):
            online = config.online()
            votes = await voting.ask(nodes, online, call, 0, _SIGN, refusals=True)
    if len(votes.later(term)) * 2 > votes.asked:
        await config_store.close()
        raise fenced(term, etcd=True)


async def show_life(at: Sources) -> None:
    """Speak to the candidates, for ever: a restore asks them whether a master lives.

    Where the state is in SQLite they hear this master with each commit of their copy.
    """
    while True:
        nodes = at.config_store.config.online()
        await together(_speak(at, one) for one in nodes if one.master_candidate)
        await asyncio.sleep(_SIGN)


async def _speak(at: Sources, node: Node) -> None:
    with suppress(MoorageError, TimeoutError):
        async with asyncio.timeout(_SIGN):
            await at.nodes.call(node, GetStanding(), at.config_store.term, silent)


def ended(
    term: int, over: asyncio.Event, stopped: asyncio.Event, followed: asyncio.Event
) -> int:
    """Return the exit status of a master that has given the lead back.

    Raises
    ------
    WrongState
        If nodes do not obey it any more.
    """
    if over.is_set():
        raise fenced(term, etcd=True)
    # Who let another node lead is started again, to wait.
    return STORE_LOST if followed.is_set() and not stopped.is_set() else 0


async def share(keys: Authority, at: Sources) -> None:
    """Keep the record of the authorities' certificates equal to the file, for ever."""
    known: bytes | None = None
    while True:
        known = await _share(keys, at.config_store, known)
        await asyncio.sleep(_LOOK)


async def _share(
    keys: Authority, config_store: ConfigStore, known: bytes | None
) -> bytes:
    path: Path = keys.directory / "ca.pem"
    found = path.read_bytes()
    if found != known:
        await config_store.note([((KIND, _TRUSTED), found)])
    return found
