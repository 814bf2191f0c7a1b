# SPDX-License-Identifier: BSD-2-Clause
"""What may be left of a scratch cluster: its processes and its loop devices."""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from . import process
from .paths import MasterPlaces, NodePlaces

_GUEST = "qemu-system-"
_PROGRAMS = (_GUEST, "qemu-storage-daemon", "python")
"""What may be left of a cluster: guests, storage daemons, master and agents."""


def processes(root: Path, below: str = "") -> Iterator[int]:
    """Yield the processes of a cluster, or of one of its nodes.

    Master and agents hold lock files: the kernel says who they are, whatever they were
    told. The others are known by the paths in their command lines.
    """
    yield from dict.fromkeys((*_holders(root, below), *_told(root, below)))


def _holders(root: Path, below: str) -> Iterator[int]:
    """Yield the processes that hold the lock files of a cluster's daemons."""
    for lock in _locks(root, below):
        with contextlib.suppress(OSError):  # another user's
            pid = process.holder(lock)
            if pid:
                yield pid


def _told(root: Path, below: str) -> Iterator[int]:
    """Yield the processes that were told of a path in a cluster's directory."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            argv = (entry / "cmdline").read_bytes().decode(errors="replace")
            program = Path(argv.split("\0")[0]).name
            if program.startswith(_GUEST):  # it is told no path, and works in its own
                argv += f"\0{(entry / 'cwd').readlink()}"
            ours = program.startswith(_PROGRAMS) and _names(argv, str(root), below)
            if ours and process.alive(int(entry.name)):
                yield int(entry.name)


def _locks(root: Path, below: str) -> Iterator[Path]:
    """Yield the lock files of a cluster's daemons, or of one of its nodes."""
    if below:
        yield NodePlaces(root / below.lstrip("/")).lock
        return
    master = MasterPlaces(root / "master")
    yield from (master.supervisor, master.lock)
    yield from (NodePlaces(one).lock for one in root.glob("*/"))


def _names(argv: str, root: str, below: str) -> bool:
    """Whether a command line names a path in `root`, and in a node's part of it.

    A path may stand in an option of several parts, where QEMU doubles commas. So it
    is looked for as it is, and not among the parts, which its own signs would cut.
    """
    for spelt in {root, root.replace(",", ",,")}:
        paths = re.findall(rf"(?:^|[\0=,:\"]){re.escape(spelt)}(/[^\0\",]*)", argv)
        if any(f"{below}/" in f"{path}/" for path in paths):
            return True
    return False


def free_loops(path: Path) -> None:
    """Detach the loop devices whose files are in the cluster's directory."""
    if shutil.which("losetup") is None:
        return
    ask = ["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"]
    listed = subprocess.run(ask, capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        device, _, file = line.partition(" ")
        if file.strip().startswith(f"{path}/"):
            subprocess.run(["losetup", "--detach", device], check=False)
