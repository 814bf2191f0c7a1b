# SPDX-License-Identifier: BSD-2-Clause
"""Three fresh Debian systems keep their state in etcd, by what the page says."""

import hashlib
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from support.machines import Machine
from support.three import NAMES, Three, machines

PAGE = "start/three-machines-with-etcd.md"
BEFORE = "start/three-machines.md"
ARCHIVE = "/srv/etcd"
"""Where the machines have Debian's packages of etcd: they reach no other network."""
SOURCES = f"""
: >/etc/resolv.conf
rm -f /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:{ARCHIVE} ./' >/etc/apt/sources.list
apt-get update -qq
"""
IP = "192.0.2.10"

pytestmark = pytest.mark.real


def archive(at: Path) -> Mapping[Path, str]:
    """Make an archive of Debian's packages of etcd."""
    found = at / "archive"
    found.mkdir(mode=0o755)
    argv = ["apt-get", "-qq", "download", "etcd-server", "etcd-client"]
    if subprocess.run(argv, cwd=found, check=False).returncode:
        subprocess.run(["apt-get", "-qq", "update"], check=True)
        subprocess.run(argv, cwd=found, check=True)
    entries = []
    for deb in sorted(found.glob("*.deb")):
        fields = subprocess.check_output(["dpkg-deb", "--field", deb], text=True)
        digest = hashlib.sha256(deb.read_bytes()).hexdigest()
        place = f"Filename: ./{deb.name}\nSize: {deb.stat().st_size}\n"
        entries.append(f"{fields}{place}SHA256: {digest}\n")
    (found / "Packages").write_text("\n".join(entries))
    return {found: ARCHIVE}


@pytest.fixture(scope="module")
def three() -> Iterator[Three]:
    with machines(archive) as found:
        found.each(lambda machine: machine.run(SOURCES))
        for chapter in ("Names", "A bridge", "Install"):
            found.follow(BEFORE, chapter)
        yield found


CHAPTERS = ("Certificates", "Members", "A user", "The cluster", "Masters that wait")


@pytest.mark.parametrize("chapter", [*CHAPTERS, "When the master is lost"])
def test_the_page_is_word_for_word_true(three: Three, chapter: str) -> None:
    three.follow(PAGE, chapter)


def leader(three: Three, *among: str) -> Machine:
    """Return the machine whose master leads, once one of some does."""
    at = three[among[0]]
    at.wait(" || ".join(f"gnt-cluster getmaster | grep -x {one}" for one in among))
    return three[at.run("gnt-cluster getmaster").strip()]


def test_a_master_without_power_is_followed_and_nothing_is_lost(three: Three) -> None:
    """The address that moves with it goes along."""
    lost = leader(three, *NAMES)
    lost.run("gnt-cluster add-tags told-as-done")
    lost.pull_plug()
    left = [name for name in NAMES if name != lost.name]
    next_one = leader(three, *left)
    assert "told-as-done" in next_one.run("gnt-cluster list-tags")
    three[left[0]].wait(f"ping -c 1 -W 1 {IP}", 30.0)
    lost.boot()
    lost.wait("systemctl is-active etcd moorage-master", 60.0)
    assert leader(three, *left) is next_one
    assert IP not in lost.run("ip -oneline address show")


@pytest.mark.parametrize(
    "chapter", ["When members of etcd are away", "When all of etcd is lost"]
)
def test_what_the_page_says_of_losses_is_true(three: Three, chapter: str) -> None:
    three.follow(PAGE, chapter)
