# SPDX-License-Identifier: BSD-2-Clause
"""A local user without any right, against what root starts, runs and believes.

The user is ``nobody``, and does what can be done: makes directories first, writes where
it is let, puts links in the place of files, takes locks.
"""

import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process

pytestmark = pytest.mark.real

NOBODY = 65534
BIN = Path(sys.executable).parent
HANDS = Typist({"PATH": f"{BIN}:{os.environ['PATH']}"}, io.StringIO())
KEY = "PRIVATE KEY"


def as_nobody(script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script as a user without rights."""
    return subprocess.run(
        ["/bin/sh", "-ec", script],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )


def do_as_nobody(script: str) -> None:
    done = as_nobody(script)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def common() -> Iterator[Path]:
    """Return a directory as ``/tmp`` is; whatever comes up there is ended."""
    at = Path(tempfile.mkdtemp(prefix="common-"))
    at.chmod(0o1777)
    yield at
    for note in list(at.rglob("scratch.json")):
        devcluster.down(note.parent)
    shutil.rmtree(at)


# -- scratch clusters ------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["0755", "0777"])
def test_no_cluster_comes_up_in_a_directory_of_somebody_else(
    common: Path, mode: str
) -> None:
    do_as_nobody(f"mkdir {common}/c; chmod {mode} {common}/c")
    said = HANDS.refused(f"moorage up {common}/c --nodes 1 --hypervisor sim --bare")
    told = f"{common}/c belongs to user nobody (mode {mode})"
    assert f"a scratch cluster cannot be kept in {common}/c: {told}" in said
    assert [*(common / "c").iterdir()] == []


@pytest.mark.parametrize("mode", ["0777", "1777"])
def test_no_cluster_comes_up_below_a_directory_of_somebody_else(
    common: Path, mode: str
) -> None:
    do_as_nobody(f"mkdir -m {mode} {common}/theirs")
    where = f"{common}/theirs/c"
    said = HANDS.refused(f"moorage up {where} --nodes 1 --hypervisor sim --bare")
    assert f"{common}/theirs belongs to user nobody" in said
    assert not Path(where).exists()


def test_no_cluster_comes_up_where_everybody_may_rename_it(common: Path) -> None:
    common.chmod(0o777)
    said = HANDS.refused(f"moorage up {common}/c --nodes 1 --hypervisor sim --bare")
    assert f"{common}, which belongs to user root, may be written by others" in said


def test_a_cluster_in_a_common_directory_is_out_of_reach(common: Path) -> None:
    (common / "c").mkdir(mode=0o755)
    HANDS.type(f"moorage up {common}/c --nodes 1 --hypervisor sim --bare")
    assert (common / "c").stat().st_mode & 0o7777 == 0o700
    assert as_nobody(f"mv {common}/c {common}/d").returncode != 0
    assert as_nobody(f"ls {common}/c").returncode != 0


# -- daemons ---------------------------------------------------------------------------


def test_no_agent_lives_in_a_directory_of_somebody_else(common: Path) -> None:
    do_as_nobody(f"mkdir {common}/node")
    said = HANDS.refused(f"moorage agent {common}/node")
    assert f"{common}/node belongs to user nobody (mode 0755)" in said
    assert [*(common / "node").iterdir()] == []


LOCK = """
import fcntl, os, sys, time
locks = [os.open(path, os.O_RDONLY) for path in sys.argv[2:]]
for lock in locks:
    fcntl.flock(lock, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(600)
"""


def test_nobody_keeps_the_master_from_starting(common: Path) -> None:
    HANDS.type(f"moorage up {common}/c --nodes 1 --hypervisor sim")
    town = devcluster.read(common / "c")
    hands = Typist(town.environment(), io.StringIO())
    hands.type("moorage master stop")
    for directory in (town.path, town.master.root, town.node("node1").root):
        directory.chmod(0o755)
    thief = subprocess.Popen(
        [sys.executable, "-c", LOCK, "", town.path, town.master.root],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        stdout=subprocess.PIPE,
    )
    with thief:
        try:
            assert thief.stdout
            assert thief.stdout.readline() == b"locked\n"
            assert as_nobody(f"flock -x {town.master.lock} true").returncode != 0
            hands.type("moorage master start")
        finally:
            thief.kill()
    assert town.master.root.stat().st_mode & 0o7777 == 0o700
    agent = process.running(town.node("node1").pid, "moorage")
    assert agent
    process.end(agent)
    devcluster.start_agent(town, "node1")
    assert town.node("node1").root.stat().st_mode & 0o7777 == 0o700


FIRST = """
set -e
mount -t tmpfs none /run
mount -t tmpfs none /var/lib
node=/var/lib/moorage-node
mkdir $node
echo '{"address": "127.155.3.1", "hypervisor": "fake"}' >$node/agent.json
moorage agent $node >/run/agent.out 2>&1 &
trap 'kill %1; moorage master stop >&2' EXIT
while [ ! -e $node/join-token ]; do sleep 0.05; done
gnt-cluster init --token-file $node/join-token demo >&2
moorage master stop >&2
rm -r /run/moorage  # as after a boot
chmod 755 /var/lib/moorage
moorage master start >&2
stat -c '%a %n' /run/moorage /var/lib/moorage $node
"""


def test_the_default_places_are_made_and_are_roots_alone() -> None:
    environ = {"PATH": f"{BIN}:{os.environ['PATH']}"}
    asked = ["unshare", "--mount", "bash", "-c", FIRST]
    done = subprocess.run(
        asked, env=environ, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.stdout.splitlines() == [
        "700 /run/moorage",
        "700 /var/lib/moorage",
        "700 /var/lib/moorage-node",
    ], done.stderr


# -- scripts ---------------------------------------------------------------------------


def test_root_runs_no_script_that_nobody_wrote(quay: Any, common: Path) -> None:
    common.chmod(0o755)
    for kind, name in (("extstorage", "loop"), ("os", "tiny")):
        shutil.copytree(quay.path / kind / name, common / name)
        (quay.path / kind / "theirs").symlink_to(common / name)
        script = common / name / "create"
        script.chmod(0o777)
        do_as_nobody(f"printf '#!/bin/sh\\nid >{common}/{name}/PWNED\\n' >{script}")
    told = f"'create' under path '{quay.path}/extstorage/theirs' is not trusted: "
    found = f"{common}/loop/create, which belongs to user root, may be written by"
    said = quay.refused("gnt-disk add -t ext --provider theirs -s 8M data1")
    assert f"{told}{found} others (mode 0777)" in said
    assert f"{told}{found}" in _said(quay, "gnt-storage diagnose theirs")
    system = f"{common}/tiny/create, which belongs to user root, may be written by"
    assert system in _said(quay, "gnt-os diagnose theirs")
    quay.type("gnt-disk add -t sharedfile -s 8M data2")
    quay.refused("gnt-instance add -t sharedfile -s 8M -o theirs -n node1 web1")
    assert not [*common.glob("*/PWNED")]


# -- image files -----------------------------------------------------------------------


@pytest.fixture
def shared(quay: Any, common: Path) -> Path:
    """Return a directory of the cluster's for image files that nobody may write to."""
    root = common / "images"
    root.mkdir()
    root.chmod(0o777)
    common.chmod(0o755)
    with (quay.path / "file-storage-paths").open("a") as listed:
        listed.write(f"{root}\n")
    quay.type(f"gnt-cluster modify --shared-file-storage-dir={root}")
    return root


def test_nobody_gets_a_file_of_roots_through_the_shared_directory(
    quay: Any, shared: Path
) -> None:
    key = quay.path / "master/keys/ca.key"
    before = key.read_bytes()
    quay.type("gnt-disk add -t sharedfile -s 8M victim")
    (image,) = shared.rglob("*.sharedfile.disk0")
    do_as_nobody(
        f"mv {shared}/detached {shared}/old; mkdir {shared}/detached; "
        f"ln -s {key} {image}"
    )
    quay.type("gnt-instance add -t diskless -n node1 web1")
    for line in (
        "gnt-disk grow victim 8M",
        "gnt-disk snapshot victim --name copy",
        "gnt-disk attach victim web1",
    ):
        assert f"does not open {image}" in quay.refused(line)
    quay.type("gnt-disk remove -f victim")
    assert key.read_bytes() == before
    assert not [*shared.rglob("*copy*")]


def _said(quay: Any, line: str) -> str:
    """Type a command that finds faults; return what it prints."""
    environ = {**os.environ, **quay.scratch.environment()}
    asked = line.split()
    done = subprocess.run(asked, env=environ, capture_output=True, text=True)  # noqa: PLW1510
    return done.stdout


@pytest.mark.requirement("S0-18")
def test_a_node_keeps_to_its_own_list_whatever_the_cluster_says(
    quay: Any, shared: Path
) -> None:
    """Of the requirement: a directory that is not in the list."""
    quay.type("gnt-disk add -t sharedfile -s 8M data1")
    listed = quay.path / "file-storage-paths"
    listed.write_text(f"{quay.path}/local\n")
    told = f"node node1: it does not allow disks in {shared}: its list of directories"
    assert told in _said(quay, "gnt-cluster verify")
    for line in (
        "gnt-disk grow data1 8M",
        "gnt-disk snapshot data1 --name copy",
        "gnt-disk remove -f data1",
        "gnt-disk add -t sharedfile -s 8M data2",
    ):
        assert f"keeps no image files at {shared}" in quay.refused(line)
    other = "gnt-cluster modify --file-storage-dir="
    assert "does not allow disks in /srv" in quay.refused(f"{other}/srv")
    assert "cannot be /var/lib/moorage" in quay.refused(f"{other}/var/lib/moorage")
