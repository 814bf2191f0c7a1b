# SPDX-License-Identifier: BSD-2-Clause
"""Debian's packages of Ganeti, unpacked: nothing is installed, root is not needed."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

BUILD = Path(__file__).parents[1] / ".build" / "peers"
PYTHON = "/usr/bin/python3"


def unpacked(packages: Sequence[str]) -> Path | None:
    """Return the directory of unpacked packages; None if they cannot be had."""
    place = BUILD / "root"
    if all((BUILD / name).exists() for name in packages):
        return place
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return None
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in packages:
        fetched = subprocess.run(
            ["apt-get", "-qq", "download", name],
            cwd=BUILD,
            capture_output=True,
            check=False,
        )
        if fetched.returncode:
            sys.stderr.write(fetched.stderr.decode(errors="replace"))
            return None
        (package,) = BUILD.glob(f"{name}_*.deb")
        subprocess.run(["dpkg-deb", "-x", package, place], check=True)
        package.rename(BUILD / name)
    return place
