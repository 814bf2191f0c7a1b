# SPDX-License-Identifier: BSD-2-Clause
"""What a node that died left of an export goes when its agent is back; nothing else."""

import re
import time
from collections.abc import Callable, Iterator

import pytest

from moorage.storage import Command
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.served import Served, served
from moorage.testing.stored import EXPORTS_DIR

ADD = "gnt-instance add -n node2 --no-install --no-nics --disk 0:size=64M,dev_type=file"


@pytest.fixture
def sim() -> Iterator[Served]:
    with served(ClusterBuilder()) as found:
        yield found


@pytest.fixture
def types(typed, sim: Served) -> Callable[..., str]:
    def types_(line: str) -> str:
        screen = typed(line, **sim.environ)
        assert screen.status == 0, screen.err
        return screen.out + screen.err

    return types_


async def dies_at_a_dump(cluster: SimCluster) -> None:
    """Cut node2's power while it copies a disk."""

    def cut(_node: str, command: Command) -> bool:
        if command.argv[:2] == ("qemu-img", "convert"):
            cluster.nodes.cut[len(cluster.nodes.calls) - 1] = "node2"
        return False

    cluster.nodes.nodes["node2"].machine.refuse = cut


async def dies_at_a_removal(cluster: SimCluster) -> None:
    """Let node2 remove no export that is one no more."""
    draft = f"{EXPORTS_DIR}/web1.new"

    def refuse(_node: str, command: Command) -> bool:
        there = any(draft in name for name in cluster.nodes.san.files)
        return command.argv[0] == "rm" and command.argv[-1] == draft and there

    cluster.nodes.nodes["node2"].machine.refuse = refuse


async def is_back(cluster: SimCluster) -> None:
    cluster.nodes.nodes["node2"].machine.refuse = lambda *_: False
    cluster.nodes.nodes["node2"].boot()


async def theirs(cluster: SimCluster) -> None:
    """Put a half export of somebody else's, and its mark, where node2's are."""
    for name in ("db1.new", "web1.old"):
        key = f"node2:{EXPORTS_DIR}/{name}/.mark"
        cluster.nodes.san.files[key] = {"size": 1, "data": "another mark"}


async def lies_there(cluster: SimCluster) -> set[str]:
    mark = f"node2:{EXPORTS_DIR}/"
    files = [one for one in cluster.nodes.san.files if one.startswith(mark)]
    return {one.removeprefix(mark).partition("/")[0] for one in files}


def test_what_a_dead_node_left_is_gone_when_it_is_back(
    types: Callable[..., str], sim: Served
) -> None:
    """Though its job is over, for somebody said that the node was off."""
    types(f"{ADD} web1")
    types(f"{ADD} db1")
    types("gnt-instance shutdown web1")
    types("gnt-backup export -n node2 --noshutdown db1")
    whole = sim.inside(lies_there)
    assert whole == {"db1"}
    sim.inside(dies_at_a_dump)
    told = types("gnt-backup export --submit -n node2 web1")
    while not sim.cluster.nodes.cut or sim.cluster.nodes.nodes["node2"].powered:
        time.sleep(0.01)
    types("gnt-node modify --offline=yes node2")
    job = re.findall(r"\d+", told)[0]
    while "error" not in types(f"gnt-job list --no-headers -o status {job}"):
        time.sleep(0.01)
    assert "web1.new" in sim.inside(lies_there)
    sim.inside(theirs)
    sim.inside(is_back)
    types("gnt-node modify --offline=no node2")
    assert sim.inside(lies_there) == {"db1", "db1.new", "web1.old"}


def test_an_export_that_was_being_removed_is_gone_when_the_node_is_back(
    types: Callable[..., str], sim: Served
) -> None:
    types(f"{ADD} web1")
    types("gnt-backup export -n node2 --noshutdown web1")
    sim.inside(dies_at_a_removal)
    types("gnt-backup remove web1")
    assert sim.inside(lies_there) == {"web1.new"}
    sim.inside(is_back)
    types("gnt-node list --no-headers -o name,mfree")
    assert sim.inside(lies_there) == set()
