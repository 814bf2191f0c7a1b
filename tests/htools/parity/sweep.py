# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: T201 - a program that prints
"""Compare every program's decisions with Ganeti's, on random clusters of any seed.

python tests/htools/parity/sweep.py --seed 1 --clusters 1000
python tests/htools/parity/sweep.py --seed 7 --clusters 200 --programs hbal hspace

The same seed gives the same clusters, options and requests. The exit status is 1
if anything differs, or if one of our programs takes too long; the inputs of the
first difference of each program are kept.
"""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import hail
import hbal
import hscan
import others
import rolling
import runs

TRIALS: Final[dict[str, Callable[[int, Path], runs.Trial]]] = {
    "hbal": hbal.trial,
    "hbal-mond": partial(hbal.trial, measured=True),
    "hail": partial(hail.trial, checks=False),
    "hail-n1": partial(hail.trial, checks=True),
    "hcheck": partial(others.trial, "hcheck"),
    "hinfo": partial(others.trial, "hinfo"),
    "hspace": partial(others.trial, "hspace"),
    "hroller": partial(rolling.trial, "hroller"),
    "hsqueeze": partial(rolling.trial, "hsqueeze"),
    "hscan": hscan.trial,
}
"""Name of the comparison -> what compares; hail-n1 leaves the N+1 check on."""
WORKERS: Final = 2
_ROW: Final = "{:<10} {:>8} {:>11} {:>7} {:>10} {:>10}  {}"


@dataclass(frozen=True)
class Job:
    """One comparison to make, and where to keep it if it shows a difference."""

    name: str
    seed: int
    keep: Path


@dataclass(frozen=True)
class Done:
    """One comparison made."""

    job: Job
    trial: runs.Trial
    spent: runs.Spent


@dataclass
class Tally:
    """What all comparisons of one kind have shown."""

    clusters: int = 0
    differences: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    spent: runs.Spent = field(default_factory=runs.Spent)

    def add(self, done: Done) -> None:
        """Count one."""
        self.clusters += 1
        self.differences += bool(done.trial.why)
        self.skipped.update([done.trial.skipped] if done.trial.skipped else [])
        self.spent.ours += done.spent.ours
        self.spent.theirs += done.spent.theirs

    def row(self, name: str) -> str:
        """Return a line of the table."""
        reasons = "; ".join(f"{n}: {why}" for why, n in self.skipped.items())
        return _ROW.format(
            name,
            self.clusters,
            self.differences,
            self.skipped.total(),
            f"{self.spent.ours:.1f} s",
            f"{self.spent.theirs:.1f} s",
            reasons,
        )


def attempt(job: Job) -> Done:
    """Make one comparison."""
    before = runs.Spent(runs.SPENT.ours, runs.SPENT.theirs)
    with tempfile.TemporaryDirectory() as folder:
        try:
            trial = TRIALS[job.name](job.seed, Path(folder))
        except runs.TooSlow as whose:
            trial = _slow(str(whose))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a finding too
            trial = runs.Trial(why=f"ours stopped with {error!r}")
        if trial.why and not job.keep.exists():
            _keep(Path(folder), job, trial)
    now = runs.SPENT
    spent = runs.Spent(now.ours - before.ours, now.theirs - before.theirs)
    return Done(job, trial, spent)


def _slow(whose: str) -> runs.Trial:
    said = f"{whose} took more than {runs.LIMIT:g} s"
    return runs.Trial(why=said) if whose == "ours" else runs.Trial(skipped=said)


def _keep(folder: Path, job: Job, trial: runs.Trial) -> None:
    """Copy the inputs of a difference to where they stay."""
    shutil.copytree(folder, job.keep, dirs_exist_ok=True)
    words = " ".join(trial.words).replace(str(folder), ".")
    said = f"{job.name}, seed {job.seed}\n{words}\n{trial.why}\n"
    (job.keep / "difference.txt").write_text(said)


def sweep(names: Iterable[str], seeds: range, keep: Path) -> bool:
    """Compare, print a row for each name; return whether all is the same."""
    heading = ("program", "clusters", "differences", "skipped", "CPU ours", "Ganeti")
    print(_ROW.format(*heading, "why skipped"), flush=True)
    same = True
    with ProcessPoolExecutor(WORKERS) as workers:
        for name in names:
            shutil.rmtree(keep / name, ignore_errors=True)
            jobs = [Job(name, seed, keep / name) for seed in seeds]
            tally = Tally()
            for done in workers.map(attempt, jobs):
                tally.add(done)
                if done.trial.why:
                    said = f"{name}, seed {done.job.seed}: {done.trial.why}"
                    print(said, file=sys.stderr, flush=True)
            print(tally.row(name).rstrip(), flush=True)
            same = same and not tally.differences
    return same


def main() -> int:
    """Read the options and compare."""
    made = argparse.ArgumentParser(description="Compare decisions with Ganeti's.")
    made.add_argument("--seed", type=int, default=1, help="the first one")
    made.add_argument("--clusters", type=int, default=100, help="for each program")
    made.add_argument("--programs", nargs="+", choices=TRIALS, default=list(TRIALS))
    made.add_argument("--largest", type=int, default=10, help="most nodes of a cluster")
    made.add_argument("--keep", type=Path, help="folder for inputs that differ")
    given = made.parse_args()
    if not runs.is_installed():
        made.error("ganeti-htools is not installed: there is nothing to compare with")
    runs.SCALE.largest = given.largest
    keep = given.keep or Path(tempfile.mkdtemp(prefix="parity-"))
    seeds = range(given.seed, given.seed + given.clusters)
    same = sweep(given.programs, seeds, keep)
    if given.keep is None and same:
        keep.rmdir()
    elif not same:
        print(f"The inputs that differ are in {keep}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
