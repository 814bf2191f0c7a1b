# SPDX-License-Identifier: BSD-2-Clause
"""The master dies while hooks run, or beside them: they run once, or once more."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from moorage.testing.cluster import SimCluster
from moorage.testing.scenarios import SCENARIOS, Scenario

OPERATIONS = (
    "OP_INSTANCE_STARTUP",
    "OP_INSTANCE_REMOVE",
)
_FIRST = {op: [one for one in SCENARIOS if one.op_id == op][:1] for op in OPERATIONS}
CASES = [one for found in _FIRST.values() for one in found]
each = pytest.mark.parametrize("scenario", CASES, ids=[c.op_id for c in CASES])


@pytest.fixture
def hooked(quay: Any) -> Any:
    """Return the harbour with a hook for everything on every node."""
    base = quay.base
    base.hooked = True
    found = type(quay)(base, quay.before, quay.directory, _with_hooks)
    found.numbers = quay.numbers
    yield found
    base.hooked = False


def _with_hooks(cluster: SimCluster) -> None:
    ran: Counter[str] = Counter()
    for name, node in cluster.nodes.nodes.items():

        def note(env: Mapping[str, str], name: str = name) -> str:
            ran[f"{name} {env['GANETI_HOOKS_PATH']} {env['GANETI_HOOKS_PHASE']}"] += 1
            return ""

        every = {
            f"{path}-{phase}.d": {"note": note}
            for path in ("global", "instance-start", "instance-remove")
            for phase in ("pre", "post")
        }
        node.machine.hooks = every
    cluster.ran_hooks = ran


@each
async def test_a_crash_at_every_point_with_hooks(
    hooked: Any, scenario: Scenario
) -> None:
    told = await hooked.reference(scenario)
    assert any("hooks, pre" in point for point in told.points)
    assert any("hooks, post" in point for point in told.points)
    for at in range(len(told.points)):
        cluster = await hooked.fresh()
        cluster.crash_at = at
        await hooked.crashed(cluster, scenario)
        job = await hooked.taken_over(cluster)
        ran = cluster.ran_hooks
        await hooked.checked(cluster, job, told)
        assert ran["node1 global pre"] in (1, 2)
        assert ran["node1 global post"] in (1, 2)
        own = {key: n for key, n in ran.items() if " global " not in key}
        assert set(own.values()) <= {1, 2}
