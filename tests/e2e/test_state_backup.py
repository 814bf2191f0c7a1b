# SPDX-License-Identifier: BSD-2-Clause
"""A backup of the state, made while jobs run, is put back into an empty directory."""

import asyncio
import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import backup, process
from moorage.daemons.devcluster import Scratch
from moorage.daemons.paths import MasterPlaces, NodePlaces
from moorage.errors import BadInput
from moorage.node.certificates.authority import Authority
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
    hands.type("gnt-instance add -t diskless --no-install --no-nics -n node2 late")

    assert "there is a cluster" in hands.refused(f"moorage restore {file}")
    rows = hands.ask("gnt-job list -o id,summary")
    (delay,) = [one["id"] for one in rows if "TEST_DELAY" in str(one["summary"])]
    hands.type(f"gnt-job cancel {delay}")
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
    (lost,) = verified(hands)
    assert "it has a guest late (running) that the configuration" in lost["message"]
    said = hands.refused(lost["hint"])  # nobody is there to be asked
    assert "which is no instance" in said
    hands.type(f"{lost['hint']} -f")  # what is to be typed stands there
    assert verified(hands) == []


def verified(hands: Typist) -> list[dict[str, str]]:
    """Return the errors that verify finds, whatever its exit status."""
    told = hands.type("sh -c 'gnt-cluster verify --json || true'")
    found: list[dict[str, str]] = json.loads(told)["errors"]
    return found


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
    roots = tmp_path / "roots"
    roots.touch()
    (places.root / "master.lock").hardlink_to(roots)  # which that user could try
    for words in ("backup x.backup", "master start", "master run --restart"):
        argv = process.command(*words.split(), "--dir", str(places.root))
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == int("master" in words), done.stderr
    assert roots.stat().st_uid == 0
    (places.root / "master.lock").unlink()
    found = [places.root, *places.root.rglob("*")]
    assert {one.lstat().st_uid for one in found} == {65534}
    assert places.store.exists()
    assert (places.keys / "ca.key").exists()


def test_keys_in_a_backup_are_sealed_with_a_passphrase(tmp_path: Path) -> None:
    made = MasterPlaces(tmp_path / "made")
    made.keys.mkdir(parents=True, mode=0o700)
    Authority.make(made.keys, "cluster")
    asyncio.run(_stored(made.store, ClusterBuilder(1)))
    file, secret = tmp_path / "sealed.backup", tmp_path / "secret"
    secret.write_text("harbour gate\n")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    hands = Typist({"PATH": path}, io.StringIO())
    hands.type(f"moorage backup --dir {made.root} --passphrase-file {secret} {file}")
    assert b"BEGIN PRIVATE KEY" not in file.read_bytes()
    put = f"moorage restore --force --dir {tmp_path}/back"
    assert "a passphrase seals the keys" in hands.refused(f"{put} {file}")
    wrong = tmp_path / "wrong"
    wrong.write_text("open\n")
    told = hands.refused(f"{put} --passphrase-file {wrong} {file}")
    assert "the passphrase does not open the keys" in told
    assert not (tmp_path / "back").exists()
    hands.type(f"{put} --passphrase-file {secret} {file}")
    for name in ("ca.key", "master.pem"):
        there = (tmp_path / "back" / "keys" / name).read_bytes()
        assert there == (made.keys / name).read_bytes()


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
