# SPDX-License-Identifier: BSD-2-Clause
"""A cluster's first and last moments, with agents that wait to be let in.

The nodes are simulated, so nothing here needs root or QEMU.
"""

import io
import os
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from moorage.model.token import from_text, to_text

pytestmark = pytest.mark.slow

BIN = Path(sys.executable).parent
HANDS = Typist({"PATH": f"{BIN}:{os.environ['PATH']}"}, io.StringIO())
DIRECTORY = "--shared-file-storage-dir"


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Scratch]:
    """Return two agents that wait to be let in."""
    at = tmp_path / "c"
    try:
        HANDS.type(f"moorage up {at} --nodes 2 --hypervisor sim --bare")
        yield devcluster.read(at)
    finally:
        if at.exists():
            devcluster.down(at)


@pytest.fixture
def hands(bare: Scratch) -> Typist:
    return Typist(bare.environment(), io.StringIO())


def refused(hands: Typist, line: str) -> str:
    """Type a command that must be refused, in a sentence; return what it says."""
    said = hands.refused(line)
    assert "Traceback" not in said
    assert "unhandled" not in said
    return said


SLIPS = [
    ("Not_A_Name", "'Not_A_Name' is not a cluster name"),
    ("--token garbled demo", "that is no token of a node"),
    ("--node-name node9 demo", "with its token only"),
    ("--node-name no/de --token {token} demo", "'no/de' is not a node name"),
    ("--enabled-disk-templates=floppy demo", "there is no disk template 'floppy'"),
    ("--enabled-disk-templates= demo", "at least one disk template must be enabled"),
    ("--enabled-hypervisors= demo", "at least one hypervisor must be enabled"),
    ("--enabled-hypervisors=xen demo", "there is no hypervisor 'xen'"),
    ("-D floppy:a=b demo", "no disk template is called 'floppy'"),
    ("-H kvm:cpu_mask=a-b demo", "cpu_mask 'a-b' is not all, or numbers"),
    ("-B memory=much demo", "'much' is not a size"),
    ("-B wheels=4 demo", "there is no back-end parameter 'wheels'"),
    ("-m zz demo", "a MAC prefix is three bytes as aa:00:00, not 'zz'"),
    ("--primary-ip=0.0.0.0 demo", "no node is reached at 0.0.0.0: give its address"),
    ("--primary-ip=nowhere demo", "'nowhere' is the name of no address"),
    ("--primary-ip=127.250.250.250 demo", "does not open its door at 127.250.250.250"),
    (f"{DIRECTORY}=shared demo", "is an absolute path, not 'shared'"),
    (f"{DIRECTORY}=/ demo", "cannot be /"),
    (f"{DIRECTORY}=/srv/../etc demo", "system directories hold no images"),
    ("--file-storage-dir=/usr/lib/images demo", "cannot be /usr/lib/images"),
]


def test_a_slip_leaves_nothing_behind(bare: Scratch, hands: Typist) -> None:
    token = devcluster.token(bare, "node1")
    for slip, sentence in SLIPS:
        said = refused(hands, "gnt-cluster init " + slip.format(token=token))
        assert sentence in said, slip
        assert not bare.master.root.exists(), slip
    wrong = to_text(replace(from_text(token), secret="x" * 32))
    said = refused(hands, f"gnt-cluster init --token {wrong} demo")
    assert "node node1 does not accept the token" in said
    assert not bare.master.root.exists()
    assert devcluster.token(bare, "node1") == token  # and the node still waits
    assert "no master listens" in refused(hands, "gnt-cluster info")
    line = "--enabled-disk-templates=sharedfile,diskless -H kvm:-acpi,kernel_args=ro"
    hands.type(f"gnt-cluster init {line} demo")
    told = hands.ask("gnt-cluster info")
    assert told["enabled_disk_templates"] == ["sharedfile", "diskless"]
    found = told["hvparams"]["kvm"]
    assert (found["kernel_args"], found["acpi"]) == ("ro", True)  # acpi by default
    hands.type("gnt-instance add -t diskless --no-nics --no-install web1")
    assert "ERROR" not in hands.type("gnt-cluster verify")


@pytest.mark.requirement("S0-18")
def test_the_shared_directory_is_the_clusters(bare: Scratch, hands: Typist) -> None:
    hands.type(f"gnt-cluster init {DIRECTORY}=/srv/shared demo")
    told = hands.look("gnt-cluster info")
    (line,) = (one for one in told.splitlines() if "shared file storage" in one)
    assert line.split(": ")[1] == "/srv/shared"
    assert hands.ask("gnt-cluster info")["shared_file_storage_dir"] == "/srv/shared"
    said = refused(hands, "gnt-cluster init other")
    assert f"there is a cluster in {bare.master.root}" in said
    assert hands.ask("gnt-cluster info")["name"] == "demo"
    hands.type("gnt-disk add -t sharedfile -s 8M data1")
    (disk,) = hands.ask("gnt-disk list -o logical_id")
    assert disk["logical_id"][1].startswith("/srv/shared/")


@pytest.mark.requirement("S0-18")
def test_a_shared_directory_that_the_first_node_lacks_is_refused(
    tmp_path: Path,
) -> None:
    at, shared = tmp_path / "c", tmp_path / "images"
    try:
        HANDS.type(f"moorage up {at} --nodes 1 --hypervisor fake --bare")
        town = devcluster.read(at)
        hands = Typist(town.environment(), io.StringIO())
        init = f"gnt-cluster init {DIRECTORY}={shared} demo"
        assert f"node node1 has no directory {shared}" in refused(hands, init)
        assert not town.master.root.exists()
        assert process.wait_until(town.node("node1").token.exists, 60)
        shared.mkdir()
        assert f"node node1 does not allow disks in {shared}" in refused(hands, init)
        with (at / "file-storage-paths").open("a") as listed:
            listed.write(f"{shared}\n")
        assert process.wait_until(town.node("node1").token.exists, 60)
        hands.type(init)
    finally:
        if at.exists():
            devcluster.down(at)


def test_a_cluster_without_a_shared_directory_has_no_such_disks(
    hands: Typist,
) -> None:
    hands.type("gnt-cluster init demo")
    said = refused(hands, "gnt-disk add -t sharedfile -s 8M data1")
    assert "no directory is configured for disk template 'sharedfile'" in said
    assert hands.ask("gnt-disk list -o name") == []


def test_a_token_lets_one_node_in_once(bare: Scratch, hands: Typist) -> None:
    first, second = (devcluster.token(bare, name) for name in bare.names)
    hands.type("gnt-cluster init demo")
    for token, sentence in (
        ("garbled", "that is no token of a node"),
        (first, "does not open its door"),
        (to_text(replace(from_text(second), secret="n" * 9)), "not accept the token"),
    ):
        assert sentence in refused(hands, f"gnt-node add --token {token} node2")
        assert hands.ask("gnt-node list -o name") == [{"name": "node1"}]
    hands.type(f"gnt-node add --token-file {bare.node('node2').token} node2")
    for number in range(1, 5):
        assert second not in hands.look(f"gnt-job info {number}")
    stored = sqlite3.connect(bare.master.root / "state.sqlite")
    written = "\n".join(stored.iterdump()).lower()  # jobs are in hex
    assert b"node.enrol".hex() in written
    assert second.encode().hex() not in written
    stored.close()
    assert "let in as node2 by the master" in bare.node("node2").log.read_text()
    said = refused(hands, f"gnt-node add --token {second} node3")
    assert "does not open its door" in said
    assert len(hands.ask("gnt-node list -o name")) == 2


def test_destroy_waits_until_the_cluster_is_empty(bare: Scratch, hands: Typist) -> None:
    assert "there is no cluster" in refused(hands, "gnt-cluster destroy --yes-do-it")
    hands.type("gnt-cluster init demo")
    hands.type("gnt-node add node2")
    hands.type("gnt-instance add -t diskless --no-nics -n node2 web1")
    said = refused(hands, "gnt-cluster destroy")
    assert "gnt-cluster destroy --yes-do-it" in said
    said = refused(hands, "gnt-cluster destroy --yes-do-it")
    assert "the cluster has 1 instance: web1" in said
    hands.type("gnt-instance remove -f web1")  # so the master is up again
    said = refused(hands, "gnt-cluster destroy --yes-do-it")
    assert "gnt-node remove node2" in said
    hands.type("gnt-node remove node2")
    hands.type("gnt-cluster destroy --yes-do-it")
    left = sorted(path.name for path in bare.master.root.iterdir())
    assert left == ["master.log"]
    assert "no master listens" in refused(hands, "gnt-cluster info")
    assert "there is no cluster" in refused(hands, "gnt-cluster destroy --yes-do-it")


def test_hooks_see_a_cluster_come_and_go(bare: Scratch) -> None:
    """One that fails is told of, and stops nothing."""
    root = Path(bare.root)
    seen = root / "seen"
    for what in ("init", "destroy"):
        script = root / "hooks" / "node1" / f"cluster-{what}-post.d" / "10note"
        script.parent.mkdir(parents=True)
        words = "$GANETI_OP_CODE $GANETI_CLUSTER $GANETI_MASTER $GANETI_HOOKS_PHASE"
        script.write_text(f"#!/bin/sh\necho {words} >> {seen}\necho too bad\nexit 3\n")
        script.chmod(0o755)
    told = "10note on node node1: failed (exited with exit code 3): too bad"
    for what in ("init demo", "destroy --yes-do-it"):
        said = _stderr(bare, f"gnt-cluster {what}")
        assert f"Warning: hook cluster-{what.split()[0]}-post.d/{told}" in said
    assert seen.read_text().splitlines() == [
        "OP_CLUSTER_POST_INIT demo node1 post",
        "OP_CLUSTER_DESTROY demo node1 post",
    ]


def _stderr(bare: Scratch, line: str) -> str:
    done = subprocess.run(
        [BIN / shlex.split(line)[0], *shlex.split(line)[1:]],
        env={**os.environ, **bare.environment()},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stderr


def test_destroy_says_what_becomes_of_detached_disks(hands: Typist) -> None:
    hands.type(f"gnt-cluster init {DIRECTORY}=/srv/shared demo")
    hands.type("gnt-disk add -t sharedfile -s 8M precious")
    said = refused(hands, "gnt-cluster destroy --yes-do-it")
    assert "the cluster has 1 disk: precious" in said
    assert "gnt-disk remove precious" in said
    hands.type("gnt-disk remove -f precious")
    hands.type("gnt-cluster destroy --yes-do-it")


def test_a_node_that_left_can_come_back_here_or_elsewhere(bare, hands):
    hands.type("gnt-cluster init --node-name node1 first")
    hands.type("gnt-node add node2")
    hands.type("gnt-node remove node2")
    _wait_for_door(bare, "node2")
    hands.type("gnt-node add node2")
    hands.type("gnt-node remove node2")
    hands.type("gnt-cluster destroy --yes-do-it")
    for name in ("node1", "node2"):
        _wait_for_door(bare, name)
    hands.type("gnt-cluster init --node-name node1 second")
    hands.type("gnt-node add node2")
    assert len(hands.ask("gnt-node list -o name,mtotal")) == 2


def _wait_for_door(bare: Scratch, name: str) -> None:
    token = bare.node(name).token
    assert process.wait_until(token.exists, 120), f"{name} does not open its door"
