# SPDX-License-Identifier: BSD-2-Clause
"""Disks that have a URI only, as files of this node, for programs that know no URI.

QEMU's storage daemon reaches the URI and serves it by FUSE: a regular file of the
disk's size. The daemon is noted as a script is, so one that an agent left behind when
it was killed ends with the next agent's start, which takes the dead file away, too.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from moorage import durable
from moorage.errors import Failed
from moorage.storage import Opened
from moorage.storage.uri import local_files, protocol_node, renamed

from .commands import start_daemon, tail_of
from .images import Handed, Images
from .scripts import Note, Scripts

PROGRAM = "qemu-storage-daemon"
_READY, _END = 30.0, 60.0
"""Seconds that a daemon may take to reach the storage, and to write what it holds."""
_LOOK = 0.02
"""Seconds between two looks."""


class Exports:
    """What this node serves as files.

    Parameters
    ----------
    directory
        Where the files are; what an earlier agent left there is taken away.
    scripts
        Where the daemons are noted.
    images
        Opens the files that URIs name.
    """

    def __init__(self, directory: Path, scripts: Scripts, images: Images) -> None:
        durable.make(directory)
        self._images = images
        self._directory = directory
        self._scripts = scripts
        self._numbers = count(1)
        for path in sorted(directory.iterdir()):
            _let_go(path)

    @classmethod
    def where_possible(
        cls, directory: Path, scripts: Scripts, images: Images
    ) -> "Exports | None":
        """Return them; None on a node that has no storage daemon, or may not mount."""
        able = os.geteuid() == 0 and Path("/dev/fuse").exists()
        return (
            cls(directory, scripts, images) if able and shutil.which(PROGRAM) else None
        )

    @asynccontextmanager
    async def served(self, uri: str) -> AsyncIterator[str]:
        """Yield the path of a file that is what `uri` leads to, while the block runs.

        Raises
        ------
        Failed
            If the storage cannot be reached.
        """
        path = self._directory / f"{os.getpid()}-{next(self._numbers)}"
        path.touch(mode=0o600)
        try:
            with (
                self._scripts.noted() as note,
                TemporaryFile() as log,
                ExitStack() as stack,
            ):
                opened = self._images.handed(
                    dict.fromkeys(local_files(uri), Opened.VOLUME)
                )
                # A file server that hangs stops nobody else.
                handed = await asyncio.to_thread(stack.enter_context, opened)
                if handed is None:
                    raise Failed(f"'{uri}' cannot be served: there is no such file")
                words, fds = _words(uri, path, handed), handed.descriptors
                process = await start_daemon(words, fds, log, note)
                try:
                    await _ready(process, uri, _pidfile(path), log)
                    yield str(path)
                finally:
                    await _end(process, note)
        finally:
            await asyncio.to_thread(_let_go, path)
            _pidfile(path).unlink(missing_ok=True)


def _words(uri: str, path: Path, handed: Handed) -> tuple[str, ...]:
    node = renamed(protocol_node(uri), handed.words)
    bottom = {**node, "node-name": "bottom", "read-only": False}
    top = {
        "driver": "raw",
        "node-name": "disk",
        "file": "bottom",
        "read-only": False,
    }
    export = {
        "type": "fuse",
        "id": "file",
        "node-name": "disk",
        "mountpoint": str(path),
        "writable": True,
        "allow-other": "off",
    }
    return (
        PROGRAM,
        *("--blockdev", json.dumps(bottom)),
        *("--blockdev", json.dumps(top)),
        *("--export", json.dumps(export)),
        *("--pidfile", str(_pidfile(path))),
    )


def _pidfile(path: Path) -> Path:
    """Return what the daemon writes when the file is there."""
    return path.with_suffix(".pid")


async def _ready(
    process: asyncio.subprocess.Process, uri: str, pidfile: Path, log: IO[bytes]
) -> None:
    for _ in range(round(_READY / _LOOK)):
        if process.returncode is not None:
            told = "; ".join(tail_of(log)) or f"it ended with {process.returncode}"
            raise Failed(f"'{uri}' cannot be served as a file: {told}", uri=uri)
        if pidfile.exists():
            return
        await asyncio.sleep(_LOOK)
    raise Failed(f"'{uri}' was not reached within {_READY:g} s", uri=uri)


async def _end(process: asyncio.subprocess.Process, note: Note) -> None:
    """End the daemon; what was written is with the storage before it is gone."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), _END)
    finally:
        if process.returncode is None:
            await note.end()


def _let_go(path: Path) -> None:
    """Take a file away, with the dead mount that may be over it."""
    if _is_mounted(path):
        subprocess.run(["umount", "--lazy", str(path)], check=False)
    path.unlink(missing_ok=True)


def _is_mounted(path: Path) -> bool:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return any(line.split()[4] == _escaped(path) for line in lines)


def _escaped(path: Path) -> str:
    """Return a path as the kernel's table of mounts has it."""
    return str(path).translate({32: r"\040", 9: r"\011", 10: r"\012", 92: r"\134"})
