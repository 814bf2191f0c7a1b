# SPDX-License-Identifier: BSD-2-Clause
"""Requests and mishaps in any order and at once; what must hold, holds.

``make stateful SEED=7 STEPS=100000`` tries others.
"""

import sys
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

sys.path.insert(0, str(Path(__file__).parent))

from expected import Expected
from rules import Anything

PARTS = 4
"""Tests that share the steps; each has a seed of its own. Only the first is fast."""
FAST = 8
"""It takes an eighth of them, the others the rest."""
SEEDS = 1 << 32
"""What is added to a seed for more lives, where the first were too short."""
LENGTH = 100
"""Steps in the life of one cluster, at most."""
KINDS = (
    *("disk_", "instance_", "node_", "storage_", "tags_", "backup_", "network_"),
    "group_",
)
OPCODES = {f"OP_{name.upper()}" for name in vars(Expected) if name.startswith(KINDS)}
"""Most must succeed now and then, or nothing is shown; any may be rare in one part."""


@pytest.mark.requirement("S3-24")
@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(one, marks=pytest.mark.slow) for one in range(1, PARTS))]
)
def test_any_order_of_requests_and_mishaps(
    in_memory: Path, pytestconfig: pytest.Config, part: int
) -> None:
    every = pytestconfig.getoption("--stateful-steps")
    steps = (every - every // FAST) // (PARTS - 1) if part else every // FAST
    first = pytestconfig.getoption("--stateful-seed") * PARTS + part
    Anything.begin(in_memory / f"{part}")
    for again in count():
        missing = steps - Anything.steps
        if missing <= 0:
            break
        run_state_machine_as_test(
            seed(first + again * SEEDS)(Anything),
            settings=settings(
                max_examples=missing // LENGTH + 1,  # many lives are shorter
                stateful_step_count=LENGTH,
                phases=(Phase.generate, Phase.shrink),
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    never = {op for op in OPCODES if not Anything.succeeded[op]}
    assert len(never) <= len(OPCODES) // 3, never
