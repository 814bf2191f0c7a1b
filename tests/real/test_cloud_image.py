# SPDX-License-Identifier: BSD-2-Clause
"""A newcomer's guest: a cloud image, one line, and a guest that answers to its key."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.daemons import process

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
IMAGE = ROOT / ".build/cloud-image/debian-12.qcow2"
BRIDGE, OWN = "mrgimage", "198.18.7.1/24"
BOOTS = 900
"""Seconds that a first start may take, emulated, on a machine that has much to do."""
_SSH = (
    *("ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"),
    *("-o", "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=10"),
)


def ip(*words: str, check: bool = True) -> None:
    subprocess.run(("ip", *words), check=check, capture_output=True)


@pytest.fixture(scope="module")
def image() -> Path:
    subprocess.run(("make", "-s", "cloud-image"), cwd=ROOT, check=True)
    return IMAGE


@pytest.fixture(scope="module")
def street(town: Any, image: Path) -> Iterator[Any]:
    """A town whose guests reach a bridge, and that has an image."""
    ip("link", "add", BRIDGE, "type", "bridge")
    try:
        ip("addr", "add", OWN, "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        catalogue(town, "debian-12", image)
        town.type("gnt-network add --network=198.18.7.0/24 --gateway=198.18.7.1 lan")
        town.type(f"gnt-network connect -N mode=bridged,link={BRIDGE} lan default")
        yield town
        town.type("gnt-network disconnect lan default")
        town.type("gnt-network remove lan")
        assert town.healthy()
    finally:
        ip("link", "del", BRIDGE, check=False)


def catalogue(town: Any, name: str, image: Path, more: str = "") -> None:
    variants = town.path / "os/image/variants"
    (variants / f"{name}.toml").write_text(f'image = "{image}"\n{more}')


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("key") / "id_ed25519"
    words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(made))
    subprocess.run(words, check=True)
    return made


def inside(key: Path, address: str, command: str) -> str:
    """Run a command in a guest, as its user; empty if it does not answer yet."""
    words = (*_SSH, "-i", str(key), f"debian@{address}", command)
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def test_a_guest_in_one_line_answers_to_its_key(street: Any, key: Path) -> None:
    public = key.with_suffix(".pub").read_text().strip()
    street.type(
        f"gnt-instance add -o image+debian-12 -O 'ssh_key={public}' -t sharedfile"
        " --disk 0:size=1G -B memory=512M,vcpus=2 --net 0:network=lan,ip=pool"
        " -n node1 guest1"
    )
    (row,) = street.ask("gnt-instance list -o nic.ip/0,nic.mac/0 guest1")
    address = row["nic.ip/0"]
    assert process.wait_until(lambda: inside(key, address, "hostname"), BOOTS)
    assert inside(key, address, "hostname") == "guest1\n"
    assert row["nic.mac/0"] in inside(key, address, "cat /sys/class/net/eth0/address")
    (size,) = inside(key, address, "df -m --output=size / | tail -n 1").split()
    assert int(size) > 850, "the last partition and its file system have grown"
    street.type("gnt-instance remove -f guest1")


# -- images that are refused -----------------------------------------------------------


def refused(street: Any, name: str, image: Path, more: str = "") -> str:
    catalogue(street, name, image, more)
    said = street.refused(
        f"gnt-instance add -o image+{name} -t sharedfile --disk 0:size=1G --no-nics"
        " -n node1 --no-start odd"
    )
    assert street.ask("gnt-instance list -o name") == []
    return str(said)


def made(path: Path, *words: str) -> Path:
    subprocess.run(("qemu-img", "create", "-q", *words), check=True)
    return path


def test_an_image_that_needs_other_files(street: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret.raw"
    secret.write_bytes(b"secret" * 100_000)
    one = tmp_path / "one.qcow2"
    back = ("-b", str(secret), "-F", "raw")
    made(one, "-f", "qcow2", *back, str(one))
    assert "has a backing file" in refused(street, "backed", one)
    other = tmp_path / "other.qcow2"
    out = f"data_file={secret},data_file_raw=on"
    made(other, "-f", "qcow2", "-o", out, str(other), "1M")
    assert "keeps its data in another file" in refused(street, "outside", other)


def test_an_image_that_is_none_or_too_large(street: Any, tmp_path: Path) -> None:
    one = tmp_path / "one.qcow2"
    made(one, "-f", "qcow2", str(one), "2G")
    assert "the image needs 2048 MiB" in refused(street, "large", one)
    one.write_bytes(b"QFI\xfb" + b"\xff" * 4096)
    assert "image" in refused(street, "torn", one)
    one.write_bytes(bytes(1 << 20))
    assert "no partition table" in refused(street, "empty", one)
    assert "is no qcow2" in refused(street, "raw", one, 'format = "qcow2"')
    one.unlink()
    assert "there is no image" in refused(street, "gone", one)


def test_a_wrong_parameter_makes_nothing(street: Any) -> None:
    line = (
        "gnt-instance add -o image+debian-12 -t sharedfile --disk 0:size=1G --no-nics"
    )
    said = street.refused(f"{line} -O ssh_key=/root/.ssh/id_rsa.pub -n node1 odd")
    assert "ssh_key is no public key" in said
    assert street.ask("gnt-instance list -o name") == []
    assert street.stage.volumes() == set()


# -- what becomes of what cloud-init is told ----------------------------------------


def seed(town: Any, name: str, file: str) -> str:
    (disk,) = town.disks(name)
    path = town.stage.disk(disk)["logical_id"][1]
    words = ("mtype", "-i", f"{path}@@512K", f"::{file}")
    return subprocess.check_output(words, text=True)


def another_like_it(street: Any) -> None:
    """A clone's disk tells cloud-init the new instance's name, and that it is new."""
    street.type("gnt-instance modify --offline new")
    street.type("gnt-instance add --from new --no-start like")
    rows = street.ask("gnt-instance list -o uuid like new")
    told = [seed(street, name, "meta-data") for name in ("like", "new")]
    for row, name, text in zip(rows, ("like", "new"), told, strict=True):
        assert f'"local-hostname": "{name}"' in text
        assert f'"instance-id": "{row["uuid"]}"' in text
    street.type("gnt-instance remove -f like")


def test_rename_reinstall_and_both_tables(street: Any, tmp_path: Path) -> None:
    """A master boot record serves as well; sfdisk finds both tables sound."""
    street.type(
        "gnt-instance add -o image+debian-12 -t file --disk 0:size=1G"
        " --net 0:network=lan,ip=pool -n node1 --no-start old"
    )
    assert '"local-hostname": "old"' in seed(street, "old", "meta-data")
    assert "198.18.7." in seed(street, "old", "network-config")
    street.type("gnt-instance rename old new")
    assert '"local-hostname": "new"' in seed(street, "new", "meta-data")
    another_like_it(street)
    street.type("gnt-instance reinstall -f -O 'user_data=#!/bin/true' new")
    assert seed(street, "new", "user-data").strip() == "#!/bin/true"
    old = tmp_path / "mbr.raw"
    old.write_bytes(bytes(8 << 20))
    table = "label: dos\nstart=2048, size=2048, type=c\nstart=4096, type=83\n"
    words = ("sfdisk", "--quiet", str(old))
    subprocess.run(words, check=True, input=table, text=True)
    catalogue(street, "mbr", old)
    for os, lines in (("image+debian-12", 3), ("image+mbr", 3)):
        street.type(f"gnt-instance reinstall -f -o {os} new")
        (disk,) = street.disks("new")
        path = street.stage.disk(disk)["logical_id"][1]
        subprocess.run(("sfdisk", "--quiet", "--verify", path), check=True)
        dump = subprocess.check_output(("sfdisk", "--dump", path), text=True)
        assert dump.count("start=") == lines
    street.type("gnt-instance remove -f new")
