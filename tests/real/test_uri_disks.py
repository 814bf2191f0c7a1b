# SPDX-License-Identifier: BSD-2-Clause
"""Disks that have a URI only, on real nodes; the examples, held to their contract."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real
SHARE = Path(__file__).parents[2] / "share" / "extstorage"
CREATE = """#!/bin/sh
set -e
echo "1 2" >"$OS_PROGRESS"
[ -f "$DISK_0_PATH" ] && [ "$DISK_0_BACKEND_TYPE" = file:loop ]
[ "$(stat -c %s "$DISK_0_PATH")" = $((DISK_0_SIZE << 20)) ]
device=$(losetup --find --show "$DISK_0_PATH")
printf installed | dd of="$device" conv=notrunc,fsync 2>/dev/null
losetup --detach "$device"
"""
BASIC = ("device", "uri", "data-stays", "crash-attach", "shared", "migration")
LOCKS = ("exclusive", "stale-epoch", "grow-open")


@pytest.fixture(scope="module")
def examples(town: Any) -> Path:
    """Return the directory of images of both examples, installed in the town."""
    for name in ("qsd", "loop"):
        to = town.path / "extstorage" / name
        if not to.exists():
            shutil.copytree(SHARE / name, to)
    images = town.path / "shared" / "uri-images"
    for one in (images, town.path / "local" / "q"):
        one.mkdir(exist_ok=True)
    return images


@pytest.fixture
def stamp(town: Any) -> str:
    """Return the name of an OS that writes a word to the first disk."""
    home = town.path / "os" / "stamp"
    home.mkdir(parents=True, exist_ok=True)
    (home / "ganeti_api_version").write_text("20\n")
    (home / "variants.list").write_text("")
    (home / "parameters.list").write_text("")
    for name in ("create", "import", "export", "rename", "verify"):
        (home / name).write_text(CREATE if name == "create" else "#!/bin/sh\n")
        (home / name).chmod(0o755)
    return "stamp"


@pytest.mark.requirement("S0-65", "S0-72")
def test_an_os_script_installs_on_a_disk_without_a_device(
    town: Any, examples: Path, stamp: str
) -> None:
    run = town.path / "local" / "q"
    params = f"access=userspace,dir={examples},run={run},direct=off"
    disk = f"0:size=16M,provider=qsd,{params}"
    options = f"-t ext --disk {disk} -o {stamp} -n node1 --no-nics --no-start"
    town.type(f"gnt-instance add {options} uri1")
    (image,) = [path for path in examples.iterdir() if path.suffix == ".disk0"]
    assert image.read_bytes().startswith(b"installed")
    mounts = Path("/proc/self/mountinfo").read_text()
    assert f"{town.path}/node1/run/exports" not in mounts
    town.type("gnt-instance remove -f uri1")
    assert list(examples.iterdir()) == []


@pytest.mark.parametrize("name", ["qsd", "loop"])
def test_the_examples_keep_the_contract(
    town: Any, examples: Path, tmp_path: Path, name: str
) -> None:
    """The checks that need a real device or daemon, and two nodes."""
    run, report = town.path / "local" / "q", tmp_path / "report.txt"
    asked = [*BASIC, *(LOCKS if name == "qsd" else ())]
    checks = " ".join(f"--check {one}" for one in asked)
    params = f"-D dir={examples},run={run},direct=off"
    nodes = "-n node1 --second-node node2"
    town.type(f"gnt-storage certify {name} {nodes} {params} {checks} --report {report}")
    told = report.read_text()
    assert "Result:              passed" in told
    rows = [line.split() for line in told.splitlines() if "[S0" in line]
    moot = {"qsd": {"device"}, "loop": {"migration"}}[name]
    assert {check for verdict, check, *_ in rows if verdict == "n/a"} == moot
    assert list(examples.iterdir()) == []
    loops = subprocess.check_output(["losetup", "-l", "-n", "-O", "BACK-FILE"])
    assert str(examples) not in loops.decode()
