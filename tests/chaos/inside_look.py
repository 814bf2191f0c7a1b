# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: T201 - a program that prints
"""Runs on the emulated node: says as JSON what is on its disk, and changes nothing.

python inside_look.py AGENT MASTER FILES
"""

import json
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

STORE = "state.sqlite"
QUIET = ("log", ".lock", "-wal", "-shm", ".pid")
"""Ends of the names of files that may be empty."""


def _store(path: Path) -> dict[str, Any]:
    """Return what a store has, read from a copy of it."""
    look = Path("/tmp/look")
    shutil.rmtree(look, ignore_errors=True)
    look.mkdir()
    try:
        for part in path.parent.glob(f"{STORE}*"):
            shutil.copyfile(part, look / part.name)
        base = sqlite3.connect(look / STORE)
        (sound,) = base.execute("PRAGMA integrity_check").fetchone()
        head = base.execute("SELECT * FROM head").fetchone()
        ask = "SELECT name, value FROM records WHERE kind = 'job'"
        jobs = base.execute(ask).fetchall()
    except (OSError, sqlite3.Error) as error:
        there = path.exists()
        return {"error": repr(error)} if there else {"absent": True}
    states = {
        name: [op["status"] for op in json.loads(value)["ops"]]
        for name, value in jobs
        if name.isdecimal()
    }
    return {"sound": sound, "head": head, "jobs": states}


def _copy(state: Path) -> dict[str, Any]:
    current = state / "current"
    name = current.read_text().strip() if current.exists() else ""
    return _store(state / name / STORE) if name else {"absent": True}


VOLATILE = ("serving", "run/scripts/", "run/fake/")
"""What is about processes, none of which outlives a power cut."""


def _empty(top: Path) -> list[str]:
    files = [path for path in top.rglob("*") if path.is_file()]
    files = [x for x in files if not str(x.relative_to(top)).startswith(VOLATILE)]
    loud = [path for path in files if not path.name.endswith(QUIET)]
    return [f"{x}" for x in loud if x.name[0] != "." and not x.stat().st_size]


def main() -> None:
    """Print it."""
    agent, master, files = map(Path, sys.argv[1:4])
    fences = (agent / "run" / "fence").glob("*")
    said = {
        "copy": _copy(agent / "run" / "state"),
        "store": _store(master / STORE),
        "fences": {path.name: path.read_text().strip() for path in fences},
        "empty": [*_empty(agent), *_empty(master)],
        "files": {str(x): x.stat().st_size for x in files.rglob("*") if x.is_file()},
    }
    print(json.dumps(said))


main()
