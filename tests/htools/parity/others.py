# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: S311, T201 - a program that draws and prints
"""Compare hspace, hcheck and hinfo with Ganeti's, on random clusters.

python tests/htools/parity/others.py hspace --seed 1 --clusters 200
"""

import argparse
import contextlib
import io
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from random import Random

from moorage.htools import sample
from moorage.htools.fleet import Fleet
from moorage.htools.formats import text

_VERDICTS = ("Cluster needs", "No need", "HCHECK_INIT_CLUSTER_NEED")


def options(program: str, draw: Random, fleet: Fleet) -> list[str]:
    """Return random options."""
    words = []
    if program in ("hspace", "hcheck") and draw.random() < 0.6:
        words += ["--machine-readable"]
    if draw.random() < 0.2:
        words += ["-O", draw.choice(fleet.nodes).name]
    if program == "hspace":
        words += [
            "--disk-template",
            draw.choice(("drbd", "plain", "rbd", "sharedfile")),
        ]
        words += ["--standard-alloc", draw.choice(("10g,1g,1", "20g,2g,2", "4g,4g,1"))]
        words += draw.choice(([], ["-l", "3"], ["--no-capacity-checks"]))
        words += draw.choice(([], [], ["--accept-existing-errors"]))
        words += draw.choice(([], [], ["--independent-groups"]))
    if program == "hcheck":
        words += draw.choice(([], ["--no-simulation"], ["-l", "2"]))
        words += draw.choice(([], ["--no-capacity-checks"]))
    if program == "hinfo":
        words += draw.choice(([], ["-v"], ["-vv"], ["-vvv", "-p", "--print-instances"]))
    return words


def ours(program: str, words: list[str]) -> tuple[int, str]:
    """Run our program in this process."""
    out = io.StringIO()
    main = import_module(f"moorage.cli.htools.{program}").main
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        status = main(words)
    return status, out.getvalue()


def theirs(program: str, words: list[str]) -> tuple[int, str]:
    """Run Ganeti's."""
    done = subprocess.run(
        [f"/usr/bin/{program}", *words], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def plain(
    program: str, found: tuple[int, str], *, offline: bool
) -> tuple[int, list[str]]:
    """Return what must be equal: all but two counters that Ganeti gets wrong."""
    lines = found[1].split("\n")
    if program == "hcheck":
        wrong = ("OFFLINE_SEC", "FINAL_CLUSTER_NEED", "a secondary node offline")
        lines = [line for line in lines if not any(word in line for word in wrong)]
        lines = [line for line in lines if "not healthy" not in line]
        lines = [line for line in lines if not line.startswith(_VERDICTS)]
        # An empty offline node makes Ganeti balance what is in order.
        if offline:
            lines = [line for line in lines if "FINAL" not in line]
            ends = [at for at, line in enumerate(lines) if "after rebal" in line]
            lines = [line for line in lines[: min(ends, default=None)] if line]
        return 0, lines
    return found[0], lines


def differ(program: str, seed: int, folder: Path) -> tuple[list[str], str]:
    """Return the command and the first difference, or ''."""
    draw = Random(seed + 10**9)
    fleet = sample.cluster(seed)
    words = options(program, draw, fleet)
    gone = "-O" in words or any(node.offline for node in fleet.nodes)
    if gone and program != "hinfo":
        # Ganeti lets instances restart on offline nodes.
        words += ["--no-capacity-checks"]
    if program == "hspace" and any(inst.forthcoming for inst in fleet.instances):
        return words, ""  # Ganeti stops with an "internal inconsistency"
    path = folder / "cluster.data"
    path.write_text(text.dump(fleet))
    words = ["-t", str(path), *words]
    mine, other = (
        plain(program, run(program, words), offline=gone) for run in (ours, theirs)
    )
    if mine == other:
        return words, ""
    if mine[0] != other[0]:
        return words, f"status {mine[0]} / {other[0]}"
    pairs = zip([*mine[1], "<end>"], [*other[1], "<end>"], strict=False)
    a, b = next((x, y) for x, y in pairs if x != y)
    return words, f"\n  ours   {a}\n  theirs {b}"


def main() -> int:
    """Compare and count."""
    made = argparse.ArgumentParser()
    made.add_argument("program", choices=("hspace", "hcheck", "hinfo"))
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
