# SPDX-License-Identifier: BSD-2-Clause
"""Which cases a run tries, where all of them take too long: others each time.

`make check` tries some of them, `make test` all, or more of what is quadratic. One seed
chooses; it is the minute's unless MOORAGE_SEED names it, and each run ends with it.
"""

import os
import time
from collections.abc import Sequence
from random import Random
from typing import TypeVar

import pytest

Case = TypeVar("Case")

SEED = int(os.environ.get("MOORAGE_SEED") or time.time() // 60)
os.environ["MOORAGE_SEED"] = f"{SEED}"  # all workers of a run have the same
ONE_IN = int(os.environ.get("MOORAGE_ONE_IN") or 8)
"""Slow tests try one in so many of what is quadratic, and of what is to be the same on
another database; 1 is all (`make crashes`, `make databases`)."""
EVERY_OTHER = min(2, ONE_IN)
"""They try one in so many of what takes minutes without being quadratic: each case is
tried by every other run, and all are where ONE_IN is 1."""


def one_in(fast: int, slow: int = 1) -> pytest.MarkDecorator:
    """Give a test its `step`: it tries one case in so many, more in a slow one."""
    some = pytest.param(fast, id="some", marks=pytest.mark.sample)
    more = pytest.param(slow, id="more", marks=pytest.mark.slow)
    return pytest.mark.parametrize("step", [some, more])


def sampled(cases: Sequence[Case], step: int, of: str = "") -> list[Case]:
    """Return one in `step` of some cases, in their order; of a few, one at least.

    Parameters
    ----------
    of
        What has these cases: others are drawn for each.
    """
    number = -(-len(cases) // step)
    chosen = Random(f"{SEED} {of}").sample(range(len(cases)), number)  # noqa: S311
    return [cases[at] for at in sorted(chosen)]
