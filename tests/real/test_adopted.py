# SPDX-License-Identifier: BSD-2-Clause
"""Data that somebody adopted is not written over: real bytes, and a real OS script.

The nodes' agents are real; a loop device plays the LUN, and no guest runs.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

BELOW = Path("/dev/disk/moorage-adopted")
PRECIOUS = b"PRECIOUS CUSTOMER DATA"
CREATE = (
    '#!/bin/sh\nprintf "FRESHLY INSTALLED OS" | dd conv=notrunc "of=$DISK_0_PATH"\n'
)


@pytest.fixture
def hands(quay: Any) -> Any:
    """Return somebody who types at a cluster that has the OS ``wiper``."""
    wiper = quay.path / "os" / "wiper"
    wiper.mkdir(parents=True)
    for script in ("create", "import", "export", "rename", "verify"):
        (wiper / script).write_text(CREATE if script == "create" else "#!/bin/sh\n")
        (wiper / script).chmod(0o755)
    (wiper / "ganeti_api_version").write_text("20\n")
    (wiper / "parameters.list").write_text("")
    return quay


@pytest.fixture
def lun(tmp_path: Path) -> Iterator[Path]:
    """Return a device with data on it, and a name below /dev/disk."""
    image = tmp_path / "lun"
    image.write_bytes(PRECIOUS + bytes((8 << 20) - len(PRECIOUS)))
    ask = ["losetup", "--find", "--show", image]
    device = subprocess.check_output(ask, text=True).strip()
    BELOW.mkdir(parents=True, exist_ok=True)
    path = BELOW / f"lun-{os.getpid()}"
    path.symlink_to(device)
    yield path
    path.unlink()
    subprocess.run(["losetup", "--detach", device], check=True)
    if not list(BELOW.iterdir()):
        BELOW.rmdir()


def begins(lun: Path) -> bytes:
    """Return the first bytes of a device, as the machine reads them."""
    subprocess.run(["blockdev", "--flushbufs", lun], check=True)
    with lun.open("rb") as file:
        return file.read(len(PRECIOUS))


@pytest.mark.requirement("S0-19")
def test_the_data_of_an_adopted_device_stays(hands: Any, lun: Path) -> None:
    """Part of the row: adopted data is used as it is, whatever OS is named."""
    add = f"gnt-instance add -t blockdev --disk 0:adopt={lun} -o wiper --no-nics"
    hands.type(f"{add} -n node1 web")
    assert begins(lun) == PRECIOUS
    (row,) = hands.ask("gnt-instance list -o os,status web")
    assert row == {"os": "wiper", "status": "running"}
    hands.type("gnt-instance remove -f --shutdown-timeout 0 web")
    assert begins(lun) == PRECIOUS
    hands.type(f"{add} --install-adopted -n node1 web")
    assert begins(lun).startswith(b"FRESHLY INSTALLED OS")
    hands.type("gnt-instance remove -f --shutdown-timeout 0 web")
