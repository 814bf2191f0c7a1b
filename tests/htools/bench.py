# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: T201 - a program that prints
"""Processor time of each program beside Ganeti's, on the same files.

python tests/htools/bench.py [--limit SECONDS]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parity"))

import hail as messages

from moorage.htools import sample
from moorage.htools.formats import text

HAIL = "/usr/lib/ganeti/iallocators/hail"
Case = tuple[str, str, list[str]]


def cluster(kind: str, nodes: int, insts: int):
    """Return a plain cluster of a size."""
    shape = sample.Shape(kind=kind, nodes=nodes, instances=insts, fill=0.4, oddity=0.0)
    fleet = sample.cluster(5, shape)
    rows_of_nodes = tuple(replace(node, cpus=64.0) for node in fleet.nodes)
    fleet = fleet.replaced(nodes=rows_of_nodes)
    if kind != "shared":
        return fleet
    rows = tuple(replace(inst, template="ext") for inst in fleet.instances)
    return fleet.replaced(instances=rows)


def cases(folder: Path) -> list[Case]:
    """Return name, program and arguments of each case."""
    found: list[Case] = []

    def saved(kind: str, nodes: int, insts: int) -> str:
        path = folder / f"{kind}{nodes}"
        path.write_text(text.dump(cluster(kind, nodes, insts)))
        return str(path)

    def asked(kind: str, nodes: int, insts: int, verb: str) -> str:
        fleet = cluster(kind, nodes, insts)
        new = messages.instance(fleet.instances[0]) | {"vcpus": 1}
        request = new | {"type": "allocate", "name": "new"}
        request["required_nodes"] = 2 if kind == "drbd" else 1
        if verb == "evacuate":
            names = [inst.name for inst in fleet.instances if inst.primary == 3]
            request = {"type": "node-evacuate", "instances": names, "evac_mode": "all"}
        path = folder / f"{kind}{nodes}.{verb}"
        path.write_text(json.dumps(messages.message(fleet, request, drained=False)))
        return str(path)

    small = saved("drbd", 10, 50)
    found.append(("hbal 10x50", "hbal", ["-t", small, "-l", "1"]))
    for nodes, insts in ((20, 200), (40, 400), (80, 1000)):
        path = saved("drbd", nodes, insts)
        found.append((f"hbal drbd {nodes}x{insts}", "hbal", ["-t", path]))
    shared = ["-t", saved("shared", 80, 1000), "--no-simulation"]
    found.append(("hcheck shared 80x1000", "hcheck", shared))
    found.append(("hail ext 80x1000", "hail", [asked("shared", 80, 1000, "allocate")]))
    found.append(("hail drbd 320x8000", "hail", [asked("drbd", 320, 8000, "allocate")]))
    found.append(
        ("hail evacuate 80x1000", "hail", [asked("drbd", 80, 1000, "evacuate")])
    )
    for kind, template, nodes, insts in (
        ("shared", "ext", 20, 200),
        ("drbd", "drbd", 40, 400),
    ):
        words = ["-t", saved(kind, nodes, insts), "--disk-template", template]
        found.append((f"hspace {kind} {nodes}x{insts}", "hspace", words))
    return found


def measure(words: list[str], limit: float) -> float | None:
    """Return the processor seconds of a program; None when it takes too long."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        subprocess.run(words, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print."""
    made = argparse.ArgumentParser()
    made.add_argument("--limit", type=float, default=60.0)
    limit = made.parse_args().limit
    with tempfile.TemporaryDirectory() as name:
        for title, program, words in cases(Path(name)):
            module = f"moorage.cli.htools.{program}"
            extra = ["--no-capacity-checks"] if program == "hbal" else []
            mine = measure([sys.executable, "-m", module, *words, *extra], limit)
            oracle = HAIL if program == "hail" else f"/usr/bin/{program}"
            other = measure([oracle, *words], limit)
            shown = f"{mine:8.2f} s" if mine is not None else f">{limit:7.0f} s"
            theirs = f"{other:8.2f} s" if other is not None else f">{limit:7.0f} s"
            times = f"{(other or limit) / mine:8.1f}x" if mine else ""
            print(f"{title:24} {shown}  ganeti {theirs} {times}", flush=True)


if __name__ == "__main__":
    main()
