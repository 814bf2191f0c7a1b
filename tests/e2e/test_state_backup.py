# SPDX-License-Identifier: BSD-2-Clause
"""A backup of the state, made while jobs run, is put back into an empty directory."""

import asyncio
import gzip
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import backup
from moorage.daemons.devcluster import Scratch
from moorage.daemons.paths import MasterPlaces, NodePlaces
from moorage.errors import BadInput
from moorage.node.authority import Authority
from moorage.store import SqliteStore, create
from moorage.testing.cluster import ClusterBuilder

pytestmark = pytest.mark.slow


@pytest.fixture
def town(scratch_of: Callable[[str], Scratch]) -> Scratch:
    return scratch_of("--nodes 2 --hypervisor sim")


def test_a_cluster_goes_on_from_its_backup(town: Scratch, tmp_path: Path) -> None:
    node = {"MOORAGE_NODE_DIR": str(town.node("node1").root)}
    hands = Typist(town.environment() | node, io.StringIO())
    file = tmp_path / "cluster.backup"
    hands.type("gnt-disk add --size 1m -t sharedfile --name before")
    hands.type("gnt-debug delay --submit 600")  # it is under way meanwhile
    told = hands.type(f"moorage backup {file}")
    assert "the state of cluster scratch of" in told
    assert file.stat().st_mode & 0o777 == 0o600
    assert "already" in hands.refused(f"moorage backup {file}")
    said = hands.refused(f"moorage backup {tmp_path}/none/file")
    assert f"there is no directory {tmp_path}/none" in said
    hands.type("gnt-disk add --size 1m -t sharedfile --name after")

    assert "there is a cluster" in hands.refused(f"moorage restore {file}")
    hands.type("gnt-job cancel 3")
    hands.type("moorage master stop")
    shutil.rmtree(town.master.root)
    told = hands.refused(f"moorage restore {file}")
    assert "the nodes hear a master on node1" in told  # seconds ago: it may live
    hands.type(f"moorage restore --force {file}")
    assert town.master.store.stat().st_mode & 0o777 == 0o600
    hands.type("moorage master start")
    assert [one["name"] for one in hands.ask("gnt-disk list -o name")] == ["before"]
    # Orders get through: the term is higher than any that a node has heard.
    hands.type("gnt-disk add --size 1m -t sharedfile --name later")
    rows = hands.ask("gnt-job list -o summary,status")
    states = [one["status"] for one in rows if "TEST_DELAY" in str(one["summary"])]
    assert states == ["error"]  # it was under way, and the new master took it up
    assert json.loads(hands.type("gnt-cluster verify --json"))["errors"] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_backup_is_put_back_where_the_package_made_the_directory(
    tmp_path: Path,
) -> None:
    """It belongs to the master's user, and root puts back what that user is to use."""
    made = MasterPlaces(tmp_path / "made")
    keys = made.keys
    keys.mkdir(parents=True)
    Authority.make(keys, "cluster")
    builder = ClusterBuilder(1)
    asyncio.run(_stored(made.store, builder))
    file = tmp_path / "cluster.backup"
    backup.backup(made, file)
    places = MasterPlaces(tmp_path / "var")
    places.root.mkdir(mode=0o700)
    os.chown(places.root, 65534, 65534)
    backup.restore(places, NodePlaces(tmp_path / "node"), file, force=True)
    found = [places.root, *places.root.rglob("*")]
    assert {one.lstat().st_uid for one in found} == {65534}
    assert places.store.exists()
    assert (places.keys / "ca.key").exists()


async def _stored(path: Path, builder: ClusterBuilder) -> None:
    store = SqliteStore(path)
    try:
        await create(store, builder.change())
    finally:
        await store.close()


def test_a_damaged_backup_is_refused(tmp_path: Path) -> None:
    members = {"state.sqlite": b"x", "keys/ca.key": b"key"}
    sums = {name: backup._sum(data) for name, data in members.items()}
    made = backup.Manifest(
        cluster="c", software="1", time=0.0, version=1, term=1, sums=sums
    )
    good, bad = tmp_path / "good", tmp_path / "bad"
    text = backup.json.encode(made)
    backup._write(good, {"manifest.json": text, **members})
    assert backup.read(good)[1] == members
    backup._write(bad, {"manifest.json": text, **members, "keys/ca.key": b"kex"})
    with pytest.raises(BadInput, match=r"its keys/ca\.key is not what was written"):
        backup.read(bad)
    other = tmp_path / "other"
    with tarfile.open(other, "w") as tar:
        tar.add(good, "something")
    with pytest.raises(BadInput, match="is no backup"):
        backup.read(other)
    with pytest.raises(BadInput, match="is no backup"):
        backup.read(Path(__file__))
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(good.read_bytes()))
    assert backup.read(packed)[1] == members
    packed.write_bytes(packed.read_bytes()[:100])
    with pytest.raises(BadInput, match="is no backup"):
        backup.read(packed)
