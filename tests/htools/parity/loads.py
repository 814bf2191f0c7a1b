# SPDX-License-Identifier: BSD-2-Clause
"""Random load for a cluster: files for ``-U`` and for ``--mond-data``."""

import json
from pathlib import Path
from random import Random
from typing import Any

from moorage.htools.fleet import Fleet


def dynamic(draw: Random, fleet: Fleet, folder: Path) -> Path:
    """Write load of most instances, as ``-U`` reads it."""
    path = folder / "loads"
    lines = [
        " ".join([inst.name, *(f"{draw.uniform(0, 3):.3f}" for _ in range(4))])
        for inst in fleet.instances
        if draw.random() < 0.9
    ]
    path.write_text("".join(line + "\n" for line in lines))
    return path


def measured(
    draw: Random, fleet: Fleet, folder: Path, *, xen: bool = True
) -> list[str]:
    """Write what monitoring daemons say; return the options that use it."""
    kind = draw.choice(("nodes", "nodes", "both", "instances") if xen else ("nodes",))
    missing = draw.random() < 0.15
    entries = []
    for at, node in enumerate(fleet.nodes):
        reports = []
        if kind != "instances":
            reports.append(_of_node(draw))
        if kind != "nodes":
            names = [i.name for i in fleet.instances if i.primary == at]
            reports.append(_of_instances(draw, names, missing=missing))
        if not (missing and kind == "nodes" and draw.random() < 0.2):
            entries.append({"node": node.name, "reports": reports})
    draw.shuffle(entries)
    path = folder / "mond.json"
    path.write_text(json.dumps(entries))
    words = [draw.choice(("--mond", "--mond=yes")), "--mond-data", str(path)]
    if not xen:
        return words
    words += ["--mond-xen"] if kind == "instances" or draw.random() < 0.2 else []
    return words + (["--exit-on-missing-mond-data"] if draw.random() < 0.2 else [])


def _of_node(draw: Random) -> dict[str, Any]:
    cpus = [round(draw.uniform(0, 1), 3) for _ in range(draw.randint(1, 4))]
    data = {"cpu_number": len(cpus), "cpus": cpus, "cpu_total": sum(cpus)}
    return _report("cpu-avg-load", data)


def _of_instances(draw: Random, names: list[str], *, missing: bool) -> dict[str, Any]:
    data = {
        name: draw.choice((0, 1, round(draw.uniform(0, 4), 4)))
        for name in names
        if not missing or draw.random() < 0.9
    }
    return _report("xen-cpu-avg-load", data)


def _report(name: str, data: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "version": "B",
        "format_version": 1,
        "timestamp": 1_700_000_000_000_000_000,
        "category": None,
        "kind": 0,
        "data": data,
    }
