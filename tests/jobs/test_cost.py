# SPDX-License-Identifier: BSD-2-Clause
"""What a job about one object does is the same with few nodes and with many.

Counted are the lines that Python executes, so a busy machine changes nothing: a loop
over all nodes, or over all that is on them, is as many more.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import moorage
from moorage.testing.cluster import ClusterBuilder, SimCluster

FEW, MANY = 4, 64
EACH = 3
"""Instances of each node."""
MORE = 30
"""Lines that may be more with many: a job's number is longer, a search is deeper."""
MET = 11.0
"""Seconds after which nodes know their master."""
OURS = str(Path(moorage.__file__).parent)
SIMULATED = f"{OURS}/testing"
ON = {"instance_name": "web1"}
DISK = {"name": "new1", "size": 64, "disk_template": "ext", "provider": "san"}

Jobs = list[tuple[str, dict[str, Any]]]
JOBS: Jobs = [
    ("OP_INSTANCE_STARTUP", ON),
    ("OP_INSTANCE_SHUTDOWN", ON),
    ("OP_INSTANCE_ACTIVATE_DISKS", ON),
    ("OP_INSTANCE_DEACTIVATE_DISKS", ON),
    ("OP_DISK_ADD", DISK),
    ("OP_DISK_ATTACH", {**ON, "disk": "new1"}),
    ("OP_DISK_DETACH", {"disk": "new1"}),
    ("OP_DISK_REMOVE", {"disk": "new1"}),
    ("OP_INSTANCE_STARTUP", ON),
    ("OP_INSTANCE_FAILOVER", {**ON, "target_node": "node2"}),
    ("OP_INSTANCE_FAILOVER", {**ON, "target_node": "node1"}),
    ("OP_INSTANCE_SHUTDOWN", ON),
]
"""They leave all as it was."""


class Clock:
    """A clock that is put forward."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def cluster(directory: Path, nodes: int) -> SimCluster:
    """Return a cluster whose nodes know their master and were asked for all once."""
    builder = ClusterBuilder(nodes)
    for number in range(1, nodes * EACH + 1):
        home = f"node{(number - 1) // EACH + 1}"
        builder.disk(f"d{number}", last_node=home)
        builder.instance(f"web{number}", home, (f"d{number}",))
    found = SimCluster(directory)
    found.clock = clock = Clock()
    await found.make(builder)
    size = {"size": 1024, "provider": "san", "data": ""}
    for number in range(1, nodes * EACH + 1):
        found.nodes.san.volumes[f"vol-d{number}"] = dict(size)
    await found.run("OP_CLUSTER_VERIFY")
    clock.now += MET
    for op_id, fields in JOBS:
        await found.run(op_id, **fields)
    return found


@contextmanager
def counted() -> Iterator["Counter[tuple[str, int]]"]:
    """Count the lines of ours that are executed, by module and number."""
    found: Counter[tuple[str, int]] = Counter()

    def line(frame: FrameType, event: str, _arg: object) -> Any:
        if event == "line":
            found[frame.f_code.co_filename, frame.f_lineno] += 1
        return line

    def call(frame: FrameType, _event: str, _arg: object) -> Any:
        name = frame.f_code.co_filename
        ours = name.startswith(OURS) and not name.startswith(SIMULATED)
        return line if ours else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield found
    finally:
        sys.settrace(before)


@pytest.fixture
async def costs(tmp_path: Path) -> Any:
    """Return how often each line was executed by each job, with few nodes and many."""
    found = []
    for nodes in (FEW, MANY):
        sim = await cluster(tmp_path / str(nodes), nodes)
        found.append([])
        for op_id, fields in JOBS:
            with counted() as lines:
                await sim.run(op_id, **fields)
            found[-1].append(lines)
        await sim.stop()
    return found


async def test_one_object_costs_the_same_with_many_nodes(costs: Any) -> None:
    for (op_id, _), few, many in zip(JOBS, *costs, strict=True):
        more = many - few
        assert more.total() <= MORE, (op_id, more.most_common(5))
