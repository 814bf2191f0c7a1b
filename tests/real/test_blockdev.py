# SPDX-License-Identifier: BSD-2-Clause
"""Shared block devices that are adopted, as LUNs of a SAN are, with real guests.

A loop device plays the LUN: all nodes of the town see it, by one name below /dev/disk.
"""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

BELOW = Path("/dev/disk/moorage-test")
MIB = 1 << 20
SIZE = 24


class Lun:
    """A device with a name below /dev/disk."""

    def __init__(self, image: Path, name: str, size: int = SIZE) -> None:
        image.write_bytes(os.urandom(MIB) + bytes((size - 1) * MIB))
        self.image = image
        ask = ["losetup", "--find", "--show", image]
        self.device = subprocess.check_output(ask, text=True).strip()
        self.path = BELOW / f"{name}-{os.getpid()}"
        BELOW.mkdir(parents=True, exist_ok=True)
        self.path.symlink_to(self.device)

    def close(self) -> None:
        self.path.unlink(missing_ok=True)
        subprocess.run(["losetup", "--detach", self.device], check=True)
        if not list(BELOW.iterdir()):
            BELOW.rmdir()

    @property
    def sum(self) -> str:
        """Checksum of the first megabyte, as the machine reads it."""
        subprocess.run(["blockdev", "--flushbufs", self.device], check=True)
        with Path(self.device).open("rb") as file:
            return hashlib.sha256(file.read(MIB)).hexdigest()


@pytest.fixture(scope="module")
def lun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lun]:
    made = Lun(tmp_path_factory.mktemp("san") / "lun1", "lun1")
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def san(town: Any) -> Iterator[Any]:
    """The town with two guests that have no disks: ``san1`` and ``san2``."""
    town.guest("san1", "node1")
    town.guest("san2", "node2")
    yield town
    for name in ("san1", "san2"):
        town.type(f"gnt-instance remove -f --shutdown-timeout 0 {name}")
    assert town.ask("gnt-disk list -o name") == []
    assert town.ask("gnt-cluster verify")["errors"] == []


@pytest.mark.requirement("S0-02", "S0-03", "S0-04", "S0-11", "S0-19")
def test_an_instance_lives_on_a_device_that_was_there(san: Any, lun: Lun) -> None:
    before = lun.sum
    options = f"-t blockdev --disk 0:adopt={lun.path}"
    san.guest("san3", "node1", options)
    try:
        (uuid,) = san.disks("san3")
        disk = san.stage.disk(uuid)
        assert disk["logical_id"] == ["manual", str(lun.path)]
        assert (disk["size"], disk["nodes"]) == (SIZE, [])
        assert san.checksum("san3", uuid) == before
        kept = san.write("san3", uuid)
        san.type("gnt-instance migrate -f -n node2 san3")
        assert san.checksum("san3", uuid) == kept
        san.type("gnt-instance failover -f --shutdown-timeout 0 -n node3 san3")
        assert san.checksum("san3", uuid) == kept
        (row,) = san.ask("gnt-instance list -o disk_template,snodes san3")
        assert row == {"disk_template": "blockdev", "snodes": []}
    finally:
        san.type("gnt-instance remove -f --shutdown-timeout 0 san3")
    assert lun.sum == kept != before
    assert Path(lun.device).stat().st_rdev == lun.path.stat().st_rdev


@pytest.mark.requirement("S0-02", "S0-04", "S0-19", "S3-01", "S3-24")
def test_a_device_goes_from_guest_to_guest(san: Any, lun: Lun) -> None:
    san.type(f"gnt-disk add -t blockdev --adopt {lun.path} lun1")
    uuid = san.uuid("lun1")
    try:
        san.type("gnt-disk attach lun1 san1")
        kept = san.write("san1", uuid)
        said = san.refused("gnt-disk attach lun1 san2")
        assert "disk lun1 is attached to instance san1" in said
        san.type("gnt-disk detach lun1")
        san.type("gnt-disk attach lun1 san2")
        assert san.checksum("san2", uuid) == kept
        assert not san.sees("san1", uuid)
        said = san.refused(f"gnt-disk add -t blockdev --adopt {lun.path} again")
        assert f"device {lun.path} is disk lun1 already" in said
        for verb in ("grow lun1 8M", "snapshot lun1 --name then"):
            assert "blockdev" in san.refused(f"gnt-disk {verb}")
        assert "blockdev" in san.refused("gnt-instance grow-disk san2 0 8M")
        san.type("gnt-disk detach lun1")
    finally:
        if san.stage.disk("lun1")["instance"]:
            san.type("gnt-disk detach lun1")
        san.type("gnt-disk remove -f lun1")
    assert lun.sum == kept


@pytest.mark.requirement("S0-19", "S0-20")
def test_what_cannot_be_adopted_is_refused(san: Any, lun: Lun, tmp_path: Path) -> None:
    plain = BELOW / f"plain-{os.getpid()}"
    plain.write_bytes(bytes(MIB))
    gone = BELOW / "gone"
    outside = "lie outside /dev/disk/ and cannot be adopted"
    cases = [
        ("adopt=" + lun.device, f"Device node(s) {lun.device} {outside}"),
        (f"adopt={BELOW}/../../null", outside),
        (f"adopt={tmp_path}/x", outside),
        ("adopt=lun1", outside),
        (f"adopt={gone}", f"has no block device {gone}"),
        (f"adopt={plain}", f"has no block device {plain}"),
        ("size=1G", "it adopts devices"),
    ]
    try:
        for words, sentence in cases:
            line = f"gnt-instance add -t blockdev --disk 0:{words} -n node1 --no-nics"
            said = san.refused(f"{line} --no-install --no-start never")
            assert sentence in said, words
            said = san.refused(f"gnt-instance modify --disk -1:add,{words} san1")
            assert san.serials("san1") == set()
    finally:
        plain.unlink()
    assert san.ask("gnt-disk list -o name") == []
    names = {row["name"] for row in san.ask("gnt-instance list -o name")}
    assert "never" not in names


def test_a_device_that_vanished_stops_its_instance_only(
    san: Any, tmp_path: Path
) -> None:
    """The start is refused with the path, and works again when the device is back."""
    lun = Lun(tmp_path / "lun2", "lun2")
    try:
        san.guest("san4", "node1", f"-t blockdev --disk 0:adopt={lun.path}")
        (uuid,) = san.disks("san4")
        kept = san.write("san4", uuid)
        san.type("gnt-instance shutdown --timeout 0 san4")
        lun.path.unlink()
        said = san.refused("gnt-instance startup san4")
        assert f"node node1 has no block device {lun.path}" in said
        assert san.serials("san1") == set()  # it goes on
        lun.path.symlink_to(lun.device)
        san.type("gnt-instance startup san4")
        assert san.checksum("san4", uuid) == kept
        san.type("gnt-instance remove -f --shutdown-timeout 0 san4")
    finally:
        lun.close()


def test_a_device_of_several_names_is_one_disk(san: Any, lun: Lun) -> None:
    """A second link, a doubled slash: the number behind them is the same."""
    link = BELOW / f"other-{os.getpid()}"
    link.symlink_to(lun.device)
    san.type(f"gnt-disk add -t blockdev --adopt {BELOW}//{lun.path.name} lun1")
    try:
        assert san.stage.disk("lun1")["logical_id"] == ["manual", str(lun.path)]
        for name in (link, lun.path, f"{BELOW}/./{link.name}"):
            said = san.refused(f"gnt-disk add -t blockdev --adopt {name} lun2")
            assert "is disk lun1 already" in said
            add = f"gnt-instance modify --disk -1:add,adopt={name},dev_type=blockdev"
            assert "is disk lun1 already" in san.refused(f"{add} san1")
        assert san.ask("gnt-disk list -o name") == [{"name": "lun1"}]
    finally:
        san.type("gnt-disk remove -f lun1")
        link.unlink()


def test_a_guest_stays_when_the_path_leads_to_another_device(
    san: Any, lun: Lun, tmp_path: Path
) -> None:
    """Neither a move nor a start gets to it; verify names it; the data is the same."""
    other = Lun(tmp_path / "other", "other", size=2 * SIZE)
    try:
        san.guest("san5", "node1", f"-t blockdev --disk 0:adopt={lun.path}")
        (uuid,) = san.disks("san5")
        kept = san.write("san5", uuid)
        lun.path.unlink()
        lun.path.symlink_to(other.device)
        wrong = f"it has {2 * SIZE} MiB instead of {SIZE}"
        for line in (
            "gnt-instance migrate -f -n node2 san5",
            "gnt-instance failover -f --shutdown-timeout 0 -n node2 san5",
        ):
            said = san.refused(line)
            assert f"{lun.path} on node node2 is not the device of disk" in said
            assert wrong in said
        assert san.checksum("san5", uuid) == kept  # it was never stopped
        assert wrong in san.look("sh -c 'gnt-cluster verify; true'")
        lun.path.unlink()
        lun.path.symlink_to(lun.device)
        san.type("gnt-instance migrate -f -n node2 san5")
        assert san.checksum("san5", uuid) == kept
        san.type("gnt-instance remove -f --shutdown-timeout 0 san5")
    finally:
        other.close()
    assert lun.sum == kept
