# SPDX-License-Identifier: BSD-2-Clause
"""Verify says when a copy of the master's state is behind, and when there are few."""

from typing import Any

from moorage.jobs import View
from moorage.model import NodeFacts, load
from moorage.ops.cluster import checks_copies
from moorage.ops.cluster.observation import see
from moorage.protocol import CopyStatus
from moorage.testing.cluster import ClusterBuilder


def found(builder: ClusterBuilder, *copies: CopyStatus) -> list[str]:
    config = load(1, builder.objects.values())
    answers: Any = {}
    view = View(config, answers)
    answers[checks_copies.copies_on(view)] = list(copies)
    seen = type(see(View(config, _Any())))(view, {}, {}, {})
    findings = list(checks_copies.copies(seen))
    assert all(one.warning and one.hint for one in findings)
    return [f"{one.object}: {one.message}" for one in findings]


class _Any(dict[Any, Any]):
    def __missing__(self, _key: Any) -> NodeFacts:
        return NodeFacts(version="1")


def test_a_copy_that_is_behind_is_told_with_its_figures() -> None:
    behind = CopyStatus(node="node2", state="behind", commits=12, why="it is silent")
    current = CopyStatus(node="node3", state="current", commits=0)
    (one,) = found(ClusterBuilder(3), behind, current)
    assert one.startswith("node node2: its copy of the state is behind, and lacks 12")
    assert "(it is silent)" in one


def test_a_copy_that_is_being_filled_is_no_finding() -> None:
    filling = CopyStatus(node="node2", state="filling")
    assert found(ClusterBuilder(2), filling) == []


def test_nodes_that_could_keep_a_copy_are_counted() -> None:
    builder = ClusterBuilder(1)
    builder.node("node8", master_candidate=False)
    builder.node("node9", master_candidate=False, master_capable=False)
    (one,) = found(builder)
    assert one == "cluster: 1 more node could keep a copy of the state"
    builder.node("node7", master_candidate=False, drained=True)
    assert found(builder) == [one]
