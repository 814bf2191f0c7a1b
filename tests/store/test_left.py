# SPDX-License-Identifier: BSD-2-Clause
"""A SQLite store whose state was moved elsewhere: nobody leads or looks there."""

from pathlib import Path

import pytest

from moorage.daemons import store_move
from moorage.daemons.paths import MasterPlaces
from moorage.errors import BadInput, Exists
from moorage.node.records.state_copy import StateCopy
from moorage.store import Elsewhere, SqliteStore, create, inspect
from moorage.store.records import leave
from moorage.testing.cluster import ClusterBuilder


@pytest.fixture
async def places(tmp_path: Path) -> MasterPlaces:
    found = MasterPlaces(tmp_path)
    store = SqliteStore(found.store)
    await create(store, ClusterBuilder(nodes=2).change())
    await store.close()
    return found


async def test_nobody_leads_where_the_state_was(places: MasterPlaces) -> None:
    for to in ("etcd://there/x", "etcd://there/y"):
        leave(places.store, "1", to)  # a move that was cut says it again
        store = SqliteStore(places.store)
        with pytest.raises(Elsewhere, match=f"was moved from .*sqlite to {to}") as told:
            await store.lead()
        await store.close()
        assert told.value.facts["move"] == "1"
    with pytest.raises(Elsewhere, match="etcd://there/y"):
        inspect(places.store, live=False)


SLIPS = {
    "etcd://10.0.0.1:2379/x": "the state would go to 10.0.0.1 in clear",
    "nowhere.json": "is no etcd://HOST:PORT,…/PREFIX and no file of settings",
    "etcd://127.0.0.1:2379/x/": "is not as /NAME",
}


@pytest.mark.parametrize("word", SLIPS)
def test_slips_end_in_a_sentence(tmp_path: Path, word: str) -> None:
    places = MasterPlaces(tmp_path)
    places.store.write_bytes(b"a store")
    with pytest.raises(BadInput, match=SLIPS[word]):
        store_move.plan(places, word)
    assert [*tmp_path.iterdir()] == [places.store]


def test_where_it_is_it_stays(places: MasterPlaces) -> None:
    with pytest.raises(Exists, match=r"is in .*state.sqlite already"):
        store_move.plan(places, "sqlite")
    assert not places.moving.exists()


def test_a_candidate_forgets_its_copy_and_keeps_its_key(tmp_path: Path) -> None:
    key = tmp_path / "keys" / "own.pem"
    key.parent.mkdir()
    key.write_text("key")
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "state.sqlite").write_text("old")
    (tmp_path / "current").write_text("1\n")
    copy = StateCopy(tmp_path)
    copy.drop(keep_keys=True)
    assert copy.path is None
    assert [*tmp_path.iterdir()] == [key.parent]
    copy.drop()
    assert not tmp_path.exists()
