# SPDX-License-Identifier: BSD-2-Clause
"""The wheel, installed into an empty environment, is the whole product."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install the wheel where nothing else of the project is; return its programs.

    The libraries are those of the environment that the tests run in: their versions
    are locked, and no index is asked. The checkout is not to be seen from there.
    """
    subprocess.run(["make", "-s", "wheel"], cwd=ROOT, check=True)
    (wheel,) = (ROOT / ".build" / "wheel").glob("*.whl")
    home = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    pip = [sys.executable, "-m", "pip", "--python", home / "bin" / "python"]
    options = ["-q", "--no-index", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", *options, wheel], check=True)
    (packages,) = home.glob("lib/python*/site-packages")
    # One line adds one directory; what its own .pth files add is left out.
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"


def said(program, *words, **environ):
    kept = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **environ}
    argv = [str(program), *map(str, words)]
    done = subprocess.run(
        argv, cwd="/", env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_it_is_the_installed_code_with_its_compiled_kernel(installed):
    look = "import moorage.htools.kernel.moves as m; print(m.__file__)"
    found = Path(said(installed / "python", "-c", look).strip())
    assert found.is_relative_to(installed.parent)
    assert found.suffix == ".so"


@pytest.mark.slow
def test_every_program_of_the_project_is_there(installed):
    scripts = (ROOT / "pyproject.toml").read_text().partition("[project.scripts]\n")[2]
    names = [line.split()[0] for line in scripts.partition("\n\n")[0].splitlines()]
    assert len(names) > 15
    for name in names:
        assert name in said(installed / name, "--help")


@pytest.mark.slow
def test_a_cluster_of_simulated_nodes_comes_up_from_it(installed, tmp_path):
    at = tmp_path / "c"
    moorage = installed / "moorage"
    try:
        said(moorage, "up", at, "--hypervisor", "sim")
        lines = said(moorage, "env", at).replace("export ", "").splitlines()
        pairs = dict(line.split("=", 1) for line in lines if "=" in line)
        environ = {name: value.strip("'\";") for name, value in pairs.items()}
        environ.pop("PATH", None)
        said(installed / "gnt-instance", *ADD, **environ)
        assert os.access(at / "extstorage" / "qsd" / "create", os.X_OK)
        shown = said(installed / "gnt-instance", "list", "-o", "name,status", **environ)
    finally:
        said(moorage, "down", at)
    assert "running" in shown


ADD = ("add", "-t", "sharedfile", "--disk", "0:size=64M", "-n", "node2", "--no-nics",
       "--no-install", "web1")  # fmt: skip
