# SPDX-License-Identifier: BSD-2-Clause
"""``moorage export-config``, typed on the master's node."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.cli.tour.typist import Typist
from moorage.daemons.devcluster import Scratch

pytestmark = pytest.mark.slow
ADDRESS = "--master-ip 192.0.2.9 --master-netdev eth0 --master-netmask 24"


@pytest.fixture
def hands(scratch_of: Callable[[str], Scratch]) -> Typist:
    town = scratch_of("--nodes 2 --hypervisor sim")
    typist = Typist(town.environment(), io.StringIO())
    typist.type("gnt-disk add --size 8m -t sharedfile --name data1")
    typist.type(
        "gnt-instance add -n node1 -t sharedfile -s 8m --no-install --no-nics web1"
    )
    return typist


def test_a_cluster_is_written_for_ganeti_and_what_cannot_be_is_not(
    hands: Typist, tmp_path: Path
) -> None:
    file = tmp_path / "config.data"
    said = hands.refused(f"moorage export-config {file}")
    assert "Ganeti's master has an address of its own" in said
    assert "--master-ip ADDRESS" in said
    said = hands.refused(f"moorage export-config {ADDRESS} {file}")
    assert "gnt-cluster modify -N link=br0" in said
    hands.type("gnt-cluster modify -N link=br0")
    assert not file.exists()

    told = hands.type(f"moorage export-config {ADDRESS} {file}")
    assert f"{file} has the configuration of cluster scratch for Ganeti 3.1" in told
    assert f"{file}.moorage has what Ganeti has no place for" in told
    beside = tmp_path / "config.data.moorage"
    assert {one.stat().st_mode & 0o777 for one in (file, beside)} == {0o600}
    document = json.loads(file.read_bytes())
    assert document["version"] == 3010000
    assert document["cluster"]["master_netmask"] == 24
    (web1,) = document["instances"].values()
    assert web1["name"] == "web1"
    kept = json.loads(beside.read_bytes())["disks"]
    assert kept[web1["disks"][0]]["epoch"] > 0

    before = file.read_bytes()
    assert "already" in hands.refused(f"moorage export-config {ADDRESS} {file}")
    old = tmp_path / "old.data"
    hands.type(f"moorage export-config --to-version 2.11 {ADDRESS} {old}")
    assert "disks" not in json.loads(old.read_bytes())
    hands.type("gnt-disk add --size 8m -t file -n node1 --name mixed")
    hands.type("gnt-disk attach mixed web1")
    other = tmp_path / "other.data"
    line = f"moorage export-config --to-version 2.13 {ADDRESS} {other}"
    assert "instance web1 has" in hands.refused(line)
    for wrong, why in (
        ("--to-version 4.0", "is no version of config.data"),
        ("--master-ip nowhere", "is no address"),
        ("--master-netdev eth1", "are about --master-ip"),
        ("--master-ip 192.0.2.9 --master-netmask 40", "1 to 32 bits"),
    ):
        assert why in hands.refused(f"moorage export-config {wrong} {other}")
    assert not other.exists()
    assert file.read_bytes() == before
    assert list(tmp_path.glob(".*")) == []
