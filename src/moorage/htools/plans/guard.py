# SPDX-License-Identifier: BSD-2-Clause
"""What keeps a plan from harm: loaded only where something could be lost."""

from moorage.htools.plans.balancing import Filter
from moorage.htools.state import State


def guard(state: State) -> Filter | None:
    """Return what keeps nodes losable; without shared storage the score does."""
    if not state.has_shared:
        return None
    from moorage.htools.survival.keeping import Losing  # noqa: PLC0415 - start-up time

    return Losing()
