# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: S311 - draws
"""hroller and hsqueeze beside Ganeti's: all that they print."""

from dataclasses import replace
from pathlib import Path
from random import Random

import runs
from runs import ours, theirs

from moorage.htools import sample
from moorage.htools.fleet import Fleet, NodeRow
from moorage.htools.formats import text

__all__ = ["cluster", "differ", "options", "ours", "theirs", "trial"]


def cluster(program: str, draw: Random, seed: int) -> Fleet:
    """Return a random cluster that gives the program something to do."""
    wanted = runs.shape(seed)
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
    return node._replace(master=master, tags=(*node.tags, *tags), offline=offline)


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


def _misnamed(one: str, two: str) -> bool:
    """Say whether two lines of a move differ in the name of the primary only.

    Where an evacuated node becomes the primary of somebody, Ganeti's hroller
    prints the name of another node, sometimes that of the secondary.
    """
    a, b = one.split(" "), two.split(" ")
    return len(a) == len(b) == 5 and (*a[:3], a[4]) == (*b[:3], b[4])


def trial(program: str, seed: int, folder: Path) -> runs.Trial:
    """Compare on the cluster of a seed."""
    draw = Random(seed + 10**9)
    fleet = cluster(program, draw, seed)
    path = folder / "cluster.data"
    path.write_text(text.dump(fleet))
    words = ["-t", str(path), *options(program, draw, fleet)]
    mine, other = ours(program, words), theirs(program, words)
    if "--full-evacuation" in words:
        return runs.Trial(words, runs.first_difference(mine, other, _misnamed))
    return runs.Trial(words, runs.first_difference(mine, other))


def differ(program: str, seed: int, folder: Path) -> tuple[list[str], str]:
    """Return the command and the first difference, or ''."""
    found = trial(program, seed, folder)
    return found.words, found.why
