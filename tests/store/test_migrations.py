# SPDX-License-Identifier: BSD-2-Clause
"""A store of an earlier Moorage goes on with this one; a copy of it is kept."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from moorage.jobs.job import decode as decode_job
from moorage.model import Instance, Node
from moorage.store import ConfigStore, Damaged, SqliteStore, inspect
from moorage.store.migrations import FORMAT, kept

FORMER = Path(__file__).parent / "format_1.sql"


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """Return the file of a store that an earlier Moorage wrote."""
    file = tmp_path / "state.sqlite"
    with closing(sqlite3.connect(file)) as database:
        database.executescript(FORMER.read_text())
    return file


async def test_a_former_store_goes_on_and_its_copy_is_what_it_was(former: Path) -> None:
    with closing(sqlite3.connect(former)) as database:
        before = list(database.iterdump())
    store = SqliteStore(former)
    config_store, others = await ConfigStore.open(store)
    assert [one.name for one in config_store.config.named(Instance)] == ["web1"]
    assert decode_job(others["job"]["13"]).status == "running"
    await config_store.close()
    found = inspect(former, live=False)
    assert found.faults == []
    with closing(sqlite3.connect(kept(former, 1))) as database:
        assert list(database.iterdump()) == before
    assert kept(former, 1).stat().st_mode & 0o777 == 0o600


async def test_of_many_marked_nodes_ten_stay_candidates_and_the_master_is_one(
    former: Path,
) -> None:
    with closing(sqlite3.connect(former)) as database, database:
        ((value,),) = database.execute("SELECT value FROM records WHERE kind='cluster'")
        master = json.loads(value)["master_node"]
        database.execute("PRAGMA user_version = 0")  # checksums are written anew
        (one,) = database.execute(
            "SELECT value FROM records WHERE name = ?", (master,)
        ).fetchone()
        ((version,),) = database.execute("SELECT version FROM head")
        for number in range(20):
            more = {"uuid": f"0-{number:02}", "name": f"a{number:02}"}
            fields = json.loads(one) | more | {"serial_no": 7}
            fields["master_candidate"] = number > 0  # somebody said no of one
            if number % 2:  # of before there were these
                del fields["master_candidate"], fields["serial_no"]
            node = json.dumps(fields)
            put = "INSERT INTO records VALUES ('node', ?, CAST(? AS BLOB), 0)"
            database.execute(put, (more["uuid"], node))
    store = SqliteStore(former)
    config_store, _ = await ConfigStore.open(store)
    marked = {
        one.uuid for one in config_store.config.named(Node) if one.master_candidate
    }
    assert marked == {master, *(f"0-{number:02}" for number in range(1, 10))}
    assert config_store.config.cluster.candidate_pool_size == 10
    serials = [config_store.config.node(f"a{number}").serial_no for number in (18, 19)]
    assert serials == [8, 2]
    assert store.head.version == version + 1  # later than all copies of it
    await config_store.close()


async def test_a_step_that_fails_leaves_the_former_store(
    former: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moorage.store import migrations  # noqa: PLC0415

    def broken(database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM records")
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(migrations, "STEPS", (broken, broken))
    store = SqliteStore(former)
    with pytest.raises(Exception, match="disk I/O error"):
        await store.lead()
    await store.close()
    monkeypatch.undo()
    config_store, _ = await ConfigStore.open(SqliteStore(former))
    assert config_store.config.instance("web1")
    await config_store.close()


async def test_a_later_store_is_refused_with_the_reason_and_a_way(former: Path) -> None:
    with closing(sqlite3.connect(former)) as database:
        database.execute(f"PRAGMA user_version = {FORMAT + 1}")
    store = SqliteStore(former)
    with pytest.raises(Damaged) as error:
        await store.lead()
    assert f"its format {FORMAT + 1} is unknown" in error.value.message
    assert f"mv {kept(former, FORMAT)} {former}" in error.value.hint
    await store.close()


async def test_back_with_the_kept_copy(former: Path) -> None:
    config_store, _ = await ConfigStore.open(SqliteStore(former))
    await config_store.close()
    kept(former, 1).replace(former)
    with closing(sqlite3.connect(former)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    config_store, _ = await ConfigStore.open(SqliteStore(former))
    assert config_store.config.instance("web1")
    await config_store.close()


async def test_the_copy_has_its_name_before_the_store_is_changed(
    former: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut leaves a former store, or its copy: a rename alone may be lost."""
    seen = []

    def synced(handle: int) -> None:
        if Path(f"/proc/self/fd/{handle}").readlink() == former.parent:
            with closing(sqlite3.connect(former)) as database:
                ((number,),) = database.execute("PRAGMA user_version")
            seen.append((kept(former, 1).exists(), number))

    monkeypatch.setattr(os, "fsync", synced)
    config_store, _ = await ConfigStore.open(SqliteStore(former))
    await config_store.close()
    assert seen == [(True, 1)]
