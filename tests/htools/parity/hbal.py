# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: S311 - draws
"""hbal beside Ganeti's: every step, score line, command and table."""

from pathlib import Path
from random import Random

import loads
import runs

from moorage.htools.fleet import Fleet
from moorage.htools.formats import text

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
        words += ["-U", str(loads.dynamic(draw, fleet, folder))]
    if draw.random() < 0.2:
        words += ["-C"]
    if draw.random() < 0.1:
        words += ["-O", draw.choice(fleet.nodes).name]
    if draw.random() < 0.3:
        words += ["-" + "v" * draw.randint(1, 4)]
    if draw.random() < 0.2:
        words += ["-p", "--print-instances"]
    if draw.random() < 0.2:
        words += loads.measured(draw, fleet, folder)
    return words


def trial(seed: int, folder: Path, *, measured: bool = False) -> runs.Trial:
    """Compare on the cluster of a seed.

    Parameters
    ----------
    measured
        Whether load from monitoring daemons is given in any case.
    """
    fleet = runs.cluster(seed)
    path = folder / "cluster.data"
    path.write_text(text.dump(fleet))
    words = ["-t", str(path), *options(seed, fleet, folder)]
    if measured and "--mond-data" not in words:
        words += loads.measured(Random(seed), fleet, folder)
    mine = runs.ours("hbal", [*words, "--no-capacity-checks"])
    return runs.Trial(words, runs.first_difference(mine, runs.theirs("hbal", words)))
