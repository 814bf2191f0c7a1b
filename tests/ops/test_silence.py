# SPDX-License-Identifier: BSD-2-Clause
"""Marking a node offline is for one without power, and hints name it for no other."""

from pathlib import Path
from typing import Any

import pytest

from moorage.errors import Failed, MoorageError, Refused, Stale, Unreachable
from moorage.testing.cluster import ClusterBuilder, SimCluster

OFF = "gnt-node modify --offline=yes node2"
ALIVE = [
    Failed("the fence /x/term cannot be read", hint="rm /x/term"),
    Stale("a master of term 6 has spoken: term 3 is over", hint="moorage master stop"),
    Unreachable("no trust in its certificate", sent=False, silent=False),
    Failed("internal error on the node: OSError: No space left on device"),
]
SILENT = Unreachable("node node2 does not answer: Connection refused", sent=False)


async def cluster(directory: Path, error: MoorageError) -> SimCluster:
    """Return a cluster whose second node says nothing but an error."""
    found = await SimCluster.start(directory, ClusterBuilder().instance("web", "node2"))
    call = found.nodes.call

    async def ask(node: Any, *more: Any) -> Any:
        if node.name == "node2":
            raise error
        return await call(node, *more)

    found.nodes.call = ask  # type: ignore[method-assign]
    return found


@pytest.mark.parametrize("error", ALIVE, ids=lambda one: one.message[:20])
async def test_a_node_that_answers_with_an_error_is_not_off(
    tmp_path: Path, error: MoorageError
) -> None:
    found = await cluster(tmp_path, error)
    fields: dict[str, Any] = {"node_name": "node2", "offline": True}
    told = await found.refused("OP_NODE_SET_PARAMS", **fields)
    assert isinstance(told, Refused)
    assert told.message.startswith("node node2 is not off: it answers, with an error")
    assert error.message in told.message
    assert not found.config.node("node2").offline
    await found.run("OP_NODE_SET_PARAMS", force=True, **fields)
    assert found.config.node("node2").offline
    await found.stop()


async def test_a_node_that_is_silent_may_be_marked(tmp_path: Path) -> None:
    found = await cluster(tmp_path, SILENT)
    await found.run("OP_NODE_SET_PARAMS", node_name="node2", offline=True)
    assert found.config.node("node2").offline
    await found.stop()


@pytest.mark.parametrize("error", [*ALIVE, SILENT], ids=lambda one: one.message[:20])
async def test_only_silence_is_answered_with_the_mark(
    tmp_path: Path, error: MoorageError
) -> None:
    found = await cluster(tmp_path, error)
    hints = [
        (await found.refused("OP_INSTANCE_STARTUP", instance_name="web")).hint,
        (await found.refused("OP_NODE_EVACUATE", node_name="node2")).hint,
    ]
    verified = await found.run("OP_CLUSTER_VERIFY")
    hints += [
        one["hint"] for one in verified["errors"] if one["object"] == "node node2"
    ]
    assert len(hints) == 3
    assert {OFF in hint for hint in hints} == {error is SILENT}
    await found.stop()
