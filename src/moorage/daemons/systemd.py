# SPDX-License-Identifier: BSD-2-Clause
"""systemd: what a daemon tells it, and the master's unit.

A unit of ``Type=notify`` is up when its daemon says so, and with ``WatchdogSec`` it
must go on saying that it lives. A line a datagram, to the socket that a variable names.
"""

import asyncio
import contextlib
import os
import socket
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from moorage.directories import MASTER_DIR
from moorage.errors import Failed

from .paths import MasterPlaces

MASTER_UNIT = "moorage-master.service"
WATCHER_TIMER = "moorage-watcher.timer"
LOOK = f"journalctl -u {MASTER_UNIT} -n 20"
"""What to type when it does not come up."""
_UNITS = (Path("/etc/systemd/system"), Path("/lib/systemd/system"))
_RUNS = Path("/run/systemd/system")


def tell(line: str, environ: Mapping[str, str] = os.environ) -> None:
    """Tell systemd something, as ``READY=1``; nobody else listens."""
    place = environ.get("NOTIFY_SOCKET", "")
    if not place:
        return
    with (
        contextlib.suppress(OSError),  # a systemd that is gone is no fault of ours
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door,
    ):
        door.sendto(line.encode(), place.replace("@", "\0", 1))


class Signs:
    """A daemon's signs of life, from its event loop: one that stands still gives none.

    Parameters
    ----------
    environ
        Says who listens, and how often.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._given: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Say that the daemon is up, and from now on that it lives; once is enough."""
        if self._given is None:
            tell("READY=1", self._environ)
            self._given = asyncio.create_task(self._give())

    def end(self) -> None:
        """Say that the daemon is about to end."""
        tell("STOPPING=1", self._environ)
        if self._given:
            self._given.cancel()

    async def _give(self) -> None:
        pause = _pause(self._environ)
        while pause:
            tell("WATCHDOG=1", self._environ)
            await asyncio.sleep(pause)


def _pause(environ: Mapping[str, str]) -> float:
    """Return the seconds between two signs of life; 0 where nobody wants any."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    # A third: one that comes late is not the last.
    return int(environ.get("WATCHDOG_USEC", "0")) / 3e6


def has_master(places: MasterPlaces) -> bool:
    """Whether systemd starts the master of `places`: the packages are installed."""
    units = (folder / MASTER_UNIT for folder in _UNITS)
    return (
        places.root == Path(MASTER_DIR)
        and _RUNS.is_dir()
        and any(map(Path.exists, units))
    )


def has_watcher(places: MasterPlaces, units: Iterable[Path] = _UNITS) -> bool:
    """Whether systemd runs the watcher of `places`: nobody has masked its timer."""
    if places.root != Path(MASTER_DIR) or not _RUNS.is_dir():
        return False
    return _is_there(units, WATCHER_TIMER)


def _is_there(units: Iterable[Path], name: str) -> bool:
    """Whether there is a unit; what an administrator masked leads to no file."""
    found = next((one / name for one in units if (one / name).exists()), None)
    return found is not None and found.is_file()


def start_master() -> None:
    """Start the master's unit, whatever came of it before.

    Raises
    ------
    Failed
        If it does not come up.
    """
    _run("reset-failed")
    _run("start")


def stop_master() -> None:
    """Stop the master's unit as planned.

    Raises
    ------
    Failed
        If it does not end.
    """
    _run("stop")


def _run(verb: str) -> None:
    done = subprocess.run(
        ["systemctl", verb, MASTER_UNIT], capture_output=True, text=True, check=False
    )
    if done.returncode and verb != "reset-failed":
        said = done.stderr.strip().splitlines()[:1]
        raise Failed(
            f"systemctl {verb} {MASTER_UNIT} failed: {' '.join(said)}",
            hint=LOOK,
        )
