# SPDX-License-Identifier: BSD-2-Clause
"""Every engine: all at once or not at all, at the expected version, by one leader."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from moorage.errors import Conflict, Exists, NotFound, Refused
from moorage.model import Change, Config, successor
from moorage.store import (
    ConfigStore,
    MemoryStore,
    SqliteStore,
    Store,
    StoreError,
    Write,
    create,
    require_cluster,
)
from moorage.store.checksums import combined, of_record
from moorage.store.etcd import EtcdStore
from moorage.testing.cluster import ClusterBuilder

ENGINES = ["memory", "sqlite", pytest.param("etcd", marks=pytest.mark.real)]


@pytest.fixture(params=ENGINES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store
    if request.param == "etcd":
        made = EtcdStore(request.getfixturevalue("etcd"))
    else:
        made = MemoryStore() if request.param == "memory" else _sqlite(tmp_path)
    yield made
    await made.close()


def _sqlite(directory: Path) -> SqliteStore:
    return SqliteStore(directory / "store" / "config.db")


async def test_what_is_committed_is_loaded(store: Store) -> None:
    await store.lead()
    first = await store.commit([(("job", "1"), b"a"), (("job", "2"), b"b")], expected=0)
    second = await store.commit([(("job", "1"), None)], expected=first)
    stored = await store.load()
    assert stored.version == second
    assert dict(stored.records) == {("job", "2"): b"b"}


async def test_a_store_that_was_closed_is_led_again(store: Store) -> None:
    term = await store.lead()
    await store.commit([(("job", "1"), b"a")], expected=0)
    await store.close()
    assert await store.lead() > term
    assert (await store.load()).records == {("job", "1"): b"a"}


async def test_what_begins_with_a_prefix_is_read(store: Store) -> None:
    await store.lead()
    names = ("a 1", "a 2", "a \N{SNOWMAN}", "a", "ab 1", "b 1")
    writes = [((kind, name), name.encode()) for kind in "xy" for name in names]
    await store.commit(writes, expected=0)
    found = await store.read("x", "a ")
    assert found == {name: name.encode() for name in names[:3]}
    assert await store.read("z", "") == {}


async def test_another_version_is_refused_and_nothing_written(store: Store) -> None:
    await store.lead()
    version = await store.commit([(("job", "1"), b"a")], expected=0)
    with pytest.raises(Conflict):
        await store.commit([(("job", "1"), b"x"), (("job", "9"), b"y")], expected=0)
    stored = await store.load()
    assert (stored.version, dict(stored.records)) == (version, {("job", "1"): b"a"})


async def test_all_of_a_large_commit_is_there(store: Store) -> None:
    """More than etcd takes in one request, in number and in size, and one record."""
    await store.lead()
    many = {("job", f"{one} \N{SNOWMAN}/\0"): b"%d" % one for one in range(300)}
    large = {("job", "large"): bytes(range(256)) * 8000, ("none", ""): b""}
    version = await store.commit(list((many | large).items()), expected=0)
    assert dict((await store.load()).records) == many | large
    small = {("job", "large"): b"", ("none", ""): None, ("job", "gone"): None}
    twice = [*small.items(), (("job", "2"), b"a"), (("job", "2"), b"b")]
    await store.commit(twice, expected=version)
    found = many | {("job", "large"): b"", ("job", "2"): b"b"}
    assert dict((await store.load()).records) == found
    head, records = await store.whole()
    assert (head, dict(records)) == (store.head, found)
    assert head.total == combined(of_record(*one) for one in found.items())


async def test_every_leadership_has_a_higher_term(tmp_path: Path) -> None:
    terms = []
    for _ in range(3):
        store = _sqlite(tmp_path)
        terms.append(await store.lead())
        await store.close()
    assert terms == sorted(set(terms))


async def test_a_second_leader_is_refused_with_a_hint(tmp_path: Path) -> None:
    first, second = _sqlite(tmp_path), _sqlite(tmp_path)
    await first.lead()
    with pytest.raises(Refused, match="another master leads") as caught:
        await second.lead()
    assert caught.value.hint == "stop it first"
    await first.close()
    await second.lead()
    await second.close()


async def test_a_leader_that_was_overtaken_writes_nothing(tmp_path: Path) -> None:
    old = _sqlite(tmp_path)
    await old.lead()
    version = await old.commit([(("job", "1"), b"a")], expected=0)
    Path(f"{old.path}.lock").unlink()  # it was lost, by a copied disk say
    other = SqliteStore(old.path)
    await other.lead()
    await other.close()
    with pytest.raises(Conflict, match="another master leads"):
        await old.commit([(("job", "1"), b"b")], expected=version)
    assert (await old.load()).records[("job", "1")] == b"a"
    await old.close()


async def test_a_failing_write_leaves_nothing_half_written(tmp_path: Path) -> None:
    store = _sqlite(tmp_path)
    await store.lead()
    bad: Sequence[Write] = [(("job", "1"), b"a"), (("job", ["2"]), b"b")]  # type: ignore[list-item]
    with pytest.raises(StoreError):
        await store.commit(bad, expected=0)
    assert (await store.load()).records == {}
    assert await store.commit([(("job", "1"), b"a")], expected=0) == 1
    await store.close()


async def test_a_full_disk_is_told_and_the_store_is_as_it_was(tmp_path: Path) -> None:
    store = _sqlite(tmp_path)
    await store.lead()
    await store.commit([(("job", "1"), b"a")], expected=0)

    async def pages(most: int) -> None:
        limit = f"PRAGMA max_page_count = {most}"
        await store._run(lambda: store._open().execute(limit).fetchall())

    await pages(1)
    large: Sequence[Write] = [(("job", "1"), None), (("job", "2"), b"b" * 99_999)]
    with pytest.raises(StoreError) as caught:
        await store.commit(large, expected=1)
    assert caught.value.message == (
        f"the store in {store.path.parent}: database or disk is full"
    )
    assert not caught.value.lasting
    assert (await store.load()).records == {("job", "1"): b"a"}
    await pages(9999)
    assert await store.commit(large, expected=1) == 2
    assert list((await store.load()).records) == [("job", "2")]
    await store.close()


async def test_a_commit_is_on_the_disk_before_it_is_acknowledged(
    tmp_path: Path,
) -> None:
    store = _sqlite(tmp_path)
    await store.lead()
    for name, value in (("journal_mode", "wal"), ("synchronous", 2)):
        asked = f"PRAGMA {name}"
        found = await store._run(lambda: store._open().execute(asked).fetchall())  # noqa: B023
        assert found == [(value,)]
    await store.close()


async def test_the_files_are_their_owners_alone(tmp_path: Path) -> None:
    store = _sqlite(tmp_path / "not" / "made")
    await store.lead()
    await store.load()
    names = set()
    for path in store.path.parent.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path
        names.add(path.name.removeprefix("config.db"))
    assert names == {"", ".lock", "-wal", "-shm"}
    assert store.path.parent.stat().st_mode & 0o077 == 0
    await store.close()


# -- the truth on top --------------------------------------------------------------


async def test_a_cluster_is_made_once() -> None:
    store = MemoryStore()
    await create(store, ClusterBuilder().change())
    with pytest.raises(Exists, match="there is a cluster already"):
        await create(store, ClusterBuilder().change())


async def test_without_a_cluster_the_hint_says_how_to_make_one() -> None:
    config_store, _ = await ConfigStore.open(MemoryStore())
    with pytest.raises(NotFound) as caught:
        require_cluster(config_store)
    assert caught.value.hint == "gnt-cluster init NAME"


async def test_a_snapshot_survives_the_store(tmp_path: Path) -> None:
    builder = ClusterBuilder().disk("a").instance("web", "node1", ("a",))
    store = _sqlite(tmp_path)
    config_store, _ = await ConfigStore.open(store)
    config = await config_store.commit(builder.change(), [(("job", "4"), b"x")])
    await config_store.close()
    again, others = await ConfigStore.open(_sqlite(tmp_path))
    assert dict(again.config.objects.items()) == dict(config.objects.items())
    assert again.config.serial_no == config.serial_no
    assert others["job"] == {"4": b"x"}
    await again.close()


class CountingStore(MemoryStore):
    """Counts the records of each commit."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    async def commit(self, writes: Sequence[Write], *, expected: int) -> int:
        self.sizes.append(len(writes))
        return await super().commit(writes, expected=expected)


@pytest.mark.parametrize("disks", [1, 1000])
async def test_a_commit_costs_what_it_touches(disks: int) -> None:
    builder = ClusterBuilder().instance("web")
    for number in range(disks):
        builder.disk(f"d{number}")
    store = CountingStore()
    await create(store, builder.change())
    config_store, _ = await ConfigStore.open(store)
    disk, web = config_store.config.disk("d0"), config_store.config.instance("web")
    await config_store.commit(
        Change(
            (successor(disk, 1.0, epoch=1), successor(web, 1.0, disks=(disk.uuid,)))
        ),
        [(("job", "1"), b"")],
    )
    # the disk, what happened to it, the instance, the serial number, the job
    assert store.sizes[-1] == 6


async def test_readers_keep_their_snapshot() -> None:
    store = MemoryStore()
    await create(store, ClusterBuilder().disk("a").change())
    config_store, _ = await ConfigStore.open(store)
    before: Config = config_store.config
    new = successor(before.disk("a"), 1.0, name="b")
    await config_store.commit(Change((new,)))
    assert before.disk("a").name == "a"
    assert config_store.config.disk("b").uuid == "a"


async def test_a_caller_that_goes_away_does_not_break_the_truth(tmp_path: Path) -> None:
    config_store, _ = await ConfigStore.open(_sqlite(tmp_path))
    await config_store.commit(ClusterBuilder().disk("a").change())
    new = successor(config_store.config.disk("a"), 1.0, name="b")
    leaving = asyncio.create_task(config_store.commit(Change((new,))))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])
    assert leaving.cancelled()
    last = successor(config_store.config.disk("a"), 2.0)
    with pytest.raises(Conflict, match="changed meanwhile"):
        await config_store.commit(Change((last,)))  # it lost a race, and sees who won
    config = await config_store.commit(
        Change((successor(config_store.config.disk("a"), 3.0),))
    )
    assert (config.disk("a").name, config.disk("a").serial_no) == ("b", 3)
    await config_store.close()


WRITER = """
import asyncio, sys
from pathlib import Path
from moorage.store import SqliteStore

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    await store.lead()
    version = (await store.load()).version
    while True:
        version = await store.commit(
            [(("job", str(version)), b"x" * 4000), (("twin", str(version)), b"y")],
            expected=version,
        )
        print(version, flush=True)

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    path, version = tmp_path / "config.db", 0
    for kill_after in (1, 3, 7, 12):
        command = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout
            for _ in range(kill_after):
                version = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            rest = writer.stdout.read().split("\n")
            version = max([version, *(int(line) for line in rest[:-1] if line)])
        stored = asyncio.run(_loaded(path))
        assert stored.version >= version
        assert len(stored.records) == 2 * stored.version


async def _loaded(path: Path):
    store = SqliteStore(path)
    await store.lead()
    stored = await store.load()
    await store.close()
    return stored


async def test_what_was_forgotten_is_not_left_in_the_file(tmp_path: Path) -> None:
    """A job forgets its secrets; the pages that they were on are overwritten."""
    store = _sqlite(tmp_path)
    await store.lead()
    secret = b"a-token-of-a-node" * 200
    for version, value in enumerate((secret, b"shown to nobody", None)):
        await store.commit([(("job", "1"), value)], expected=version)
    await store.close()
    assert secret[:17] not in store.path.read_bytes()
