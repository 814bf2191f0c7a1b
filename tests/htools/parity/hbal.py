# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: S311, T201 - a program that draws and prints
"""Compare hbal with Ganeti's, on random clusters.

python tests/htools/parity/hbal.py --seed 1 --clusters 1000
"""

import argparse
import contextlib
import io
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

from moorage.cli.htools import hbal
from moorage.htools import sample
from moorage.htools.fleet import Fleet
from moorage.htools.formats import text

ORACLE = "/usr/bin/hbal"
SWITCHES = (
    ["--no-disk-moves"],
    ["--no-instance-moves"],
    ["--restricted-migration"],
    ["--evac-mode"],
    ["--ignore-soft-errors"],
    ["--ignore-dynu"],
    ["--max-cpu=3"],
    ["--min-disk=0.2"],
    ["--exclusion-tags=other"],
    ["-l", "2"],
    ["-g", "0.05", "--min-gain-limit=5"],
)


def options(seed: int, fleet: Fleet, folder: Path) -> list[str]:
    """Return random options for a cluster."""
    draw = Random(seed + 10**9)
    words = [w for switch in SWITCHES if draw.random() < 0.1 for w in switch]
    if len(fleet.groups) > 1:
        words += ["-G", draw.choice(fleet.groups).name]
    if draw.random() < 0.2:
        words += ["-U", str(_loads(draw, fleet, folder))]
    if draw.random() < 0.2:
        words += ["-C"]
    if draw.random() < 0.1:
        words += ["-O", draw.choice(fleet.nodes).name]
    if draw.random() < 0.3:
        words += ["-" + "v" * draw.randint(1, 4)]
    if draw.random() < 0.2:
        words += ["-p", "--print-instances"]
    return words


def _loads(draw: Random, fleet: Fleet, folder: Path) -> Path:
    path = folder / "loads"
    lines = [
        " ".join([inst.name, *(f"{draw.uniform(0, 3):.3f}" for _ in range(4))])
        for inst in fleet.instances
        if draw.random() < 0.9
    ]
    path.write_text("".join(line + "\n" for line in lines))
    return path


def ours(words: list[str]) -> tuple[int, str, str]:
    """Run our program in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = hbal.main([*words, "--no-capacity-checks"])
    return status, out.getvalue(), err.getvalue()


def theirs(words: list[str]) -> tuple[int, str, str]:
    """Run Ganeti's."""
    done = subprocess.run([ORACLE, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def differ(seed: int, folder: Path) -> tuple[list[str], str]:
    """Return the command and a description of the first difference, or ''."""
    fleet = sample.cluster(seed)
    path = folder / "cluster.data"
    path.write_text(text.dump(fleet))
    words = ["-t", str(path), *options(seed, fleet, folder)]
    mine, other = ours(words), theirs(words)
    if mine == other:
        return words, ""
    for a, b in zip(mine, other, strict=True):
        if a != b and isinstance(a, int):
            return words, f"status {a} / {b}"
        if a != b:
            pairs = zip(
                [*a.split("\n"), "<end>"], [*b.split("\n"), "<end>"], strict=False
            )
            line = next((x, y) for x, y in pairs if x != y)
            return words, f"\n  ours   {line[0]}\n  theirs {line[1]}"
    return words, "?"


def main() -> int:
    """Compare and count."""
    made = argparse.ArgumentParser()
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--clusters", type=int, default=100)
    made.add_argument("--stop", action="store_true")
    given = made.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        for seed in range(given.seed, given.seed + given.clusters):
            words, why = differ(seed, Path(name))
            if why:
                bad += 1
                print(seed, " ".join(words), why, flush=True)
                if given.stop:
                    return 1
    print(f"{given.clusters} clusters, {bad} differences")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
