# SPDX-License-Identifier: BSD-2-Clause
"""A real etcd of three members, on loopback ports of its own."""

import base64
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from support.ports import free_port

PROGRAM = shutil.which("etcd")
_UP = 60.0
"""Seconds that the members get to agree on a leader."""


class Members:
    """The members; each is a process that may be killed, stopped and started again."""

    def __init__(self, directory: Path, *options: str, size: int = 3) -> None:
        self.directory = directory
        self.options = options
        self.clients = [f"http://127.0.0.1:{free_port()}" for _ in range(size)]
        self._peers = [f"http://127.0.0.1:{free_port()}" for _ in range(size)]
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, number: int) -> None:
        """Start a member."""
        cluster = ",".join(f"m{i}={url}" for i, url in enumerate(self._peers))
        client, peer = self.clients[number], self._peers[number]
        command = [
            *(PROGRAM or "etcd", "--name", f"m{number}"),
            *("--data-dir", str(self.directory / f"m{number}")),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", cluster, "--log-level", "error", *self.options),
        ]
        with (self.directory / f"m{number}.log").open("ab") as log:
            self.processes[number] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def signal(self, number: int, what: signal.Signals) -> None:
        """Send a signal to a member; wait for the end of one that is killed."""
        process = self.processes[number]
        process.send_signal(what)
        if what == signal.SIGKILL:
            process.wait()

    def leader(self) -> int | None:
        """Return which member leads the others; None if nobody knows."""
        for number, url in enumerate(self.clients):
            with suppress(OSError, ValueError):
                found = ask(url, "maintenance/status", {}, timeout=1.0)
                if found.get("leader", "0") == found["header"]["member_id"]:
                    return number
        return None

    def keys(self) -> list[bytes]:
        """Return all keys that there are."""
        words = {"key": "AA==", "range_end": "AA==", "keys_only": True}
        found = ask(self.clients[0], "kv/range", words)
        return [base64.b64decode(one["key"]) for one in found.get("kvs", ())]

    def wait(self) -> None:
        """Wait until the members take writes."""
        until = time.monotonic() + _UP
        while time.monotonic() < until:
            with suppress(OSError, ValueError):
                for url in self.clients:
                    ask(url, "kv/put", {"key": "dXA=", "value": "dXA="}, timeout=2.0)
                ask(self.clients[0], "kv/deleterange", {"key": "dXA="}, timeout=2.0)
                return
            time.sleep(0.05)
        raise AssertionError(f"etcd does not come up in {self.directory}")

    def close(self) -> None:
        """End all."""
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()


def ask(url: str, path: str, body: object, timeout: float = 5.0) -> dict:
    """Return what a member answers."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{url}/v3/{path}", data)  # noqa: S310 - http
    with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
        return json.load(answer)


@contextmanager
def members(*options: str, size: int = 3) -> Iterator[Members]:
    """Start members that work; end them, and remove what they wrote."""
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    with TemporaryDirectory(dir=where, prefix="moorage-etcd-") as directory:
        made = Members(Path(directory), *options, size=size)
        try:
            for number in range(size):
                made.start(number)
            made.wait()
            yield made
        finally:
            made.close()
