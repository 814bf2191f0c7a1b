# SPDX-License-Identifier: BSD-2-Clause
"""The door as a process of its own, in front of a master's socket for doors."""

import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

from moorage.daemons import process
from rapi_door import USERS, certificate
from support.ports import free_port

LOGIN = f"Basic {b64encode(b'top:secret').decode()}"


def trusting() -> ssl.SSLContext:
    """Return a context that looks at no certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class RapiProcess:
    """A door that can be killed, and started again at the same port.

    Parameters
    ----------
    directory
        Its own; it is made.
    limits
        Lines of TOML.
    """

    def __init__(self, directory: Path, socket: Path, limits: str = "") -> None:
        directory.mkdir(exist_ok=True)
        self.port = free_port()
        users = directory / "users"
        users.write_text(USERS)
        users.chmod(0o600)
        self._log = directory / "log"
        self._settings = directory / "rapi.toml"
        self._settings.write_text(
            f'address = "127.0.0.1"\nport = {self.port}\nsocket = "{socket}"\n'
            f'certificate = "{certificate(directory)}"\nusers = "{users}"\n'
            f'tokens = "{directory}/tokens"\n[limits]\n{limits}'
        )
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        argv = [sys.executable, "-m", "moorage.cli.moorage", "rapi", "run"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*argv, "--settings", str(self._settings)], stdout=log, stderr=log
            )
        assert process.wait_until(self._listens, 60), self._log.read_text()

    def _listens(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End it, and wait until it has."""
        if self.alive:
            os.kill(self.pid, number)
        self._process.wait(30)

    def get(self, path: str) -> Any:
        """Return the answer's JSON."""
        link = http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=trusting(), timeout=60
        )
        try:
            link.request("GET", path, headers={"Authorization": LOGIN})
            told = link.getresponse()
            body = told.read()
            assert told.status == 200, body
            return json.loads(body)
        finally:
            link.close()
