# SPDX-License-Identifier: BSD-2-Clause
"""What a program costs before it has done anything: processor time beside Python's own.

Each program is run in turn with a Python that does nothing, as `python -c pass`, and
told is the least processor time (user and system) of its runs, as a ratio to Python's
least: a machine that is slow or busy is so for both. Bytecode is made before, as
installing does.

The bars, where Python costs 10 ms: 35 ms for `--version` and `--help` of any program,
60 ms for `gnt-instance list` of ten instances, 55 ms for `hbal` on three nodes, and
for the modules of a daemon 350 ms of an agent, 430 ms of a master.
"""

import argparse
import compileall
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from run import cluster

import moorage
from moorage.cli.command import PLANNERS, PROGRAMS
from moorage.htools import sample
from moorage.htools.formats import text

STARTING, LISTING, PLANNING = 3.5, 6.0, 5.5
DAEMONS = {"agent": 35.0, "master": 43.0}
"""Times a Python that does nothing."""
_BIN = Path(sys.executable).parent
_PYTHON = (sys.executable, "-c", "pass")
_NAMES = [*(name.replace("_", "-") for name in PROGRAMS), *PLANNERS]


def cpu(command: Sequence[str], environ: dict[str, str]) -> float:
    """Return the milliseconds of processor time of one run; what it prints is lost."""
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    pid = os.posix_spawn(command[0], command, environ, file_actions=null)
    _, status, use = os.wait4(pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return (use.ru_utime + use.ru_stime) * 1e3


def measured(
    commands: dict[str, tuple[Sequence[str], float]],
    runs: int,
    environ: dict[str, str],
) -> bool:
    """Print a line a command; say whether each is below its bar."""
    least = dict.fromkeys(["python", *commands], float("inf"))
    for _ in range(runs):
        least["python"] = min(least["python"], cpu(_PYTHON, environ))
        for name, (command, _bar) in commands.items():
            least[name] = min(least[name], cpu(command, environ))
    bare = least.pop("python")
    holds = True
    for name, spent in least.items():
        ratio, bar = spent / bare, commands[name][1]
        holds &= ratio <= bar
        verdict = "" if ratio <= bar else "   missed"
        print(f"{name:24}{spent:8.1f}{bare:8.1f}{ratio:8.2f}{bar:6.1f}{verdict}")
    return holds


def starts() -> dict[str, tuple[Sequence[str], float]]:
    """Return what every program is asked before any work."""
    asked = [(name, word) for name in _NAMES for word in ("--version", "--help")]
    return {f"{n} {w}": ((str(_BIN / n), w), STARTING) for n, w in asked}


def daemons() -> dict[str, tuple[Sequence[str], float]]:
    """Return what loads a daemon, as its process does."""
    loads = "from moorage.cli.daemons_side import to_run; to_run('{}')"
    return {
        f"{name}, loaded": ((sys.executable, "-c", loads.format(name)), bar)
        for name, bar in DAEMONS.items()
    }


def main() -> int:
    """Measure, print a table, and say whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    compileall.compile_dir(Path(moorage.__file__).parent, quiet=1)
    print(f"{'CPU in ms':24}{'least':>8}{'Python':>8}{'ratio':>8}{'bar':>6}")
    holds = measured(starts(), runs, dict(os.environ))
    holds &= measured(daemons(), runs, dict(os.environ))
    with tempfile.NamedTemporaryFile("w", suffix=".data") as file:
        shape = sample.Shape(kind="drbd", nodes=3, instances=10, fill=0.4, oddity=0.0)
        file.write(text.dump(sample.cluster(5, shape)))
        file.flush()
        plan = (str(_BIN / "hbal"), "-t", file.name)
        holds &= measured({"hbal, 3 nodes": (plan, PLANNING)}, runs, dict(os.environ))
    with cluster(10) as found:
        environ = {**os.environ, **found.environment()}
        listed = (str(_BIN / "gnt-instance"), "list")
        holds &= measured({"gnt-instance list, 10": (listed, LISTING)}, runs, environ)
    print(f"the bars {'hold' if holds else 'are missed'}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
