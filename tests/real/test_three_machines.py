# SPDX-License-Identifier: BSD-2-Clause
"""Three fresh Debian systems become a cluster by what the page says, and stay one."""

import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from moorage.guest import build, write_image
from moorage.testing.machines import Machine, Switch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import console  # noqa: E402 - beside the docs, not in the package

BUILD = ROOT / ".build"
DEBS = BUILD / "deb"
DEBIAN = BUILD / "machines" / "debian"
SHARED = "/srv/ganeti/shared-file-storage"
NAMES = ("node1", "node2", "node3")
LINE = re.compile(r"(all|node\d)# (.*)")

pytestmark = pytest.mark.real


# -- pages -----------------------------------------------------------------------------


@dataclass
class Step:
    """A line to type, where, and what it prints."""

    where: str
    text: str
    shown: list[str] = field(default_factory=list)


def chapters(page):
    """Return the steps of a page by their headings."""
    found = {}
    inside = False
    for line in page.read_text().splitlines():
        if line.startswith("## "):
            steps = found[line[3:]] = []
        elif line.startswith("```"):
            inside = line == "```shell-session"
        elif inside and (typed := LINE.match(line)):
            steps.append(Step(*typed.groups()))
        elif inside and line.startswith("> ") and not steps[-1].shown:
            steps[-1].text += f"\n{line[2:]}"
        elif inside:
            steps[-1].shown.append(line)
    return found


# -- machines --------------------------------------------------------------------------


class Three:
    """Three machines, and somebody who types at them."""

    def __init__(self, machines):
        self.machines = machines

    def __getitem__(self, name):
        return self.machines[name]

    def each(self, does):
        with ThreadPoolExecutor(3) as pool:
            return list(pool.map(does, self.machines.values()))

    def type(self, step):
        if step.where != "all":
            printed = [self[step.where].run(step.text)]
        else:
            printed = self.each(lambda machine: machine.run(step.text))
        for one in printed:
            told = console.tells(step.shown, one.splitlines())
            assert told, f"{step.where}# {step.text}\nprints\n{one}"

    def follow(self, page, chapter):
        steps = chapters(ROOT / "docs" / page)[chapter]
        assert steps, chapter
        for step in steps:
            self.type(step)

    def status(self, name):
        line = f"gnt-instance list --no-headers -o status {name}"
        return self["node1"].run(line).strip()


@pytest.fixture(scope="module")
def three():
    subprocess.run(["make", "-s", "deb", "debian-root"], cwd=ROOT, check=True)
    with ExitStack() as stack:
        at = Path(tempfile.mkdtemp(prefix="three-", dir=BUILD))
        stack.callback(shutil.rmtree, at)
        shared = at / "shared"
        shared.mkdir()
        build(BUILD / "guest")
        write_image(shared / "guest.raw", BUILD / "guest")
        switch = stack.enter_context(Switch())
        machines = {}
        for name in NAMES:
            machine = Machine(name, at / name, DEBIAN, switch, {shared: SHARED})
            stack.callback(machine.remove)
            shutil.copytree(DEBS, at / name / "upper" / "root" / "moorage")
            machines[name] = machine
        found = Three(machines)
        found.each(Machine.boot)
        yield found


# -- the page --------------------------------------------------------------------------

PAGE = "start/three-machines.md"


@pytest.mark.parametrize(
    "chapter", ["Names", "A bridge", "Install", "The cluster", "Storage", "A guest"]
)
def test_the_page_is_word_for_word_true(three, chapter):
    three.follow(PAGE, chapter)


# -- what happens to it afterwards -----------------------------------------------------


def qemu(machine, name):
    """Return the process of a guest there."""
    return machine.run(f"pgrep -f 'qemu-system.*{name}' || true").split()


def test_the_master_runs_without_root_and_without_capabilities(three):
    node1 = three["node1"]
    pid = node1.run("systemctl show -P MainPID moorage-master").strip()
    status = node1.run(f"cat /proc/{pid}/status")
    assert node1.run(f"stat -c %U /proc/{pid}").strip() == "moorage"
    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
    assert node1.run("find /var/lib/moorage ! -user moorage") == ""
