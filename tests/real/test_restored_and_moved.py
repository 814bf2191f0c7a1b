# SPDX-License-Identifier: BSD-2-Clause
"""A backup from either store is put back, and the state moves to etcd from there.

Masters of before are in the way: one that leads is noticed, one that wakes up later
leads nobody.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from support.etcd_members import Members, members
from support.masters import on, places

pytestmark = pytest.mark.real
LONG = 60.0
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


def disks(hands: Typist) -> set[str]:
    return {one["name"] for one in hands.ask("gnt-disk list -o name")}


def leads(hands: Typist) -> bool:
    return hands._run("gnt-cluster info", shown=False).returncode == 0


def aside(town: Scratch, name: str, to: str) -> None:
    root = places(town, name).root
    root.rename(f"{root}.{to}")


def test_a_backup_of_sqlite_is_put_back_and_moved_and_one_of_etcd_put_back(
    town: Scratch, etcd: Members, tmp_path: Path
) -> None:
    one, two = on(town, "node1"), on(town, "node2")
    file = tmp_path / "sqlite.tar"
    one.type(f"{ADD} --name early")
    one.type(f"moorage backup {file}")
    lost = word(etcd, "lost")
    one.type(f"moorage store move {lost}")
    two.type(f"moorage master wait --store {town.master.etcd}")
    one.type(f"{ADD} --name late")
    assert "there is a cluster in" in one.refused(f"moorage restore {file}")

    one.type("moorage master stop")
    assert process.wait_until(partial(leads, two), LONG)
    aside(town, "node1", "lost")
    put_back(town, one, two, file)
    assert disks(one) == {"early"}
    wakes_up(two)
    said = one.refused(f"moorage store move {lost}")
    assert "there is a cluster in" in said
    assert "give a prefix that nobody uses" in said
    moved(town, one, word(etcd, "next"))
    assert disks(one) == {"early"}
    aside(town, "node2", "lost")
    two.type(f"moorage master wait --store {town.master.etcd}")

    file = tmp_path / "etcd.tar"
    one.type(f"{ADD} --name since")
    one.type(f"moorage backup {file}")
    one.type(f"{ADD} --name later")
    for hands, name in ((two, "node2"), (one, "node1")):
        hands.type("moorage master stop")
        aside(town, name, "next")
    two.type(f"moorage restore --force {file}")
    two.type("moorage master start")
    assert disks(two) == {"early", "since"}
    assert two.type("gnt-cluster getmaster") == "node2\n"
    two.type(f"{ADD} --name again")


def put_back(town: Scratch, one: Typist, two: Typist, file: Path) -> None:
    """A restore is refused while a master leads elsewhere, and says which to stop."""
    said = one.refused(f"moorage restore {file}")
    assert "the nodes hear a master on node2" in said
    assert "on node2: moorage master stop" in said
    assert not town.master.store.exists()
    two.type("moorage master stop")
    one.type(f"moorage restore --force {file}")  # its last word was seconds ago
    one.type("moorage master start")


def wakes_up(two: Typist) -> None:
    """A master on the state of before says why it does not lead, and serves nobody."""
    said = two.refused("moorage master start")
    assert "this is not the cluster's master" in said
    assert "its nodes have heard another one" in said


def moved(town: Scratch, one: Typist, where: str) -> None:
    """The lead of node2, after the backup, is told until there are other keys."""
    one.type(f"moorage store move {where}")
    told = one._run("gnt-cluster verify --error-codes", shown=False).stdout
    assert told.count("ERROR") == 1, told
    assert "ECLUSTERLEAD" in told
    one.type("gnt-cluster renew-crypto")
    assert "ERROR" not in one.type("gnt-cluster verify")
    key = town.node("node2").run / "state" / "keys" / "own.pem"
    assert process.wait_until(key.exists, LONG)
