# SPDX-License-Identifier: BSD-2-Clause
"""The state as its next master finds it: who leads from now on stands in it."""

import time
from pathlib import Path

from msgspec.structs import replace

from moorage import durable
from moorage.model import Change, Config, Lead, Node, successor
from moorage.model.audit import LEAD, deed
from moorage.model.caller import MASTER
from moorage.model.objects import MOST_LEADS
from moorage.node.certificates.keys import listed
from moorage.node.records.copies import OWN, read_keys
from moorage.store import ConfigStore, raise_term, store_at
from moorage.store.records import copied

from .heritage import Heritage
from .paths import KEPT, MasterPlaces
from .state_directory import claim
from .succession import drafted, put_aside

_FORMER = 5
"""Masters that were followed, and are told so when they come back."""


async def settle(places: MasterPlaces, heritage: Heritage, term: int) -> None:
    """Lay the keys, then the store: a master starts on whole ones only."""
    claim(places.root, KEPT, given=True)
    put_aside(places)
    places.keys.mkdir(mode=0o700, exist_ok=True)
    files = read_keys(heritage.keys)
    if heritage.own_key == OWN:  # what lies beside it is of the master's
        own = (heritage.keys / f"{OWN}.pem").read_bytes()
        files = {"ca.pem": files["ca.pem"], "master.pem": own}
    for name, data in files.items():
        durable.write(places.keys / name, data)
    with drafted(places) as draft:
        await _written(draft / places.store.name, heritage, term)
        (draft / places.store.name).replace(places.store)


async def _written(path: Path, heritage: Heritage, term: int) -> None:
    """Write the copy as a store that its new master leads."""
    copied(heritage.path, path)
    await hand_over(path, heritage.own, term)


async def hand_over(path: Path, own: str, term: int) -> None:
    """Record in a store that nobody leads that a node is the master's from a term on.

    That is the first commit of this term, and in the feed, too: in a lower one it could
    have the number of something else that a former master told.
    """
    raise_term(path, term - 1)
    config_store, _ = await ConfigStore.open(store_at(path))
    try:
        name = config_store.config.node(own).name
        led = deed(MASTER, time.time(), LEAD, about=name)
        await config_store.commit(moved(config_store.config, own, term), deeds=[led])
    finally:
        await config_store.close()


def moved(config: Config, own: str, term: int, *, followed: bool = True) -> Change:
    """Return the change that makes a node the master's, from a term on.

    Parameters
    ----------
    followed
        Whether the keys of the former master are not to lead any more.
    """
    node, now = config.node(own), time.time()
    cluster = config.cluster
    former = config.node(cluster.master_node).master_certs if followed else ()
    known = (*cluster.former_masters, *former)
    where = {
        "master_node": node.uuid,
        "master_ip": cluster.master_ip if cluster.master_netdev else node.primary_ip,
        "former_masters": tuple(dict.fromkeys(known))[-_FORMER:],
        "leads": _leads(config, node, term, now)[-MOST_LEADS:],
    }
    cluster = successor(config.cluster, now, **where)
    if node.master_candidate:
        return Change((cluster,))
    return Change((cluster, successor(node, now, master_candidate=True)))


def _leads(config: Config, node: Node, term: int, now: float) -> tuple[Lead, ...]:
    """Return who has led, with the keys that each had at the end of it."""
    former = config.node(config.cluster.master_node)
    known = config.cluster.leads or (Lead(term=0, node=former.name),)
    had = (*known[-1].pins, *listed((*former.led_with, *former.master_certs)))
    ended = replace(known[-1], pins=tuple(dict.fromkeys(had)))
    pins = tuple(listed(node.master_certs))
    return (*known[:-1], ended, Lead(term=term, node=node.name, pins=pins, time=now))
