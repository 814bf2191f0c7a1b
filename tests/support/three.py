# SPDX-License-Identifier: BSD-2-Clause
"""Three fresh Debian systems, and somebody who types at them what a page says."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from support.machine_pages import Step, chapters
from support.machines import Machine, Switch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "docs"))
import console  # noqa: E402 - a program of the docs, not in the package

BUILD = ROOT / ".build"
DEBS = BUILD / "deb"
DEBIAN = BUILD / "machines" / "debian"
NAMES = ("node1", "node2", "node3")
R = TypeVar("R")


class Three:
    """Three machines, and somebody who types at them."""

    def __init__(self, machines: Mapping[str, Machine]) -> None:
        self.machines = machines
        self.master = machines["node1"]

    def __getitem__(self, name: str) -> Machine:
        return self.machines[name]

    def each(self, does: Callable[[Machine], R]) -> list[R]:
        with ThreadPoolExecutor(3) as pool:
            return list(pool.map(does, self.machines.values()))

    def type(self, step: Step) -> None:
        if step.where != "all":
            printed = [self[step.where].run(step.text)]
        else:
            printed = self.each(lambda machine: machine.run(step.text))
        for one in printed:
            told = console.tells(step.shown, one.splitlines())
            assert told, f"{step.where}# {step.text}\nprints\n{one}"

    def follow(self, page: str, chapter: str) -> None:
        steps = chapters(ROOT / "docs" / page)[chapter]
        assert steps, chapter
        for step in steps:
            self.type(step)


@contextmanager
def machines(furnish: Callable[[Path], Mapping[Path, str]]) -> Iterator[Three]:
    """Yield three machines that are up, with our packages in ``/root/moorage``.

    Parameters
    ----------
    furnish
        Makes directories below the one that it gets, and returns where all machines
        see them.
    """
    subprocess.run(["make", "-s", "deb", "debian-root"], cwd=ROOT, check=True)
    with ExitStack() as stack:
        at = Path(tempfile.mkdtemp(prefix="three-", dir=BUILD))
        stack.callback(shutil.rmtree, at)
        shared = furnish(at)
        switch = stack.enter_context(Switch())
        made = {}
        for name in NAMES:
            machine = Machine(name, at / name, DEBIAN, switch, shared)
            stack.callback(machine.remove)
            made[name] = machine
        found = Three(made)
        found.each(Machine.boot)
        found.each(lambda machine: machine.bring(DEBS, "/root/moorage"))
        yield found
