# SPDX-License-Identifier: BSD-2-Clause
"""How long Python itself keeps a serving master from answering.

Everybody waits while Python looks for cyclic garbage. Left to itself, it looks through
the whole configuration whenever the planner has made enough rows: a tenth of a second
at 10,000 instances, several times a plan. What is there when the master begins to serve
stays, so it is looked through no more; what comes later is small.
"""

import gc
import sys

_YOUNG = (500, 10, 40_000)
"""New objects until the young are looked through, and how often until the older are."""
_TURN = 0.0002
"""Seconds that a thread which plans goes on when the event loop wants its turn."""


def keep_short() -> None:
    """Keep pauses short from now on; call it when all is loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_YOUNG)
    sys.setswitchinterval(_TURN)


def sweep() -> None:
    """Look through what came since, for what plans do not reach: now and then.

    With a thousand nodes everybody waits for a tenth of a second.
    """
    gc.collect()
