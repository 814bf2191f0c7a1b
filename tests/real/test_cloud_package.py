# SPDX-License-Identifier: BSD-2-Clause
"""The cloud's package on a fresh Debian system, by what its page says."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.machine_pages import chapters
from support.machines import Machine, Switch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "docs"))
import console  # noqa: E402 - a program of the docs, not in the package

BUILD = ROOT / ".build"
PAGE = chapters(ROOT / "docs" / "how-to" / "install-a-cloud.md")

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def cloud() -> Iterator[Machine]:
    """Return a machine that has the package beside it."""
    subprocess.run(["make", "-s", "cloud-deb", "debian-root"], cwd=ROOT, check=True)
    with ExitStack() as stack:
        at = Path(tempfile.mkdtemp(prefix="cloud-", dir=BUILD))
        stack.callback(shutil.rmtree, at)
        switch = stack.enter_context(Switch())
        machine = Machine("cloud", at / "cloud", BUILD / "machines/debian", switch)
        stack.callback(machine.remove)
        machine.boot()
        machine.bring(BUILD / "cloud-deb", "/root/moorage-cloud")
        yield machine


def follow(machine: Machine, chapter: str) -> None:
    assert PAGE[chapter]
    for step in PAGE[chapter]:
        printed = machine.run(step.text)
        told = console.tells(step.shown, printed.splitlines())
        assert told, f"{step.text}\nprints\n{printed}"


@pytest.fixture
def home() -> Iterator[Path]:
    """Return a directory of nobody's, where nobody can go."""
    with tempfile.TemporaryDirectory(prefix="cloud-") as made:
        Path(made).chmod(0o755)
        at = Path(made) / "home"
        at.mkdir()
        shutil.chown(at, "nobody")
        yield at


def test_root_works_as_the_owner_of_the_database(home: Path) -> None:
    """Whatever directory that is, and so before there is a service."""
    settings = home.with_name("cloud.toml")
    settings.write_text(f'database = "{home}/cloud.sqlite"\nkey_file = "{home}/key"\n')
    environ = {"MOORAGE_CLOUD": str(settings), "PATH": os.environ["PATH"]}
    program = Path(sys.executable).parent / "snf-manage"
    for words in (["migrate", "--verbosity", "0"], ["project-create", "red"]):
        subprocess.run([program, *words], check=True, env=environ, cwd="/root")
    assert {one.owner() for one in home.iterdir()} == {"nobody"}
    assert (home / "cloud.sqlite").exists()


def test_it_comes_up(cloud: Machine) -> None:
    follow(cloud, "Install")
    ask = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8776/identity/v3').status)"
    cloud.wait(f'python3 -c "{ask}" | grep -x 200')


def test_what_root_types_is_the_services(cloud: Machine) -> None:
    follow(cloud, "People")
    assert cloud.run("find /var/lib/moorage-cloud ! -user moorage-cloud") == ""
    for unit in ("moorage-cloud", "moorage-cloud-worker"):
        pid = cloud.run(f"systemctl show -P MainPID {unit}").strip()
        assert cloud.run(f"stat -c %U /proc/{pid}").strip() == "moorage-cloud"


def test_it_comes_back(cloud: Machine) -> None:
    """After its processes were killed, and after the machine was."""
    cloud.run("systemctl kill --signal=KILL moorage-cloud moorage-cloud-worker")
    cloud.wait("systemctl is-active moorage-cloud moorage-cloud-worker")
    cloud.pull_plug()
    cloud.boot()
    cloud.wait("systemctl is-active moorage-cloud moorage-cloud-worker")
    assert "anna" in cloud.run("snf-manage user-list --fields name")


def test_an_upgrade_keeps_what_there_is(cloud: Machine) -> None:
    cloud.run("apt-get install -qq --reinstall /root/moorage-cloud/moorage-cloud_*.deb")
    cloud.wait("systemctl is-active moorage-cloud moorage-cloud-worker")
    assert "anna" in cloud.run("snf-manage user-list --fields name")


def test_its_database_is_kept(cloud: Machine) -> None:
    follow(cloud, "Back it up")
    follow(cloud, "Remove")
    assert cloud.run("ls /var/lib/moorage-cloud | grep sqlite") != ""
