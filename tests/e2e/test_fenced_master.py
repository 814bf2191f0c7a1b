# SPDX-License-Identifier: BSD-2-Clause
"""A master whose nodes have heard another one says so of itself, and ends.

The master and the agents are processes; the nodes are simulated.
"""

import io
import shutil
from collections.abc import Callable

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import process
from moorage.daemons.devcluster import Scratch
from moorage.daemons.paths import MasterPlaces

pytestmark = pytest.mark.slow


@pytest.fixture
def town(scratch_of: Callable[[str], Scratch]) -> Scratch:
    return scratch_of("--nodes 2 --hypervisor sim")


def test_of_a_store_and_its_copy_one_master_ends(town: Scratch) -> None:
    hands = Typist(town.environment(), io.StringIO())
    hands.type("moorage master stop")
    copy = MasterPlaces(town.path / "node1" / "copy")
    shutil.copytree(town.master.root, copy.root)
    hands.type("moorage master start")
    original = process.holder(town.master.lock)
    assert len(hands.ask("gnt-node list -o name,mtotal")) == 2
    try:
        process.spawn(["master", "run", "--restart", "--dir", str(copy.root)], copy.log)
        told = "this is not the cluster's master"
        assert process.wait_until(lambda: told in copy.log.read_text(), 60)
        assert process.wait_until(lambda: not process.holder(copy.supervisor), 60)
        assert not process.holder(copy.lock)  # and nobody starts it again
    finally:
        for lock in (copy.supervisor, copy.lock):
            pid = process.holder(lock)
            if pid:
                process.end(pid)
    assert process.holder(town.master.lock) == original
    assert all(one["mtotal"] for one in hands.ask("gnt-node list -o name,mtotal"))
