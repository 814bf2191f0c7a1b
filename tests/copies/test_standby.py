# SPDX-License-Identifier: BSD-2-Clause
"""Who has got the lead in etcd: whether it may lead, and what it makes of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.daemons import standby, voting
from moorage.daemons.paths import MasterPlaces, NodePlaces
from moorage.errors import BadInput, Exists, WrongState
from moorage.model import Change, Node, successor
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority
from moorage.node.records.copies import read_keys
from moorage.protocol import Standing
from moorage.store import ConfigStore, MemoryStore, create
from moorage.store.etcd import EtcdSettings, to_bytes
from moorage.testing.cluster import ClusterBuilder


class Candidate:
    """The master's directory on the second node, with a key of its own."""

    def __init__(self, root: Path, own: str) -> None:
        self.places = MasterPlaces(root)
        self.places.keys.mkdir(parents=True)
        self.keys = Authority.make(self.places.keys, "demo")
        settings = EtcdSettings(endpoints=("http://127.0.0.1:1",), node=own)
        self.places.etcd.write_bytes(to_bytes(settings))

    @property
    def certificate(self) -> str:
        return tls.pem(self.keys.own).decode()


@pytest.fixture
async def store() -> MemoryStore:
    made = MemoryStore()
    await create(made, ClusterBuilder(nodes=2).change())
    return made


async def recorded(store: MemoryStore, **what: object) -> str:
    """Record something of the second node; return its uuid."""
    config_store, _ = await ConfigStore.open(store)
    node = config_store.config.node("node2")
    await config_store.commit(Change((successor(node, 1.0, **what),)))
    return node.uuid


async def test_a_candidate_says_first_that_the_master_is_here(
    store: MemoryStore, tmp_path: Path
) -> None:
    config_store, _ = await ConfigStore.open(store)
    own = config_store.config.node("node2").uuid
    here = Candidate(tmp_path / "m", own)
    certs = (here.certificate,)
    await recorded(store, master_candidate=True, master_certs=certs)
    config_store, records = await ConfigStore.open(store)
    await standby.taken(here.places, here.keys, config_store, records)
    cluster = config_store.config.cluster
    assert cluster.master_node == own
    assert cluster.master_ip == config_store.config.node(own).primary_ip
    assert cluster.leads[-1].node == "node2"
    assert cluster.leads[-1].term == config_store.term
    assert cluster.former_masters == ()  # who led before waits, and may lead again
    assert config_store.audit.last > 0
    again, records = await ConfigStore.open(store)
    serial = again.config.serial_no
    await standby.taken(here.places, here.keys, again, records)
    assert again.config.serial_no == serial  # it was here already


@pytest.mark.parametrize("why", ["demoted", "another key", "no key", "gone"])
async def test_who_may_not_lead_gives_the_lead_back(
    store: MemoryStore, tmp_path: Path, why: str
) -> None:
    config_store, _ = await ConfigStore.open(store)
    own = config_store.config.node("node2").uuid
    here = Candidate(tmp_path / "m", "nobody" if why == "gone" else own)
    other = Candidate(tmp_path / "other", own)
    shown = other if why == "another key" else here
    certs = () if why == "no key" else (shown.certificate,)
    candidate = why != "demoted"
    await recorded(store, master_candidate=candidate, master_certs=certs)
    config_store, records = await ConfigStore.open(store)
    version = store.version
    with pytest.raises(WrongState, match="any more"):
        await standby.taken(here.places, here.keys, config_store, records)
    assert store.version == version


@pytest.mark.parametrize("how", ["read", "offered"])
async def test_a_key_that_was_renewed_while_it_waited_is_taken(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    config_store, _ = await ConfigStore.open(store)
    own = config_store.config.node("node2").uuid
    here, other = Candidate(tmp_path / "m", own), Candidate(tmp_path / "other", own)
    node = NodePlaces(tmp_path / "n")
    kept = node.run / "state" / "keys" / "own.pem"
    kept.parent.mkdir(parents=True)
    before = here.certificate
    kept.write_bytes((other.places.keys / "master.pem").read_bytes())
    assert standby.offer(here.places, node)
    if how == "read":
        monkeypatch.setenv("MOORAGE_NODE_DIR", str(node.root))
        (here.places.keys / "own.pem").unlink()
    # It was given, and is not on record yet: the one before is known to the nodes.
    await recorded(store, master_candidate=True, master_certs=(before,))
    config_store, records = await ConfigStore.open(store)
    await standby.taken(here.places, here.keys, config_store, records)
    assert here.certificate == before
    await recorded(store, master_certs=(other.certificate,))
    config_store, records = await ConfigStore.open(store)
    node1 = config_store.config.node("node1").uuid
    cluster = successor(config_store.config.cluster, 1.0, master_node=node1)
    await config_store.commit(Change((cluster,)))
    await standby.taken(here.places, here.keys, config_store, records)
    assert here.certificate == other.certificate
    assert Authority(here.places.keys).own == other.keys.own
    assert config_store.config.cluster.master_node == own


async def test_a_key_that_nobody_recorded_opens_nothing(
    store: MemoryStore, tmp_path: Path
) -> None:
    config_store, _ = await ConfigStore.open(store)
    own = config_store.config.node("node2").uuid
    here, other = Candidate(tmp_path / "m", own), Candidate(tmp_path / "other", own)
    recorded_one = Candidate(tmp_path / "third", own).certificate
    for data in ((other.places.keys / "master.pem").read_bytes(), b"half of one"):
        (here.places.keys / "own.pem").write_bytes(data)
        await recorded(store, master_candidate=True, master_certs=(recorded_one,))
        config_store, records = await ConfigStore.open(store)
        before = here.certificate
        with pytest.raises(WrongState, match="no candidate with this key") as caught:
            await standby.taken(here.places, here.keys, config_store, records)
        assert caught.value.facts["barred"]
        assert here.certificate == before


async def test_whom_the_master_before_trusted_is_trusted(
    store: MemoryStore, tmp_path: Path
) -> None:
    config_store, _ = await ConfigStore.open(store)
    first = Candidate(tmp_path / "1", config_store.config.cluster.master_node)
    config_store, records = await ConfigStore.open(store)
    await standby.taken(first.places, first.keys, config_store, records)
    second = Candidate(tmp_path / "2", config_store.config.node("node2").uuid)
    retired = second.keys.certificate
    certs = (second.certificate,)
    await recorded(store, master_candidate=True, master_certs=certs)
    config_store, records = await ConfigStore.open(store)
    await standby.taken(second.places, second.keys, config_store, records)
    trusted = second.keys.trusted
    assert first.keys.certificate in trusted
    assert retired not in trusted
    assert second.keys.certificate in trusted  # one of its own, that signs from now on
    mine = second.keys.certificate
    # And back, and here again: no more authorities than masters.
    for one in (first, second, first, second):
        settings = EtcdSettings(endpoints=("http://127.0.0.1:1",))
        own = "node1" if one is first else "node2"
        node = config_store.config.node(own)
        if one is first:
            await recorded_first(store, first)
        settings = replace(settings, node=node.uuid)
        one.places.etcd.write_bytes(to_bytes(settings))
        config_store, records = await ConfigStore.open(store)
        await standby.taken(one.places, one.keys, config_store, records)
        assert {*one.keys.trusted} == {first.keys.certificate, mine}


async def test_a_backup_where_a_master_waits_has_the_keys_of_now(
    store: MemoryStore, tmp_path: Path
) -> None:
    """Not those of the day when it began to wait: nodes were signed anew since."""
    config_store, _ = await ConfigStore.open(store)
    first = Candidate(tmp_path / "1", config_store.config.cluster.master_node)
    waits = Candidate(tmp_path / "2", config_store.config.node("node2").uuid)
    renewed = Candidate(tmp_path / "3", config_store.config.node("node2").uuid)
    text = (renewed.places.keys / "master.pem").read_bytes()
    (waits.places.keys / "own.pem").write_bytes(text)
    await recorded(store, master_candidate=True, master_certs=(renewed.certificate,))
    config_store, records = await ConfigStore.open(store)
    await standby.taken(first.places, first.keys, config_store, records)
    config_store, records = await ConfigStore.open(store)
    before = read_keys(waits.places.keys)
    kept = standby.keys_of_now(waits.places, config_store.config, records, before)
    assert tls.load_all(kept["ca.pem"]) == first.keys.trusted
    assert kept["master.pem"] == text
    assert "ca.key" not in kept  # of an authority that nobody trusts
    assert read_keys(waits.places.keys) == before  # nothing is changed here
    own = read_keys(first.places.keys)
    assert standby.keys_of_now(first.places, config_store.config, records, own) == own


def test_settings_that_say_no_cluster_make_no_master(tmp_path: Path) -> None:
    file = tmp_path / "etcd.json"
    file.write_bytes(to_bytes(EtcdSettings(endpoints=("http://127.0.0.1:1",))))
    places, node = MasterPlaces(tmp_path / "m"), NodePlaces(tmp_path / "n")
    with pytest.raises(BadInput, match="does not say which cluster it is of"):
        standby.prepare(places, node, str(file))
    assert not places.root.exists()
    Candidate(places.root, "")
    with pytest.raises(Exists, match="there is a master here already"):
        standby.prepare(places, node, str(file))


@pytest.mark.parametrize(
    ("later", "over"),
    [((), False), (("node1",), False), (("node1", "node2"), True)],
    ids=["nobody", "the word of one", "more than half"],
)
async def test_who_leads_a_state_of_before_ends_by_the_word_of_most(
    store: MemoryStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    later: tuple[str, ...],
    over: bool,
) -> None:
    config_store, _ = await ConfigStore.open(store)
    term, asked = config_store.term, set[str]()

    class Nodes:
        async def call(self, node: Node, *_: object) -> Standing:
            asked.add(node.name)
            return Standing(term=term + 100 if node.name in later else term)

    @asynccontextmanager
    async def asking(_keys: Authority) -> AsyncIterator[Nodes]:
        yield Nodes()

    monkeypatch.setattr(voting, "asking", asking)
    here = Candidate(tmp_path / "m", config_store.config.cluster.master_node)
    if over:
        with pytest.raises(WrongState, match="this is not the cluster's master"):
            await standby.check_obeyed(here.keys, config_store)
    else:
        await standby.check_obeyed(here.keys, config_store)
    own = config_store.config.node(config_store.config.cluster.master_node).name
    assert own in asked
    assert asked == ({"node1", "node2"} if own in later else {own})


async def recorded_first(store: MemoryStore, first: Candidate) -> None:
    config_store, _ = await ConfigStore.open(store)
    node = config_store.config.node("node1")
    what = {"master_candidate": True, "master_certs": (first.certificate,)}
    await config_store.commit(Change((successor(node, 1.0, **what),)))
