# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: S311, T201 - a program that draws and prints
"""Compare hroller and hsqueeze with Ganeti's, on random clusters.

python tests/htools/parity/rolling.py hroller --seed 1 --clusters 300
"""

import argparse
import contextlib
import io
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from random import Random

from moorage.htools import sample
from moorage.htools.fleet import Fleet, NodeRow
from moorage.htools.formats import text

Ran = tuple[int, str, str]
"""Exit status, stdout, stderr."""


def cluster(program: str, draw: Random, seed: int) -> Fleet:
    """Return a random cluster that gives the program something to do."""
    wanted = sample.shape(Random(seed))
    kind = draw.choice(("shared", "mixed") if program == "hsqueeze" else sample.KINDS)
    fill = draw.choice((0.1, 0.3, 0.5)) if program == "hsqueeze" else wanted.fill
    fleet = sample.cluster(seed, replace(wanted, kind=kind, fill=fill))
    masterless = draw.random() < 0.05
    nodes = tuple(
        _varied(draw, node, master=node.master and not masterless)
        for node in fleet.nodes
    )
    return fleet.replaced(nodes=nodes)


def _varied(draw: Random, node: NodeRow, *, master: bool) -> NodeRow:
    tags = draw.choice(((), ("a",), ("a", "b"), ("htools:standby:auto",)))
    offline = node.offline or (not node.master and draw.random() < 0.1)
    return replace(node, master=master, tags=(*node.tags, *tags), offline=offline)


def options(program: str, draw: Random, fleet: Fleet) -> list[str]:
    """Return random options."""
    drawn = _roller if program == "hroller" else _squeezer
    return drawn(draw, fleet)


def _some(draw: Random, chances: list[tuple[float, list[str]]]) -> list[str]:
    return [w for chance, words in chances if draw.random() < chance for w in words]


def _roller(draw: Random, fleet: Fleet) -> list[str]:
    return _some(
        draw,
        [
            (0.3, ["-" + "v" * draw.randint(1, 3)]),
            (0.1, ["-q"]),
            (0.7, ["--print-moves"]),
            (0.3, ["--full-evacuation"]),
            (0.15, ["--offline-maintenance"]),
            (0.15, ["--skip-non-redundant"]),
            (0.3, ["--ignore-non-redundant"]),
            (0.1, ["--one-step-only"]),
            (0.1, ["--no-headers"]),
            (0.5, ["-f"]),
            (0.1, ["--node-tags", draw.choice(("a", "b", "a,b", "none"))]),
            (0.15, ["-G", draw.choice(fleet.groups).uuid]),
            (0.15, ["-O", draw.choice(fleet.nodes).name]),
        ],
    )


def _squeezer(draw: Random, _fleet: Fleet) -> list[str]:
    factors = ("0", "1.5", "4", "16.7", "40", "90")
    return _some(
        draw,
        [
            (0.5, ["-" + "v" * draw.randint(1, 2)]),
            (0.8, ["-C"]),
            (0.1, ["--no-headers"]),
            (0.5, ["--minimal-resources", draw.choice(factors)]),
            (0.5, [f"--target-resources={draw.choice(factors)}"]),
        ],
    )


def ours(program: str, words: list[str]) -> Ran:
    """Run our program in this process."""
    out, err = io.StringIO(), io.StringIO()
    main = import_module(f"moorage.cli.htools.{program}").main
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    # Hints are ours alone.
    said = err.getvalue().partition("hint: ")[0]
    return status, out.getvalue(), said


def theirs(program: str, words: list[str]) -> Ran:
    """Run Ganeti's."""
    done = subprocess.run(
        [f"/usr/bin/{program}", *words], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def _misnamed(one: str, two: str) -> bool:
    """Say whether two lines of a move differ in the name of the primary only.

    Where an evacuated node becomes the primary of somebody, Ganeti's hroller
    prints the name of another node, sometimes that of the secondary.
    """
    a, b = one.split(" "), two.split(" ")
    return len(a) == len(b) == 5 and (*a[:3], a[4]) == (*b[:3], b[4])


def first_difference(mine: Ran, other: Ran, *, evacuated: bool = False) -> str:
    """Return the first difference between two runs, or ''."""
    if mine[0] != other[0]:
        return f"status {mine[0]} / {other[0]}: {mine[2]} / {other[2]}"
    for a, b in zip(mine[1:], other[1:], strict=True):
        pairs = zip([*a.split("\n"), "<end>"], [*b.split("\n"), "<end>"], strict=False)
        for one, two in pairs:
            if one != two and not (evacuated and _misnamed(one, two)):
                return f"\n  ours   {one}\n  theirs {two}"
    return ""


def differ(program: str, seed: int, folder: Path) -> tuple[list[str], str]:
    """Return the command and the first difference, or ''."""
    draw = Random(seed + 10**9)
    fleet = cluster(program, draw, seed)
    path = folder / "cluster.data"
    path.write_text(text.dump(fleet))
    words = ["-t", str(path), *options(program, draw, fleet)]
    mine, other = ours(program, words), theirs(program, words)
    evacuated = "--full-evacuation" in words
    return words, first_difference(mine, other, evacuated=evacuated)


def main() -> int:
    """Compare and count."""
    made = argparse.ArgumentParser()
    made.add_argument("program", choices=("hroller", "hsqueeze"))
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--clusters", type=int, default=100)
    given = made.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        for seed in range(given.seed, given.seed + given.clusters):
            words, why = differ(given.program, seed, Path(name))
            if why:
                bad += 1
                print(seed, " ".join(words), why, flush=True)
    print(f"{given.program}: {given.clusters} clusters, {bad} differences")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
