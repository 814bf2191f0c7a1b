# SPDX-License-Identifier: BSD-2-Clause
"""The feed's numbers: no two masters give one to different things."""

import shutil
from pathlib import Path

from moorage.daemons.lead_record import hand_over
from moorage.model import successor
from moorage.model.change import Change
from moorage.store import ConfigStore, SqliteStore, create
from moorage.testing.cluster import ClusterBuilder


async def test_who_heard_what_a_copy_does_not_have_is_told_so(tmp_path: Path) -> None:
    """Another node leads with an older copy, and records that first of all."""
    path, copy = tmp_path / "state.sqlite", tmp_path / "copy.sqlite"
    store = SqliteStore(path)
    await create(store, ClusterBuilder(2).disk("a").change())
    await store.close()
    shutil.copy(path, copy)

    config_store, _ = await ConfigStore.open(SqliteStore(path))
    await config_store.commit(Change((successor(config_store.config.disk("a"), 1.0),)))
    heard = config_store.feed.last
    await config_store.close()

    await hand_over(copy, "node2", 100)
    config_store, _ = await ConfigStore.open(SqliteStore(copy))
    assert config_store.term == 101
    assert config_store.feed.last > heard
    assert config_store.feed.after(heard) is None
    await config_store.close()
