# SPDX-License-Identifier: BSD-2-Clause
"""What a program loads before it does anything: a person waits for each module."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from moorage.cli.command import PLANNERS, PROGRAMS
from moorage.htools import sample
from moorage.htools.formats import text
from moorage.testing.cluster import ClusterBuilder
from moorage.testing.served import served

_BIN = Path(sys.executable).parent
_LOADED = re.compile(r"^import time: +\d+ \| +\d+ \| *([\w.]+)$", re.MULTILINE)
NEVER = {
    *("asyncio", "ssl", "numpy", "msgspec", "aiohttp", "cryptography", "rich"),
    *("importlib.metadata", "hashlib", "subprocess", "tempfile", "shutil", "bz2"),
    *("urllib.parse", "hmac", "secrets", "difflib", "dataclasses", "inspect"),
}
"""Slow to load, and of use to none of what is tried here."""
BEFORE_WORK = {
    *("argparse", "json", "socket", "pathlib", "shlex"),
    *("moorage.api.luxi", "moorage.htools.fleet", "moorage.model"),
}
"""Of use to work alone."""


def loaded(*words: str, **environ: str) -> set[str]:
    """Return the modules that a program loads for a command line."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(_BIN / words[0]), *words[1:]],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return set(_LOADED.findall(done.stderr))


def ours(modules: set[str]) -> int:
    return sum(name.partition(".")[0] == "moorage" for name in modules)


@pytest.mark.parametrize("word", ["--version", "--help"])
@pytest.mark.parametrize("name", [*PROGRAMS, *PLANNERS])
def test_what_is_asked_before_any_work_loads_next_to_nothing(
    name: str, word: str
) -> None:
    found = loaded(name.replace("_", "-"), word)
    assert not found & (NEVER | BEFORE_WORK)
    assert ours(found) <= 16


def test_help_of_a_command_loads_no_operation() -> None:
    found = loaded("gnt-disk", "add", "--help")
    assert not found & NEVER
    assert not found & {"pathlib", "moorage.ops", "moorage.model"}


def test_a_list_loads_what_lists_need() -> None:
    with served(ClusterBuilder().instance("web1")) as sim:
        found = loaded("gnt-instance", "list", **sim.environ)
    assert not found & NEVER
    assert not found & {"pathlib", "moorage.cli.follow"}
    assert ours(found) <= 32


def test_a_plan_loads_what_its_input_needs(tmp_path: Path) -> None:
    file = tmp_path / "cluster.data"
    shape = sample.Shape(kind="drbd", nodes=3, instances=10, oddity=0.0)
    file.write_text(text.dump(sample.cluster(5, shape)))
    found = loaded("hbal", "-t", str(file))
    assert not found & NEVER
    assert not found & {"argparse", "socket", "pathlib", "moorage.api.luxi"}
    assert ours(found) <= 70


@pytest.mark.parametrize(
    ("program", "never"),
    [
        ("moorage.daemons.agent", {"ops", "htools", "jobs", "consistency", "copies"}),
        ("moorage.daemons.master_process", {"ops", "htools", "jobs", "node.agent"}),
        ("moorage.daemons.rapi_settings", {"ops", "htools", "jobs", "web", "store"}),
    ],
)
def test_a_process_loads_nothing_of_what_it_never_does(
    program: str, never: set[str]
) -> None:
    asks = f"import {program}, sys; print(*sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", asks], capture_output=True, text=True, check=True
    )
    assert not set(told.stdout.split()) & {f"moorage.{name}" for name in never}
