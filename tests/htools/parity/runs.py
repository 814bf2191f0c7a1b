# SPDX-License-Identifier: BSD-2-Clause
"""Runs of our programs and of Ganeti's, and what differs between two of them."""

import contextlib
import io
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from random import Random
from types import FrameType
from typing import Final

from moorage.htools import sample
from moorage.htools.fleet import Fleet

Ran = tuple[int, str, str]
"""Exit status, stdout, stderr."""

PLACES: Final = {"hail": "/usr/lib/ganeti/iallocators/hail"}
LIMIT: Final = 30
"""Seconds of processor time for one run of one program."""


@dataclass
class Scale:
    """How large random clusters may be."""

    largest: int = 10


SCALE: Final = Scale()
"""Of this process."""


def shape(seed: int) -> sample.Shape:
    """Return the random shape of a seed."""
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    return sample.shape(draw, largest=SCALE.largest)


def cluster(seed: int) -> Fleet:
    """Return the random cluster of a seed."""
    usual = SCALE.largest == Scale.largest
    return sample.cluster(seed, None if usual else shape(seed))


class TooSlow(Exception):
    """A run that was cut off; says whose."""


@dataclass
class Spent:
    """Processor time that runs took, in seconds; ours is without start-up."""

    ours: float = 0.0
    theirs: float = 0.0


SPENT: Final = Spent()
"""Of this process, since it began."""


@dataclass
class Trial:
    """What became of one comparison.

    Attributes
    ----------
    words : list of str
        The command line.
    why : str
        The first difference; empty if there is none.
    skipped : str
        Why nothing was compared; empty if something was.
    """

    words: list[str] = field(default_factory=list)
    why: str = ""
    skipped: str = ""


def oracle(program: str) -> str:
    """Return where Ganeti's program is."""
    return PLACES.get(program, f"/usr/bin/{program}")


def is_installed() -> bool:
    """Say whether there is something to compare with."""
    return Path(oracle("hbal")).exists()


def ours(program: str, words: list[str]) -> Ran:
    """Run our program in this process."""
    main: Callable[[list[str]], int]
    main = import_module(f"moorage.cli.htools.{program}").main
    out, err = io.StringIO(), io.StringIO()
    before = time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _limited():
        status = main(words)
    SPENT.ours += time.process_time() - before
    # Hints are ours alone.
    return status, out.getvalue(), err.getvalue().partition("hint: ")[0]


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """End a block with `TooSlow` after the limit."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooSlow("ours")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def theirs(program: str, words: list[str]) -> Ran:
    """Run Ganeti's."""
    before = _children()
    done = subprocess.run(
        ["prlimit", f"--cpu={LIMIT}", oracle(program), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    SPENT.theirs += _children() - before
    if -done.returncode in {signal.SIGXCPU, signal.SIGKILL}:
        raise TooSlow("Ganeti")
    return done.returncode, done.stdout, done.stderr


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


Same = Callable[[str, str], bool]


def first_difference(
    mine: Ran, other: Ran, same: Same = lambda one, two: one == two
) -> str:
    """Return the first difference between two runs, or ''.

    Parameters
    ----------
    same
        Says whether two lines are as good as equal.
    """
    if mine[0] != other[0]:
        return f"status {mine[0]} / {other[0]}: {mine[2]} / {other[2]}"
    for a, b in zip(mine[1:], other[1:], strict=True):
        pairs = zip([*a.split("\n"), "<end>"], [*b.split("\n"), "<end>"], strict=False)
        for one, two in pairs:
            if one != two and not same(one, two):
                return f"\n  ours   {one}\n  theirs {two}"
    return ""
