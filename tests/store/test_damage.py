# SPDX-License-Identifier: BSD-2-Clause
"""What a disk changes in silence is noticed, and not taken for the truth."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import json

from moorage.errors import MoorageError
from moorage.model import Change, successor
from moorage.model.change import KIND_OF, encode
from moorage.model.objects import Entity, Instance, Node
from moorage.store import ConfigStore, Damaged, SqliteStore, StoreError, create, inspect
from moorage.store.migrations import FORMAT
from moorage.testing.cluster import ClusterBuilder

FLIPS = 150
JOB, NODE = "WHERE kind = 'job'", "WHERE kind = 'node'"


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """Return a store's file with a cluster in it, and a job's record."""
    path = tmp_path / "store" / "state.sqlite"
    store = SqliteStore(path)
    await create(store, _change())
    await store.close()
    config_store, _ = await ConfigStore.open(again := SqliteStore(path))
    await config_store.commit(None, [(("job", "1"), b'{"id": 1, "ops": []}' * 50)])
    await again.close()
    return path


def _change() -> Change:
    return ClusterBuilder().change()


async def loaded(path: Path) -> object:
    store = SqliteStore(path)
    try:
        config_store, others = await ConfigStore.open(store)
        return config_store.term, dict(config_store.config.objects), others
    finally:
        await store.close()


async def outcome(path: Path) -> object:
    """Return what is loaded, or why it is not."""
    try:
        return await loaded(path)
    except StoreError as error:
        return error


def edited(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for one in statements:
            database.execute(one)


async def test_a_flipped_bit_changes_nothing_in_silence(file: Path) -> None:
    """Each is refused, or one that no record depends on; and `inspect` agrees."""
    whole = file.read_bytes()
    want = await loaded(file)
    dice = random.Random(3)  # noqa: S311
    refused = 0
    for _ in range(FLIPS):
        at, bit = dice.randrange(len(whole)), dice.randrange(8)
        torn = bytearray(whole)
        torn[at] ^= 1 << bit
        file.write_bytes(torn)
        seen = inspect(file, live=False)
        assert file.read_bytes() == torn
        found = await outcome(file)
        if isinstance(found, StoreError):
            assert (found.lasting, found.hint) == (True, "moorage master check")
            assert seen.faults, (at, bit)
            refused += 1
        else:
            assert found == want, (at, bit)
        for left in file.parent.glob("*-*"):
            left.unlink()
    assert refused > FLIPS // 10


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "UPDATE records SET value = X'7B7D' WHERE kind = 'node'",
            "the record of node",
        ),
        ("UPDATE records SET name = '2' WHERE kind = 'job'", "the record of job 2"),
        ("UPDATE records SET value = 'text' WHERE kind = 'job'", "the record of job 1"),
        ("DELETE FROM records WHERE kind = 'job'", "a record is missing"),
        ("UPDATE head SET term = term - 1", "its version and term"),
        ("UPDATE head SET version = 7", "its version and term"),
        ("DELETE FROM head", "it has 0 heads"),
        ("DROP TABLE records", "no such table"),
        ("PRAGMA user_version = 7", "of a later Moorage"),
        ("PRAGMA user_version = -1", "its format -1 is no Moorage's"),
    ],
)
async def test_damage_is_told_in_words(file: Path, statement: str, said: str) -> None:
    edited(file, statement)
    with pytest.raises(Damaged, match=said) as caught:
        await loaded(file)
    assert str(file) in caught.value.message
    assert inspect(file, live=False).faults


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (FORMAT + 1, "it is a later Moorage's"),
        (-1, "it is no Moorage's"),
        (0, "it is an earlier Moorage's, and the next master keeps a copy and changes"),
    ],
)
async def test_who_looks_is_told_of_another_format(
    file: Path, number: int, said: str
) -> None:
    edited(file, f"PRAGMA user_version = {number}")
    (fault,) = inspect(file, live=False).faults
    assert fault.startswith(f"its format is {number}, and not {FORMAT}: {said}")


@pytest.mark.parametrize(("count", "more"), [(1, ""), (3, ""), (4, ", and 1 more")])
async def test_of_much_damage_three_are_named_and_the_others_counted(
    file: Path, count: int, more: str
) -> None:
    some = f"SELECT name FROM records ORDER BY name LIMIT {count}"  # noqa: S608
    edited(file, f"UPDATE records SET value = X'7B7D' WHERE name IN ({some})")  # noqa: S608
    with pytest.raises(Damaged) as caught:
        await loaded(file)
    message = caught.value.message
    assert message.count("is not what was written") == min(count, 3)
    assert message.endswith(f"is not what was written{more}")


async def test_a_story_that_was_damaged_since_is_not_told(tmp_path: Path) -> None:
    """It is read when somebody asks for it, long after the master has begun."""
    path = tmp_path / "state.sqlite"
    await create(store := SqliteStore(path), ClusterBuilder().disk("a").change())
    await store.close()
    config_store, _ = await ConfigStore.open(SqliteStore(path))
    await config_store.commit(
        Change((successor(config_store.config.disk("a"), 1.0, name="b"),))
    )
    assert await config_store.story("a")
    edited(path, "UPDATE records SET value = X'7B7D' WHERE kind = 'story'")
    with pytest.raises(Damaged, match="the record of story a 0") as caught:
        await config_store.story("a")
    assert str(path) in caught.value.message
    await config_store.close()


async def test_an_older_page_is_noticed(file: Path) -> None:
    """Each record fits its checksum, but one of them is an earlier one."""
    with closing(sqlite3.connect(file)) as database:
        row = database.execute("SELECT * FROM records WHERE kind = 'job'").fetchone()
    config_store, _ = await ConfigStore.open(store := SqliteStore(file))
    await config_store.commit(None, [(("job", "1"), b'{"id": 1, "ops": [1]}')])
    await store.close()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)", row)
    with pytest.raises(Damaged, match="a record is missing, or is an old one"):
        await loaded(file)


async def test_a_store_from_before_checksums_gets_them(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    edited(
        file,
        "CREATE TABLE records (kind TEXT NOT NULL, name TEXT NOT NULL, "
        "value BLOB NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID",
        "CREATE TABLE head (version INTEGER NOT NULL, term INTEGER NOT NULL)",
        "INSERT INTO head VALUES (41, 7)",
        "INSERT INTO records VALUES ('job', '1', X'61')",
    )
    store = SqliteStore(file)
    assert await store.lead() == 8
    stored = await store.load()
    assert (stored.version, dict(stored.records)) == (41, {("job", "1"): b"a"})
    assert await store.commit([(("job", "1"), None)], expected=41) == 42
    await store.close()
    assert inspect(file, live=False).faults == []
    edited(file, "UPDATE head SET version = 41")
    assert inspect(file, live=False).faults != []


async def test_whoever_has_looked_may_take_a_store_as_it_is(file: Path) -> None:
    edited(
        file,
        "UPDATE records SET value = X'7B7D' WHERE kind = 'job'",
        "PRAGMA user_version = 0",
    )
    assert await loaded(file)
    assert inspect(file, live=False).faults == []


async def test_a_store_whose_objects_do_not_fit_is_damaged(tmp_path: Path) -> None:
    """Its checksums are right: a defect wrote it, or a person."""
    fields = {"primary_ip": "127.0.0.1", "secondary_ip": "127.0.0.1"}
    node: Entity = Node(uuid="n", name="n", group="nowhere", **fields)
    guest = Instance(uuid="i", name="i", primary_node="n", disks=("nope",))
    store = SqliteStore(tmp_path / "state.sqlite")
    await store.lead()
    writes = [
        ((KIND_OF[type(one)], one.uuid), json.encode(encode(one)))
        for one in (node, guest)
    ]
    await store.commit(writes, expected=0)
    await store.close()
    with pytest.raises(MoorageError, match="which is not there") as caught:
        await loaded(tmp_path / "state.sqlite")
    assert isinstance(caught.value, Damaged)
