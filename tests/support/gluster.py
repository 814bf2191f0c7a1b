# SPDX-License-Identifier: BSD-2-Clause
"""Gluster volumes of one brick each, on one address of this machine.

They start in seconds, beside any other Gluster on the machine, and are gone without a
trace when they are closed. It needs root and Debian's package glusterfs-server.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from moorage.errors import Failed
from moorage.testing.foreign import Foreign, run, until

VOLUME = "gv0"
_SETTINGS = """\
volume management
    type mgmt/glusterd
    option working-directory {home}/state
    option run-directory {home}/run
    option logging-directory {home}/log
    option glusterd-sockfile {home}/socket
    option transport-type socket
    option transport.socket.bind-address {address}
    option transport.socket.listen-port 24007
    option transport.address-family inet
    option ping-timeout 0
    option event-threads 1
    option base-port 49152
    option max-port 60999
end-volume
"""


class Gluster(Foreign):
    """A server with the volume ``gv0``; a context manager.

    Parameters
    ----------
    address
        Where its daemon listens, at port 24007.

    Attributes
    ----------
    files
        What is in that volume, as the machine sees it.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._home = Path(tempfile.mkdtemp(prefix="gluster-"))
        self.files = self._home / "bricks" / VOLUME
        self._daemon: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End it; its data are gone."""
        for brick in self._home.glob("bricks/*"):
            with suppress(Failed):
                self.ask("volume", "stop", brick.name, "force")
        if self._daemon:
            self._daemon.kill()
            self._daemon.wait()
        for note in self._home.glob("run/**/*.pid"):
            with suppress(ValueError, ProcessLookupError):
                os.kill(int(note.read_text()), signal.SIGKILL)
        shutil.rmtree(self._home)

    def ask(self, *words: str) -> str:
        """Run Gluster's command line; return what it prints."""
        socket = f"--glusterd-sock={self._home}/socket"
        return run("gluster", socket, "--mode=script", *words)

    def add(self, volume: str) -> Path:
        """Make a volume and start it; return what is in it, as the machine sees it."""
        brick = self._home / "bricks" / volume
        brick.mkdir(parents=True)
        self.ask("volume", "create", volume, f"{self.address}:{brick}", "force")
        self.ask("volume", "start", volume)
        return brick

    def _start(self) -> None:
        for name in ("state", "run", "log"):
            (self._home / name).mkdir()
        settings = self._home / "glusterd.vol"
        settings.write_text(_SETTINGS.format(home=self._home, address=self.address))
        own = (f"--log-file={self._home}/log/daemon", f"--pid-file={self._home}/pid")
        argv = ("glusterd", "--no-daemon", f"--volfile={settings}", *own)
        null = subprocess.DEVNULL
        self._daemon = subprocess.Popen(argv, stdin=null, stdout=null, stderr=null)
        until(self._answers, "Gluster does not answer")
        self.add(VOLUME)

    def _answers(self) -> bool:
        try:
            return bool(self.ask("pool", "list"))
        except Failed:
            return False
