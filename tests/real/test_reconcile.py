# SPDX-License-Identifier: BSD-2-Clause
"""A node with real devices, and a store that was put back from an older backup."""

import subprocess
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

pytestmark = pytest.mark.real


def loops(town: Any) -> list[str]:
    """Return the images below the cluster's directory that are loop devices."""
    told = subprocess.check_output(["losetup", "-l", "-n", "-O", "BACK-FILE"])
    return [one for one in told.decode().split() if one.startswith(f"{town.path}/")]


def put_back(town: Any, kept: Path) -> None:
    """Lose the master's directory, and put the state back from a backup."""
    town.type("moorage master stop")
    rmtree(town.path / "master")
    town.type(f"moorage restore --force {kept}")
    town.type("moorage master start")


def test_what_an_older_backup_does_not_know_is_let_go_and_volumes_come_back(
    quay: Any,
) -> None:
    """A disk is attached that should not be, one is forgotten, and a file is gone."""
    kept = quay.path / "state.backup"
    quay.type("gnt-disk add -t ext -p loop -s 16M d1")
    quay.type("gnt-disk add -t sharedfile -s 16M d2")
    quay.type("gnt-instance add -t diskless --no-install --no-nics -n node1 web1")
    quay.type("gnt-instance startup web1")
    quay.type(f"moorage backup {kept}")
    for _ in range(2):
        quay.type("gnt-disk attach d1 web1")
        quay.type("gnt-disk detach d1")
    quay.type("gnt-disk attach d1 web1")
    quay.type("gnt-disk add -t sharedfile -s 16M d3")
    written = Path(quay.stage.disk("d3")["logical_id"][-1])
    written.write_bytes(b"kept" * (4 << 20))
    put_back(quay, kept)
    Path(quay.stage.disk("d2")["logical_id"][-1]).unlink()

    used = quay._run("gnt-storage reconcile", shown=True).stdout
    assert "it is attached to no instance, and a guest there has it" in used
    assert "detach disk d1" not in used
    quay.type("gnt-instance shutdown web1")
    assert len(loops(quay)) == 1
    done = quay.type("gnt-storage reconcile --apply --yes")
    assert "detach disk d1 on node1: it is attached to no instance" in done
    assert "The plan is done" in done
    assert loops(quay) == []

    disks = {one["name"]: one for one in quay.ask("gnt-disk list -o name,uuid,status")}
    assert disks["d2"]["status"] == disks[None]["status"] == "quarantined"
    quay.type("gnt-disk forget -f --reason 'it is gone' d2")
    quay.type(f"gnt-disk modify --lift-quarantine {disks[None]['uuid']}")
    assert written.read_bytes() == b"kept" * (4 << 20)
    quay.type("gnt-instance startup web1")
    for disk in ("d1", disks[None]["uuid"]):
        quay.type(f"gnt-disk attach {disk} web1")
    assert len(loops(quay)) == 1
    assert quay.ask("gnt-storage reconcile")["plan"] == []
