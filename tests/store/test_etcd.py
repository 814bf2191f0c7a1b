# SPDX-License-Identifier: BSD-2-Clause
"""The store in a real etcd: deaths, lost answers, lost members, and the lead."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any
from urllib.error import HTTPError

import pytest
from msgspec.structs import replace

from moorage.errors import Conflict, MoorageError, Refused
from moorage.model.commits import Head
from moorage.store import ConfigStore, Damaged, StoreError, Write, create
from moorage.store.etcd import EtcdSettings, EtcdStore, engine, gateway, layout
from moorage.store.etcd.layout import Place
from moorage.testing.cluster import ClusterBuilder
from support.etcd_members import ask
from support.etcd_proxy import AFTER, BEFORE, Proxy, proxied

pytestmark = pytest.mark.real

COMMITS: Sequence[Sequence[Write]] = (
    [(("job", "1"), b"a"), (("job", "2"), b"b" * 10)],
    [  # large: it goes in parts
        *((("node", str(one)), b"%d" % one * 20) for one in range(9)),
        (("job", "1"), None),
        (("job", "2"), b"c" * 150),
    ],
    [(("job", "2"), b"d"), (("node", "3"), None)],
)


def states() -> list[dict]:
    """Return what the store holds after each commit, the first one before all."""
    found: list[dict] = [{}]
    for writes in COMMITS:
        now = found[-1] | dict(writes)
        found.append({key: value for key, value in now.items() if value is not None})
    return found


@pytest.fixture
def small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests carry so little that a few records are a large commit."""
    monkeypatch.setattr(layout, "PIECE", 64)
    monkeypatch.setattr(layout, "MOST", 4)
    monkeypatch.setattr(layout, "LARGEST", 256)


@pytest.fixture
async def proxy(etcd: EtcdSettings) -> AsyncIterator[Proxy]:
    async with proxied(etcd.endpoints[0]) as made:
        yield made


def behind(proxy: Proxy, settings: EtcdSettings) -> EtcdSettings:
    return replace(settings, endpoints=(proxy.url,))


async def abandon(store: EtcdStore) -> None:
    """Let a store's process die: nothing is given back."""
    aside = store._aside
    assert aside
    if store._keeping:
        store._keeping.cancel()
    await aside.do(store._members().close())
    await asyncio.to_thread(aside.end)


def run_out(settings: EtcdSettings) -> None:
    """Let the lease run out of who leads, if anybody does."""
    key = base64.b64encode(f"{settings.prefix}/leader".encode()).decode()
    found = ask(settings.endpoints[0], "kv/range", {"key": key})
    for one in found.get("kvs", ()):
        ask(settings.endpoints[0], "lease/revoke", {"ID": one["lease"]})


async def inherited(etcd: EtcdSettings) -> EtcdStore:
    """Return the store of who leads next; a request of the dead may be late."""
    heir = EtcdStore(etcd)
    async with asyncio.timeout(60):
        while not heir.head.term:
            run_out(etcd)
            with suppress(Refused):
                await heir.lead()
    return heir


def keys(settings: EtcdSettings) -> list[str]:
    first = f"{settings.prefix}/".encode()
    words = {
        "key": base64.b64encode(first).decode(),
        "range_end": base64.b64encode(layout.behind(first)).decode(),
        "keys_only": True,
    }
    found = ask(settings.endpoints[0], "kv/range", words).get("kvs", ())
    return [base64.b64decode(one["key"])[len(first) :].decode() for one in found]


async def life(store: EtcdStore, done: list[int]) -> None:
    """Lead, and make all commits; note which were acknowledged."""
    await store.lead()
    await store.load()
    done.append(0)
    for writes in COMMITS:
        done.append(await store.commit(writes, expected=done[-1]))


@pytest.mark.usefixtures("small_requests")
async def test_who_dies_at_any_request_loses_nothing_acknowledged(
    etcd: EtcdSettings, proxy: Proxy
) -> None:
    done: list[int] = []
    store = EtcdStore(behind(proxy, etcd))
    await life(store, done)
    await store.close()
    whole = len(proxy.asked)
    assert whole > 20
    for number in range(whole):
        for fault in (BEFORE, AFTER):
            own = replace(etcd, prefix=f"{etcd.prefix}/{number}/{fault}")
            await die(own, proxy, number, fault)


async def die(etcd: EtcdSettings, proxy: Proxy, number: int, fault: str) -> None:
    """Let a master die at a request, and another one go on."""
    proxy.asked.clear()
    proxy.reached.clear()
    proxy.faults, proxy.dies, proxy.dead = {number: fault}, True, False
    store, done = EtcdStore(behind(proxy, etcd)), list[int]()
    living = asyncio.create_task(life(store, done))
    dying = asyncio.create_task(proxy.reached.wait())
    await asyncio.wait([living, dying], return_when=asyncio.FIRST_COMPLETED)
    living.cancel()
    dying.cancel()
    await asyncio.wait([living])
    await abandon(store)
    where = f"{fault} request {number}"
    heir = await inherited(etcd)
    stored = await heir.load()
    acknowledged = done[-1] if done else 0
    assert stored.version in (acknowledged, acknowledged + 1), where
    assert dict(stored.records) == states()[stored.version], where
    assert not [one for one in keys(etcd) if one.startswith("part/")], where
    version = await heir.commit([(("job", "9"), b"e" * 500)], expected=stored.version)
    await heir.close()
    again = EtcdStore(etcd)
    term = await again.lead()
    assert term > heir.head.term
    found = await again.load()
    assert found.version == version
    assert found.records == states()[stored.version] | {("job", "9"): b"e" * 500}
    await again.drop()
    await again.close()
    assert keys(etcd) == []


@pytest.mark.usefixtures("small_requests")
@pytest.mark.parametrize("fault", [BEFORE, AFTER])
async def test_who_dies_while_a_large_commit_is_written_out_is_followed(
    etcd: EtcdSettings, proxy: Proxy, fault: str
) -> None:
    """It is made, and its records are not there: each heir dies one request later."""
    store = EtcdStore(etcd)
    await life(store, [])
    stored = await store.load()
    large = [(("node", str(one)), b"f%d" % one * 20) for one in range(9)]
    _, puts, total = store._changes(dict(large))
    head = Head(stored.version + 1, store.head.term, total)
    parts = layout.parted(puts)
    await store._run(lay(store, parts, Place.of(head, len(parts))))
    await abandon(store)
    expected = {**stored.records, **dict(large)}
    deaths = 0
    while await dies_leading(etcd, proxy, {deaths: fault}):
        run_out(etcd)
        whole = EtcdStore(etcd)  # who looks meanwhile sees it done
        found, records = await whole.whole()
        assert (found.version, records) == (head.version, expected)
        await whole.close()
        deaths += 1
    assert deaths > 5
    heir = EtcdStore(etcd)
    await heir.lead()
    assert (await heir.load()).records == expected
    await heir.close()
    assert not [one for one in keys(etcd) if one.startswith("part/")]


async def dies_leading(
    etcd: EtcdSettings, proxy: Proxy, faults: dict[int, str]
) -> bool:
    """Let a master die while it takes the lead; False if it has taken it before."""
    proxy.asked.clear()
    proxy.faults, proxy.dies, proxy.dead = faults, True, False
    proxy.reached.clear()
    heir = EtcdStore(behind(proxy, etcd))
    leading = asyncio.create_task(heir.lead())
    dying = asyncio.create_task(proxy.reached.wait())
    await asyncio.wait([leading, dying], return_when=asyncio.FIRST_COMPLETED)
    died = dying.done()
    for one in (leading, dying):
        one.cancel()
    await asyncio.wait([leading, dying])
    proxy.faults = {}
    await (abandon(heir) if died else heir.close())
    return died


async def lay(store: EtcdStore, parts: list[bytes], place: Place) -> None:
    """Make a large commit, and write none of its records."""
    for number, part in enumerate(parts):
        await store._put([gateway.put(store._keys.part(number), part)], None)
    await store._put([], place)


@pytest.mark.usefixtures("small_requests")
@pytest.mark.parametrize("fault", [BEFORE, AFTER])
async def test_what_nobody_answered_is_asked_for_again(
    etcd: EtcdSettings, proxy: Proxy, fault: str
) -> None:
    """Each third request, or its answer, is lost: all is done, and once."""
    store = EtcdStore(behind(proxy, etcd))
    proxy.faults = dict.fromkeys(range(0, 1000, 3), fault)
    await life(store, done := [])
    assert done == [0, *range(len(COMMITS) + 1)][1:]
    assert dict((await store.load()).records) == states()[-1]
    assert store.head.version == len(COMMITS)
    proxy.faults = {}
    await store.close()


async def test_nothing_is_told_while_nobody_knows_whether_it_is_done(
    etcd: EtcdSettings, proxy: Proxy
) -> None:
    """The answer is lost, and then all: the commit ends with the lead, and is there."""
    ended: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def over(why: str) -> None:
        loop.call_soon_threadsafe(ended.put_nowait, why)

    store = EtcdStore(behind(proxy, etcd), over)
    await store.lead()
    await store.load()
    proxy.dies = True
    proxy.faults = {len(proxy.asked): AFTER}
    with pytest.raises(StoreError, match="gives no answer"):
        await store.commit([(("job", "1"), b"a")], expected=0)
    assert "could not be renewed" in await ended.get()
    with pytest.raises(StoreError, match="could not be renewed"):
        await store.commit([(("job", "1"), b"b")], expected=0)
    await abandon(store)
    run_out(etcd)
    heir = EtcdStore(etcd)
    await heir.lead()
    assert (await heir.load()).records == {("job", "1"): b"a"}
    await heir.close()


async def test_who_cannot_renew_ends_before_etcd_lets_another_lead(
    etcd: EtcdSettings, proxy: Proxy
) -> None:
    there: list[bool] = []
    told = asyncio.Event()
    loop = asyncio.get_running_loop()

    def over(_why: str) -> None:
        there.append("leader" in keys(etcd))
        loop.call_soon_threadsafe(told.set)

    store = EtcdStore(replace(behind(proxy, etcd), lease=5), over)
    await store.lead()
    proxy.dead = True
    await told.wait()
    assert there == [True]
    await abandon(store)


async def test_a_long_plan_starves_no_lead(etcd: EtcdSettings) -> None:
    lost: list[str] = []
    store = EtcdStore(replace(etcd, lease=2), lost.append)
    await store.lead()
    until = time.monotonic() + 6
    while time.monotonic() < until:
        sum(range(1000))  # this loop, and this thread, do nothing else
    assert await store.commit([(("job", "1"), b"a")], expected=0) == 1
    assert lost == []
    other = EtcdStore(etcd)
    with pytest.raises(Refused, match="another master leads"):
        await other.lead()
    await other.close()
    await store.close()


async def test_a_leader_that_was_followed_writes_nothing(etcd: EtcdSettings) -> None:
    old = EtcdStore(etcd)
    await old.lead()
    version = await old.commit([(("job", "1"), b"a")], expected=0)
    run_out(etcd)
    new = EtcdStore(etcd)
    assert await new.lead() > old.head.term
    with pytest.raises((Conflict, StoreError)):
        await old.commit([(("job", "1"), b"b")], expected=version)
    large: Sequence[Write] = [(("job", str(one)), b"c") for one in range(400)]
    with pytest.raises((Conflict, StoreError)):
        await old.commit(large, expected=version)
    stored = await new.load()
    assert (stored.version, stored.records) == (version, {("job", "1"): b"a"})
    assert not [one for one in keys(etcd) if one.startswith("part/")]
    await old.close()  # and it takes no lead away
    assert await new.commit([(("job", "1"), b"d")], expected=version)
    await new.close()


async def test_a_head_that_another_lead_has_put_is_no_lead_of_ours(
    etcd: EtcdSettings,
) -> None:
    """Two find the same head, and count the same term: the first one was followed."""
    old = EtcdStore(etcd)
    await old.lead()
    assert old._keeping
    old._keeping.cancel()  # it stands still, and does not know that it was followed
    run_out(etcd)
    new = EtcdStore(etcd)
    term = await new.lead()
    place = Place.of(old.head._replace(term=term))
    with pytest.raises(StoreError, match="lost before etcd had answered"):
        await old._run(old._put([], place))
    await new.close()
    with pytest.raises(StoreError, match="lost before etcd had answered"):
        await old._run(old._put([], place))
    await old.close()


async def test_two_that_take_the_lead_at_once_are_one(etcd: EtcdSettings) -> None:
    stores = [EtcdStore(etcd) for _ in range(6)]
    found = await asyncio.gather(
        *(one.lead() for one in stores), return_exceptions=True
    )
    assert sorted(isinstance(one, int) for one in found) == [False] * 5 + [True]
    assert all(isinstance(one, int | Refused) for one in found)
    for one in stores:
        await one.close()
    assert "leader" not in keys(etcd)


async def test_a_lead_that_was_given_back_is_free_at_once(etcd: EtcdSettings) -> None:
    for term in range(1, 4):
        store = EtcdStore(etcd)
        assert await store.lead() == term
        await store.close()


async def test_an_empty_etcd_is_no_store_unless_one_is_to_be_made(
    etcd: EtcdSettings,
) -> None:
    """Who waited while the cluster was destroyed, say, leads nothing."""
    store = EtcdStore(etcd, new=False)
    with pytest.raises(Damaged, match="holds no cluster's state"):
        await store.lead()
    assert keys(etcd) == []
    await store.close()


async def test_another_clusters_state_is_not_taken(etcd: EtcdSettings) -> None:
    store = EtcdStore(etcd)
    await store.lead()
    await store.close()
    other = EtcdStore(replace(etcd, cluster="another"))
    with pytest.raises(Damaged, match="another cluster"):
        await other.lead()
    with pytest.raises(Damaged, match="another cluster"):
        await other.whole()
    await other.close()
    key = base64.b64encode(f"{etcd.prefix}-x/y".encode()).decode()
    ask(etcd.endpoints[0], "kv/put", {"key": key, "value": ""})
    strange = EtcdStore(replace(etcd, prefix=f"{etcd.prefix}-x"))
    with pytest.raises(Damaged, match="is not empty, and holds no cluster"):
        await strange.lead()
    await strange.close()


@pytest.mark.parametrize("kind", ["value", "gone", "old", "head", "more"])
async def test_what_was_written_past_the_master_is_noticed(
    etcd: EtcdSettings, kind: str
) -> None:
    store = EtcdStore(etcd)
    await store.lead()
    version = await store.commit(
        [(("job", "1"), b"a"), (("job", "2"), b"b")], expected=0
    )

    def key(name: str) -> str:
        return base64.b64encode(f"{etcd.prefix}/{name}".encode()).decode()

    def asked(path: str, body: dict) -> dict:
        return ask(etcd.endpoints[0], path, body)

    record = "record/job/1\0" + "0000"
    former = asked("kv/range", {"key": key(record)})["kvs"][0]["value"]
    await store.commit([(("job", "1"), b"c")], expected=version)
    await store.close()
    if kind == "gone":
        asked("kv/deleterange", {"key": key(record)})
    elif kind == "more":
        more = key("record/job/3\0" + "0000")
        asked("kv/put", {"key": more, "value": former})
    elif kind == "head":
        head = asked("kv/range", {"key": key("head")})["kvs"][0]["value"]
        data = base64.b64decode(head).replace(b'"version":2', b'"version":3')
        value = base64.b64encode(data).decode()
        asked("kv/put", {"key": key("head"), "value": value})
    else:
        value = former if kind == "old" else base64.b64encode(b"0" * 20).decode()
        asked("kv/put", {"key": key(record), "value": value})
    again = EtcdStore(etcd)
    with pytest.raises(Damaged):
        await ConfigStore.open(again)
    await again.close()


async def test_what_etcd_keeps_is_bounded(
    etcd: EtcdSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record is written again and again: etcd's file does not grow with it."""
    monkeypatch.setattr(engine, "KEPT", 20)
    store = EtcdStore(etcd)
    await store.lead()
    version = 0
    for _ in range(300):
        value = b"x" * 100_000
        version = await store.commit([(("job", "1"), value)], expected=version)
    await store.close()
    said = ask(etcd.endpoints[0], "maintenance/status", {})
    assert int(said["dbSizeInUse"]) < 15_000_000  # of the 30 that were written


async def test_the_next_lead_drops_what_was_before(etcd: EtcdSettings) -> None:
    """However few commits a master made: a token that a job forgot, say."""
    store = EtcdStore(etcd)
    await store.lead()
    version = await store.commit([(("job", "1"), b"secret")], expected=0)
    key = base64.b64encode(f"{etcd.prefix}/record/job/1\0".encode() + b"0000").decode()
    found = ask(etcd.endpoints[0], "kv/range", {"key": key})["kvs"][0]
    await store.commit([(("job", "1"), b"")], expected=version)
    await store.close()
    former = {"key": key, "revision": found["mod_revision"]}
    assert ask(etcd.endpoints[0], "kv/range", former)["kvs"][0] == found
    heir = EtcdStore(etcd)
    await heir.lead()
    with pytest.raises(HTTPError):
        await there_for_ever(etcd, former)
    await heir.close()


async def there_for_ever(settings: EtcdSettings, former: dict[str, Any]) -> None:
    for _ in range(600):
        ask(settings.endpoints[0], "kv/range", former)
        await asyncio.sleep(0.1)


async def test_a_clusters_state_is_opened_again(etcd: EtcdSettings) -> None:
    builder = ClusterBuilder().disk("a").instance("web", "node1", ("a",))
    await create(store := EtcdStore(etcd), builder.change())
    await store.close()
    config_store, _ = await ConfigStore.open(again := EtcdStore(etcd))
    assert config_store.config.disk("a").name == "a"
    await again.close()


async def test_without_members_a_sentence_says_so(
    etcd: EtcdSettings, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PATIENCE", 1.0)
    proxy.dead = True
    store = EtcdStore(behind(proxy, etcd))
    with pytest.raises(MoorageError, match="gives no answer") as caught:
        await store.lead()
    assert isinstance(caught.value, StoreError)
    assert not caught.value.lasting
    await store.close()
