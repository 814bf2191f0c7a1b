# SPDX-License-Identifier: BSD-2-Clause
"""The kernel: Debian's cloud kernel package, fetched and unpacked, never installed."""

import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from moorage.errors import CommandFailed, NotFound

_META = "linux-image-cloud-amd64"
_DEPENDS = re.compile(r"Depends: (linux-image-\S+-cloud-amd64)")


def fetch_kernel(directory: Path) -> Path:
    """Return where the kernel package lies unpacked; fetch it if it is not there.

    Parameters
    ----------
    directory
        Holds the unpacked package as ``kernel/``.

    Raises
    ------
    CommandFailed
        If the package archive gives no answer.
    NotFound
        If it knows no such package.
    """
    root = directory / "kernel"
    if not root.is_dir():
        directory.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=directory, prefix="kernel-") as scratch:
            _unpack(Path(scratch)).rename(root)
    return root


def _unpack(scratch: Path) -> Path:
    listed = _run(["apt-cache", "depends", _META], scratch)
    found = _DEPENDS.search(listed)
    if not found:
        raise NotFound(f"no package provides {_META}", hint="apt-get update")
    # apt's own sandbox user cannot write here, and needs no warning about it
    _run(["apt-get", "-o", "APT::Sandbox::User=root", "download", found[1]], scratch)
    package = next(scratch.glob("*.deb"))
    _run(["dpkg-deb", "-x", package.name, "root"], scratch)
    return scratch / "root"


def _run(argv: list[str], cwd: Path) -> str:
    try:
        done = subprocess.run(
            argv, cwd=cwd, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise NotFound(
            f"{argv[0]} is missing: the guest's kernel is fetched with Debian's apt"
        ) from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise CommandFailed(
            f"{argv[0]} failed while fetching the guest's kernel: {' '.join(said)}",
            hint="apt-get update",
        )
    return done.stdout


def kernel_image(root: Path) -> Path:
    """Return the kernel image of an unpacked package."""
    return next(iter(sorted((root / "boot").glob("vmlinuz-*"))))
