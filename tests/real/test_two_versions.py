# SPDX-License-Identifier: BSD-2-Clause
"""Masters of two versions over one etcd: the later one keeps another format.

It takes the lead in its turn, and the state is of its format from then on. The earlier
one says why it cannot lead; and what it backed up before is the way back.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from moorage.store.migrations import FORMAT
from support.etcd_members import Members, members
from support.masters import on, places

pytestmark = pytest.mark.real
LONG = 60.0
LATER = Path(__file__).parents[1] / "support" / "later.py"
ADD = "gnt-disk add -t sharedfile -s 1M"


@pytest.fixture(scope="module")
def etcd() -> Iterator[Members]:
    with members() as found:
        yield found


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Scratch]:
    made = devcluster.up(tmp_path / "c", nodes=2, hypervisor="sim")
    yield made
    on(made, "node2")._run("moorage master stop", shown=False)
    devcluster.down(tmp_path / "c")


def word(etcd: Members, prefix: str) -> str:
    hosts = ",".join(url.removeprefix("http://") for url in etcd.clients)
    return f"etcd://{hosts}/{prefix}"


def begins(town: Scratch, name: str) -> subprocess.Popen[bytes]:
    """Start a node's master as the later version."""
    at = places(town, name)
    words = ("moorage.cli.moorage", "master", "run", "--dir", str(at.root))
    environ = {**os.environ, **on(town, name)._environ}
    with at.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(LATER), *words], env=environ, stdout=log, stderr=log
        )


def leads(hands: Typist) -> bool:
    return hands._run("gnt-cluster info", shown=False).returncode == 0


def waits(hands: Typist) -> str:
    """Return what a master says that waits; empty if it does not."""
    done = hands._run("gnt-cluster info", shown=False)
    return done.stderr if "waits for the lead" in done.stderr else ""


def test_the_later_one_leads_and_the_earlier_says_that_it_cannot(
    town: Scratch, etcd: Members, tmp_path: Path
) -> None:
    one, two = on(town, "node1"), on(town, "node2")
    file = tmp_path / "before.tar"
    one.type(f"moorage store move {word(etcd, 'two')}")
    two.type(f"moorage master wait --store {town.master.etcd}")
    two.type("moorage master stop")
    one.type(f"{ADD} --name before")
    one.type(f"moorage backup {file}")

    # The later one waits for its turn, and changes nothing before.
    later = begins(town, "node2")
    try:
        assert process.wait_until(lambda: waits(two) != "", LONG)
        one.type(f"{ADD} --name meanwhile")
        one.type("moorage master stop")
        assert process.wait_until(partial(leads, two), LONG)
        two.type(f"{ADD} --name after")

        refused_here(one)
        assert later.poll() is None
        assert leads(two)
    finally:
        later.terminate()
        later.wait(LONG)
    ends_in_its_turn(town, one, file)
    goes_back(town, one, word(etcd, "back"), file)


def refused_here(one: Typist) -> None:
    """An earlier master that waits says that it cannot lead, and is not to be next."""
    one.type("moorage master start")
    why = f"it is a later Moorage's, which writes format {FORMAT + 1}"
    assert process.wait_until(lambda: why in waits(one), LONG)
    said = one.refused("gnt-cluster master-failover --yes-do-it")
    assert "the master here cannot lead" in said
    assert why in said


def ends_in_its_turn(town: Scratch, one: Typist, file: Path) -> None:
    """It has the lead to take, sees what the state is of, and changes nothing."""
    gone = partial(process.holder, town.master.lock)
    assert process.wait_until(lambda: gone() is None, LONG)
    why = f"the state in etcd is of a later Moorage: its format {FORMAT + 1}"
    for line in ("moorage master start", f"moorage backup {file}.new"):
        assert why in one.refused(line)


def goes_back(town: Scratch, one: Typist, where: str, file: Path) -> None:
    """What was backed up before is put back, and moves to another prefix."""
    root = town.master.root
    root.rename(f"{root}.later")
    one.type(f"moorage restore --force {file}")
    one.type("moorage master start")
    one.type(f"moorage store move {where}")
    disks = {found["name"] for found in one.ask("gnt-disk list -o name")}
    assert disks == {"before"}
    later = begins(town, "node2")  # on the state of before
    assert later.wait(LONG) == 1
    log = places(town, "node2").log.read_text()
    assert "this is not the cluster's master" in log
    one.type(f"{ADD} --name again")
