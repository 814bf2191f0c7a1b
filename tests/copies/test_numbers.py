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

    truth, _ = await ConfigStore.open(SqliteStore(path))
    await truth.commit(Change((successor(truth.config.disk("a"), 1.0),)))
    heard = truth.feed.last
    await truth.close()

    await hand_over(copy, "node2", 100)
    truth, _ = await ConfigStore.open(SqliteStore(copy))
    assert truth.term == 101
    assert truth.feed.last > heard
    assert truth.feed.after(heard) is None
    await truth.close()
