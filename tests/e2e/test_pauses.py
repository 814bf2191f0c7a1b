# SPDX-License-Identifier: BSD-2-Clause
"""What a serving master does about Python's own pauses, seen from a fresh process."""

import subprocess
import sys

_SEEN = """
import gc, sys, weakref
from moorage.daemons import pauses

class Kept: pass
class Round:
    def __init__(self): self.me = self

kept = [Kept() for _ in range(1000)]
early = Round()
pauses.keep_short()
print(gc.get_freeze_count() > 1000, any(isinstance(o, Kept) for o in gc.get_objects()))
young, middle, old = gc.get_threshold()
print(young * middle <= 10_000, young * middle * old >= 10**8)
print(sys.getswitchinterval() <= 0.001)

gc.disable()  # only a sweep may find what comes now
late = Round()
known = [weakref.ref(early), weakref.ref(late)]
del early, late
print([one() is None for one in known])
pauses.sweep()
print([one() is None for one in known])

later = Kept()  # was in use at a sweep: out of sight, but of the whole
pauses.sweep()
print(any(one is later for one in gc.get_objects()))
pauses.sweep(whole=True)
print([one() is None for one in known], gc.get_freeze_count() > 1000)
"""

_LOADED = """
import gc
from moorage.daemons import pauses

pauses.begin()
before = gc.get_stats()[2]["collections"]
kept = [[number] for number in range(500_000)]  # ten thousand jobs are as many
pauses.keep_short()
print(gc.get_stats()[2]["collections"] - before)
"""


def test_while_much_is_loaded_nobody_waits_for_a_look_through_all_of_it() -> None:
    """A thread that has a lead to renew would lose it."""
    argv = [sys.executable, "-c", _LOADED]
    seen = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert seen.stdout == "0\n"


def test_what_was_there_is_not_searched_and_what_came_later_is_swept() -> None:
    argv = [sys.executable, "-c", _SEEN]
    seen = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert seen.stdout.splitlines() == [
        "True False",  # the start's objects are out of the collector's sight
        "True True",  # few at a time, and all that is old by a sweep alone
        "True",
        "[False, False]",
        "[False, True]",  # of the start: not yet; of later: by a sweep
        "False",
        "[True, True] True",  # of the start, too: by a whole one
    ]
