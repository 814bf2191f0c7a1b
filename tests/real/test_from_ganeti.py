# SPDX-License-Identifier: BSD-2-Clause
"""An evening: a machine with Debian's Ganeti becomes a cluster of ours, and goes back.

One machine is enough for what packages do to each other; that guests run on meanwhile,
and what becomes of their disks, other tests show.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ganetis_files import Ganeti
from peers import BUILD as PEERS
from peers import unpacked
from support.machine_pages import Step, chapters
from support.machines import Machine, Switch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "docs"))
import console  # noqa: E402 - a program of the docs, not in the package

PAGE = ROOT / "docs" / "how-to" / "coming-from-ganeti.md"
BUILD = ROOT / ".build"
DEBIAN = BUILD / "machines" / "debian"
GANETI = ("ganeti", "ganeti-3.0")

pytestmark = [pytest.mark.real, pytest.mark.oracle]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Return a machine on which Ganeti is installed, and an archive that has it."""
    subprocess.run(["make", "-s", "deb", "debian-root"], cwd=ROOT, check=True)
    if unpacked(GANETI) is None:
        refuse = pytest.fail if os.environ.get("CI") else pytest.skip
        refuse("Debian's packages of Ganeti cannot be had")
    with ExitStack() as stack:
        at = Path(tempfile.mkdtemp(prefix="evening-", dir=BUILD))
        stack.callback(shutil.rmtree, at)
        switch = stack.enter_context(Switch())
        found = Machine("node1", at / "node1", DEBIAN, switch)
        stack.callback(found.remove)
        found.boot()
        found.bring(BUILD / "deb", "/root/moorage")
        archive(tmp_path / "archive")
        found.bring(tmp_path / "archive", "/root/archive")
        found.run("ip link set eth0 up; ip address add 192.0.2.11/24 dev eth0")
        found.run("echo 192.0.2.11 node1 >>/etc/hosts; rm -rf /etc/apt/sources.list*")
        found.run(
            "echo 'deb [trusted=yes] file:/root/archive ./' >/etc/apt/sources.list"
        )
        found.run(
            "apt-get update -qq && apt-get install -qq --no-install-recommends ganeti"
        )
        yield found


def archive(place: Path) -> None:
    """Write Ganeti's two packages, and one that stands for what they depend on."""
    inside = place / "DEBIAN"
    inside.mkdir(parents=True)
    needs, version = set[str](), field(PEERS / "ganeti", "Version")
    for name in GANETI:
        shutil.copy(PEERS / name, place / f"{name}.deb")
        for word in field(PEERS / name, "Depends").split(", "):
            needs.add(word.partition(" ")[0].partition(":")[0])
    argv = [
        "dpkg-query",
        f"--admindir={DEBIAN}/var/lib/dpkg",
        "-W",
        "-f",
        "${Package} ",
    ]
    there = {*GANETI, "lsb-base", *subprocess.check_output(argv, text=True).split()}
    own = [f"{one} (= {version})" for one in sorted(needs - there)]
    (inside / "control").write_text(
        "Package: needed\nVersion: 1\nArchitecture: all\nMaintainer: nobody\n"
        f"Description: what Ganeti needs, and nobody uses here\n"
        f"Provides: {', '.join(own)}\n"
    )
    built = place / "needed.deb"
    subprocess.run(["dpkg-deb", "-b", place, built], check=True, capture_output=True)
    packages = [
        f"{field(one)}\nFilename: ./{one.name}\nSize: {one.stat().st_size}\n"
        f"SHA256: {hashlib.sha256(one.read_bytes()).hexdigest()}\n"
        for one in sorted(place.glob("*.deb"))
    ]
    (place / "Packages").write_text("\n".join(packages))


def field(deb: Path, *names: str) -> str:
    argv = ["dpkg-deb", "-f", str(deb), *names]
    return str(subprocess.check_output(argv, text=True)).strip()


def type_it(step: Step, machine: Machine, directory: Path) -> None:
    """Type a line, on the machine or on this one, and compare what it prints."""
    if step.where == "node1":
        printed = machine.run(step.text)
    else:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        printed = subprocess.run(
            ["bash", "-c", step.text],
            cwd=directory,
            env=os.environ | {"PATH": path},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    told = console.tells(step.shown, printed.splitlines())
    assert told, f"{step.where}# {step.text}\nprints\n{printed}"


def test_an_evening_and_the_way_back(
    machine: Machine, ganeti: Ganeti, tmp_path: Path
) -> None:
    """As the page says, with a recorded configuration; its guests are down."""
    data = ganeti.recorded("2.16").decode().replace(".example.com", "")
    document = json.loads(data)
    document["cluster"]["cluster_name"] = "old"
    for one in document["instances"].values():
        one |= {"admin_state": "down", "hypervisor": "kvm", "hvparams": {}}
    (tmp_path / "config.data").write_text(json.dumps(document))
    machine.run(
        "mkdir -p /var/lib/ganeti/queue; echo 4711 >/var/lib/ganeti/queue/serial"
    )
    beside = Path(f"/proc/{machine.pid}/root/var/lib/ganeti/config.data")
    shutil.copy(tmp_path / "config.data", beside)
    refused = machine.run("cd /root/moorage && dpkg -i moorage-*.deb", check=False)
    for name in ("master", "node", "tools"):
        assert f"not installing moorage-{name}" in refused
    machine.run("dpkg --purge --force-all moorage-common moorage-doc")
    for chapter in ("An evening", "The way back"):
        for step in chapters(PAGE)[chapter]:
            type_it(step, machine, tmp_path)
    assert machine.run("dpkg -l | grep -c '^ii *moorage' || true").strip() == "0"
    machine.run("ls /etc/ganeti/kvm-ifup-os /root/ganeti-before/config.data")
    (tmp_path / "back.data").write_bytes(beside.read_bytes())
    assert ganeti.verify(tmp_path / "back.data") == [[]]
    back = json.loads(beside.read_bytes())
    assert back["instances"].keys() == document["instances"].keys()
