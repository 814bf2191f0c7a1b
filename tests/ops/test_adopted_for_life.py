# SPDX-License-Identifier: BSD-2-Clause
"""That a volume was there before its disk is no parameter that changes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.errors import BadInput
from moorage.model import Change, successor
from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import harbour

MODIFY = "OP_DISK_SET_PARAMS"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    cluster = await harbour(tmp_path / "nodes")
    yield cluster
    await cluster.stop()


async def test_who_drops_the_word_does_not_drop_the_protection(
    cluster: SimCluster,
) -> None:
    """A record of an earlier version says it by the parameter alone."""
    disk = cluster.config.disk("root3")
    old = successor(disk, 1.0, params=disk.params | {"reuse_data": "True"})
    await cluster.config_store.commit(Change((old,)))
    await cluster.run(MODIFY, disk="root3", params={"reuse_data": "default"})
    assert cluster.config.disk("root3").params == disk.params
    assert cluster.config.disk("root3").was_there


async def test_a_volume_that_was_made_is_not_said_to_have_been_there(
    cluster: SimCluster,
) -> None:
    wish = {"params": {"Reuse_Data": "yes"}, "force_params": True}
    with pytest.raises(BadInput, match="was made for it"):
        await cluster.run(MODIFY, disk="root3", **wish)
    assert not cluster.config.disk("root3").was_there
