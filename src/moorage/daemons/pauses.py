# SPDX-License-Identifier: BSD-2-Clause
"""How long Python itself keeps a serving master from answering.

Everybody waits while Python looks for cyclic garbage. Left to itself, it looks through
the whole configuration whenever the planner has made enough rows: a tenth of a second
at 10,000 instances, several times a plan; and seconds while ten thousand jobs are
loaded, longer than a lead lasts that a thread has to renew. What is there when the
master begins to serve stays, so it is looked through no more; what comes later is
small.
"""

import gc
import sys

from moorage.jobs.turns import give_back

_YOUNG = (500, 10, 40_000)
"""New objects until the young are looked through, and how often until the older are."""
_TURN = 0.0002
"""Seconds that a thread which plans goes on when the event loop wants its turn."""


def begin() -> None:
    """Keep pauses short while much is loaded, of which nothing becomes garbage."""
    gc.set_threshold(*_YOUNG)
    sys.setswitchinterval(_TURN)


def keep_short() -> None:
    """Keep pauses short from now on; call it when all is loaded.

    All of that is put out of sight unseen: one look would take a second.
    """
    begin()
    gc.freeze()
    give_back()


def sweep(*, whole: bool = False) -> None:
    """Look through what came since the last time, for what plans do not reach.

    What is in use then is put out of sight as well: a thousand nodes are a hundred
    thousand objects, a tenth of a second, and hardly any of them comes to be garbage in
    a circle. For those that do, all is looked through if it is the `whole`.
    """
    if whole:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
