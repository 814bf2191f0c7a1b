# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: T201 - a program that prints
"""The account of the truth, in files that later runs add to.

python tests/chaos/ledger.py DIRECTORY

prints the sum over all runs. Nothing in the directory is ever changed, only added:

- ``runs.jsonl``: a line a run: when, seed, commit, load, what was killed, broken and
  acknowledged, and what must never happen and did; and a line a judgement, where a
  violation was none: ``{"judged": TOLD, "why": SENTENCE}`` with the run's ``told``, or
  was a fault that has been mended since: ``{"mended": TOLD, "why": SENTENCE}``;
- ``told/``: a file a run: a line for each thing at the moment when it happened.

The usual directory is beside this file; its ``runs.jsonl`` is kept with the code, so
that whoever runs next, on whatever machine, adds to what was seen before.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[2]
USUAL = HOME / "tests" / "chaos" / "history"


def commit() -> str:
    """Return which code this is; with a plus sign if it was changed since."""
    git = ["git", "-C", str(HOME)]
    try:
        told = subprocess.check_output([*git, "rev-parse", "--short=10", "HEAD"])
        changed = subprocess.check_output([*git, "status", "--short", "src"])
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return told.decode().strip() + ("+" if changed.strip() else "")


@dataclass
class Ledger:
    """The files of one run.

    Attributes
    ----------
    kind
        ``chaos``, ``real`` or ``power-cuts``.
    """

    directory: Path
    kind: str
    seed: int
    begun: float = field(default_factory=time.time)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        (self.directory / "told").mkdir(parents=True, exist_ok=True)
        self._code = commit()

    @property
    def name(self) -> str:
        when = time.strftime("%Y%m%d-%H%M%S", time.localtime(self.begun))
        return f"{when}-{self.kind}-{self.seed}-{os.getpid()}"

    def note(self, what: str, **facts: Any) -> None:
        """Add what happened just now."""
        line = {"at": round(time.time(), 3), "what": what, **facts}
        self._add(self.directory / "told" / f"{self.name}.jsonl", line)

    def close(
        self,
        events: Mapping[str, int],
        counts: Mapping[str, Any],
        violations: Iterable[Mapping[str, Any]],
    ) -> dict[str, Any]:
        """Add the line of this run; return it."""
        now = time.localtime(self.begun)
        line = {
            "date": time.strftime("%Y-%m-%dT%H:%M:%S%z", now),
            "kind": self.kind,
            "seed": self.seed,
            "commit": self._code,
            "load": [round(one, 2) for one in os.getloadavg()],
            "seconds": round(time.time() - self.begun),
            "events": dict(events),
            **counts,
            "violations": list(violations),
            "told": f"{self.name}.jsonl",
        }
        self._add(self.directory / "runs.jsonl", line)
        return line

    def _add(self, path: Path, line: Mapping[str, Any]) -> None:
        with self.lock, path.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()


SUMMED = ("acknowledged", "operations", "doubted", "refused", "checks", "seconds")


def runs(directory: Path) -> list[dict[str, Any]]:
    """Return the lines of all runs so far."""
    path = directory / "runs.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    every = [json.loads(line) for line in lines]
    why = {
        one[word]: f"{kind} ({one['why']})"
        for one in every
        for word, kind in (("judged", "none"), ("mended", "mended"))
        if word in one
    }
    found = [one for one in every if "kind" in one]
    return [_judged(one, why.get(one.get("told", ""), "")) for one in found]


def _judged(run: dict[str, Any], kind: str) -> dict[str, Any]:
    if not kind:
        return run
    judged = [{"kind": kind} for _ in run["violations"]]
    return run | {"violations": [], "judged": judged}


def total(found: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums over some runs."""
    sums: dict[str, Counter[str]] = {"kills": Counter(), "failovers": Counter()}
    sums |= {"events": Counter(), "violations": Counter(), "judged": Counter()}
    sums |= {"counts": Counter()}
    for one in found:
        sums["counts"]["runs"] += 1
        sums["counts"].update({name: one.get(name, 0) for name in SUMMED})
        for name in ("kills", "failovers", "events"):
            sums[name].update(one.get(name, {}))
        sums["violations"].update(each["kind"] for each in one["violations"])
        sums["judged"].update(each["kind"] for each in one.get("judged", ()))
    return {name: dict(sum_) for name, sum_ in sums.items()}


def main() -> int:
    """Print the sums by commit, and over all; the status is 1 after a violation."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else USUAL
    found = runs(directory)
    for code in dict.fromkeys(one["commit"] for one in found):
        _print(f"commit {code}", [one for one in found if one["commit"] == code])
    _print(f"all runs of {directory}", found)
    return 1 if any(one["violations"] for one in found) else 0


def _print(title: str, found: list[dict[str, Any]]) -> None:
    sums = total(found)
    seeds = sorted({f"{one['kind']} {one['seed']}" for one in found})
    deaths = sum(sums["kills"].values())
    print(f"{title}: {deaths} kills, seeds {', '.join(seeds) or 'none'}")
    for name, facts in sums.items():
        told = ", ".join(f"{what} {number}" for what, number in facts.items())
        print(f"  {name}: {told or 'none'}")


if __name__ == "__main__":
    sys.exit(main())
