# SPDX-License-Identifier: BSD-2-Clause
"""Users, workers that die, and clusters that are silent, late or forgetful.

Whatever happens, in whatever order: no byte of a volume is lost, no two clusters can
write to one, the quota is what there is, and in the end every verb has ended.
``make cloud-stateful SEED=7 STEPS=20000`` tries others.
"""

from itertools import count

import pytest
from cloud_mishaps import Anything
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

LENGTH = 60
"""Steps in the life of one service, at most."""
SEEDS = 1 << 32
"""What is added to a seed for more lives, where the first were too short."""


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_whatever_happens_no_byte_is_lost(database: str, pytestconfig: pytest.Config):
    assert database
    steps = pytestconfig.getoption("--cloud-steps")
    first = pytestconfig.getoption("--stateful-seed")
    Anything.steps = 0
    again = count()
    while (missing := steps - Anything.steps) > 0:
        try:
            run_state_machine_as_test(
                seed(first + next(again) * SEEDS)(Anything),
                settings=settings(
                    max_examples=missing // LENGTH + 1,
                    stateful_step_count=LENGTH,
                    phases=(Phase.generate,),  # to make one smaller takes minutes
                    report_multiple_bugs=False,
                    deadline=None,
                    database=None,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        except BaseException as error:
            error.add_note(f"seed {first}: {Anything.steps} steps until this was told")
            raise
