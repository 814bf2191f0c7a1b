# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: S311 - draws
"""hspace, hcheck and hinfo beside Ganeti's: all that they print."""

from pathlib import Path
from random import Random

import loads
import runs

from moorage.htools.fleet import Fleet
from moorage.htools.formats import text

_VERDICTS = ("Cluster needs", "No need", "HCHECK_INIT_CLUSTER_NEED")


def options(program: str, draw: Random, fleet: Fleet, folder: Path) -> list[str]:
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
        if draw.random() < 0.3:
            words += loads.measured(draw, fleet, folder, xen=False)
    if program == "hcheck" and draw.random() < 0.2:
        words += ["-U", str(loads.dynamic(draw, fleet, folder))]
    return words


def plain(program: str, ran: runs.Ran, *, offline: bool) -> runs.Ran:
    """Return what must be equal: all but two counters that Ganeti gets wrong.

    And who can be lost after balancing: Ganeti's answer depends on the order in which
    moves brought instances to a node, and is another when the plan is loaded again.
    """
    if program != "hcheck":
        return ran
    wrong = ("OFFLINE_SEC", "FINAL_CLUSTER_NEED", "a secondary node offline")
    lines = [line for line in ran[1].split("\n") if not any(w in line for w in wrong)]
    lines = [line for line in lines if "not healthy" not in line]
    lines = [line for line in lines if not line.startswith(_VERDICTS)]
    lines = [line for at, line in enumerate(lines) if not _is_order(lines, at)]
    # An empty offline node makes Ganeti balance what is in order.
    if offline:
        lines = [line for line in lines if "FINAL" not in line]
        ends = [at for at, line in enumerate(lines) if "after rebal" in line]
        lines = [line for line in lines[: min(ends, default=None)] if line]
    return 0, "\n".join(lines), ran[2]


def _is_order(lines: list[str], at: int) -> bool:
    """Say whether a line tells who can be lost after balancing."""
    if "Nodes not directly evacuateable" in lines[at]:
        return any("after rebalancing" in line for line in lines[:at])
    return "FINAL" in lines[at] and "GN1_FAIL" in lines[at]


def trial(program: str, seed: int, folder: Path) -> runs.Trial:
    """Compare on the cluster of a seed."""
    draw = Random(seed + 10**9)
    fleet = runs.cluster(seed)
    if program == "hspace":
        # Ganeti stops at those that are only planned: "internal inconsistency".
        here = tuple(inst for inst in fleet.instances if not inst.forthcoming)
        fleet = fleet.replaced(instances=here)
    words = options(program, draw, fleet, folder)
    gone = "-O" in words or any(node.offline for node in fleet.nodes)
    if gone and program != "hinfo":
        # Ganeti lets instances restart on offline nodes.
        words = [word for word in words if word != "--independent-groups"]
        words += ["--no-capacity-checks"]
    path = folder / "cluster.data"
    path.write_text(text.dump(fleet))
    words = ["-t", str(path), *words]
    mine, other = (
        plain(program, run(program, words), offline=gone)
        for run in (runs.ours, runs.theirs)
    )
    return runs.Trial(words, runs.first_difference(mine, other))
