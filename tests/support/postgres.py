# SPDX-License-Identifier: BSD-2-Clause
"""A PostgreSQL server of the tests' own, reached by a socket alone.

It refuses to be root's, and so is nobody's where root runs the tests.
"""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from shutil import chown, rmtree
from tempfile import mkdtemp

from psycopg import Connection, OperationalError, connect

from moorage.daemons import process

DEBIAN = Path("/usr/lib/postgresql")
NOBODY = ("nobody", "nogroup")
USER = "moorage"
PATIENCE = 60.0
"""Seconds that it may take to start or to end."""
FASTER = (
    "fsync=off",
    "full_page_writes=off",
    "autovacuum=off",
    "shared_buffers=16MB",
    "dynamic_shared_memory_type=mmap",
)
"""What is written need not outlive the machine. A server that is killed keeps it."""


def programs() -> Path | None:
    """Return the directory of the newest server's programs; None if there is none."""
    known = [one.parent for one in DEBIAN.glob("*/bin/initdb")]
    return max(known, key=lambda one: int(one.parent.name), default=None)


class Postgres:
    """A server, which is started; `home` is its directory, in memory if possible."""

    def __init__(self, programs: Path) -> None:
        memory = "/dev/shm"
        where = memory if os.access(memory, os.W_OK) else None
        self.home = Path(mkdtemp(prefix="postgres-", dir=where))
        self._programs = programs
        self._as: Sequence[str] = ()
        if os.geteuid() == 0:
            chown(self.home, *NOBODY)
            user, group = NOBODY
            self._as = ("setpriv", f"--reuid={user}", f"--regid={group}")
            self._as = (*self._as, "--clear-groups")
        self._run("initdb", "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()

    def _line(self, program: str, *words: str) -> Sequence[str | Path]:
        return (*self._as, self._programs / program, "-D", self.home / "data", *words)

    def _run(self, program: str, *words: str) -> None:
        told = subprocess.run(
            self._line(program, *words),
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == 0, told.stdout + told.stderr

    def start(self) -> None:
        """Start it, and wait until it serves."""
        settings = ("listen_addresses=", f"unix_socket_directories={self.home}")
        given = [word for one in (*settings, *FASTER) for word in ("-c", one)]
        log = self.home / "log"
        with log.open("a") as output:
            self._server = subprocess.Popen(
                self._line("postgres", *given),
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        assert process.wait_until(self._serves, PATIENCE), log.read_text()[-2000:]

    def _serves(self) -> bool:
        try:
            self._administrator().close()
        except OperationalError:
            return False
        return True

    def kill(self) -> None:
        """Kill it with all that it does, as a machine that loses its power does."""
        pid = self._server.pid
        os.kill(pid, signal.SIGSTOP)  # it makes no more of them
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for one in (pid, *map(int, children)):
            os.kill(one, signal.SIGKILL)
        self._server.wait()
        for one in map(int, children):
            assert process.wait_until(lambda one=one: not process.alive(one), PATIENCE)

    def stop(self) -> None:
        """End it at once, and keep its data."""
        self._server.send_signal(signal.SIGINT)
        self._server.wait(PATIENCE)

    def close(self) -> None:
        """End it; nothing stays behind."""
        self.stop()
        rmtree(self.home, ignore_errors=True)

    def make(self, database: str, like: str = "template0") -> None:
        """Make a database, as a copy of another one."""
        with self._administrator() as link:
            link.execute(f"CREATE DATABASE {database} TEMPLATE {like}")

    def hang_up(self, database: str) -> None:
        """Kill all connections to a database."""
        known = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        with self._administrator() as link:
            link.execute(f"{known} WHERE datname = %s", [database])

    def _administrator(self) -> Connection:
        return connect(self.url("postgres"), autocommit=True)

    def url(self, database: str) -> str:
        """Return how a database is named in the settings of a cloud."""
        return f"postgresql://{USER}@/{database}?host={self.home}"
