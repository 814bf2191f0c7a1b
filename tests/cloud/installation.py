# SPDX-License-Identifier: BSD-2-Clause
"""A cloud of processes: web, workers and clusters with their doors. Each can be killed.

All of them are started from here, and end with it.
"""

import http.client
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copytree, rmtree
from tempfile import mkdtemp
from threading import Lock

from site_of_people import Answer
from towns import PROVIDER, SHARE

from moorage.cli.tour.typist import Typist
from moorage.daemons import devcluster, process
from moorage.daemons.devcluster import Scratch
from moorage_cloud.conf import CONF
from moorage_cloud.management.commands import serve
from support.masters import kill as kill_master
from support.ports import free_port

PATIENCE = 180.0
"""Seconds that a process has to come up."""
HANDS = {
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "MOORAGE_DOOR_ROLE": "root",  # the cloud takes over what a storage holds
}


class Nursery:
    """Starts processes of the service that need not load it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        program = Path(__file__).with_name("nursery.py")
        self._process = subprocess.Popen(
            [sys.executable, program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment, "DJANGO_SETTINGS_MODULE": "moorage_cloud.settings"},
            text=True,
        )
        self._lock = Lock()

    def ask(self, **words: object) -> int:
        """Ask for a process by its `words` and `log`, or for the end of a `pid`."""
        assert self._process.stdin
        assert self._process.stdout
        with self._lock:
            print(json.dumps(words), file=self._process.stdin, flush=True)
            return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


class Child:
    """A process from a nursery with its children, in a session of their own."""

    def __init__(self, nursery: Nursery, words: list[str], log: Path) -> None:
        self._nursery, self._words, self._log = nursery, words, log
        self.start()

    def start(self) -> None:
        self._pid = self._nursery.ask(words=self._words, log=str(self._log))

    def kill(self) -> None:
        """Kill it and its children, and wait for its end."""
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        self._nursery.ask(pid=self._pid)


class Process:
    """A process with its children, in a session of their own."""

    def __init__(
        self, argv: list[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._argv, self._log = argv, log
        self.environment = dict(environment or os.environ)
        self.start()

    def start(self) -> None:
        with self._log.open("a") as output:
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.environment,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill it and its children, and wait for its end."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE)


class Cloud:
    """The service: its settings, and the processes that work with one database.

    Parameters
    ----------
    often
        Whether processes will be started often, and are to come from a nursery.
    """

    def __init__(self, directory: Path, database: str, *, often: bool = False) -> None:
        self._directory = directory
        settings = directory / "cloud.toml"
        settings.write_text(
            f'database = "{database}"\nkey_file = "{CONF.key_file}"\n'
            "look_after = 0.5\ntimeout = 5.0\nlease = 2.0\n"
        )
        self.environment = {**os.environ, "MOORAGE_CLOUD": str(settings)}
        self._nursery = Nursery(self.environment) if often else None
        self.port = free_port()
        self._processes: list[Process | Child] = []

    def _started(self, name: str, *words: str) -> Process | Child:
        log = self._directory / f"{name}{len(self._processes)}.log"
        made: Process | Child
        if self._nursery:
            made = Child(self._nursery, [name, *words], log)
        else:
            module = "moorage_cloud.manage" if name == "snf-manage" else name
            argv = [sys.executable, "-m", module, *words]
            made = Process(argv, log, self.environment)
        self._processes.append(made)
        return made

    def worker(self) -> Process | Child:
        """Start a worker."""
        return self._started("snf-manage", "worker")

    def web(self, processes: int = 2) -> Process | Child:
        """Start the web processes, and wait until they answer."""
        bind = f"127.0.0.1:{self.port}"
        if self._nursery:
            told = {"bind": bind, "processes": processes, "threads": 4, "timeout": 60}
            made = self._started("gunicorn", *serve.words(told))
        else:
            words = (f"--bind={bind}", f"--processes={processes}")
            made = self._started("snf-manage", "serve", *words)
        self.await_web()
        return made

    def await_web(self) -> None:
        """Wait until the web processes answer."""
        assert process.wait_until(self.answers, PATIENCE)

    def answers(self) -> bool:
        """Whether somebody answers for it."""
        try:
            return self.ask("GET", "/identity/v3", "").status == 200
        except OSError:
            return False

    def ask(self, method: str, path: str, token: str, body: object = None) -> Answer:
        """Ask for something over HTTP, once.

        Raises
        ------
        OSError
            If no whole answer came; the last words of the services are with it.
        """
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        given = {"X-Auth-Token": token, "Content-Type": "application/json"}
        versions = {"OpenStack-API-Version": "volume 3.71, compute 2.60"}
        try:
            data = None if body is None else json.dumps(body)
            link.request(method, path, data, given | versions)
            told = link.getresponse()
            text = told.read()
        except http.client.HTTPException as error:
            raise ConnectionError(f"{error!r}\n{self.last_words()}") from error
        finally:
            link.close()
        found = json.loads(text) if text else None
        return Answer(told.status, found, dict(told.getheaders()))

    def last_words(self) -> str:
        """Return the ends of the services' logs."""
        logs = sorted(self._directory.glob("*.log"))
        return "\n".join(f"{one.name}: {one.read_text()[-2000:]}" for one in logs)

    def close(self) -> None:
        for one in self._processes:
            one.kill()
        if self._nursery:
            self._nursery.close()


class Town:
    """A scratch cluster of one node, whose guests are fakes, with its door."""

    def __init__(self, name: str, directory: Path, images: Path) -> None:
        self.name = name
        at = directory / name
        Typist(HANDS, io.StringIO()).type(
            f"moorage up {at} --nodes 1 --hypervisor fake"
        )
        self.scratch: Scratch = devcluster.read(at)
        scripts = at / "extstorage" / PROVIDER
        copytree(SHARE / "extstorage" / PROVIDER, scripts)
        (scripts / "etc" / "settings.sh").write_text(f"IMAGE_DIR={images}\n")
        with (scripts / "attach").open("a") as attach:
            attach.write('echo "fake:file:$image"\n')  # its guests are fakes
        self.hands = Typist(HANDS | self.scratch.environment(), io.StringIO())
        for number in "12":
            self.hands.type(f"gnt-instance add -t diskless snf-{name}{number}")
        self.port = free_port()
        self._open()

    def _open(self) -> None:
        root = self.scratch.master.root
        settings = root / "rapi.toml"
        self.ca = root / "keys/ca.pem"
        settings.write_text(
            f'address = "127.0.0.1"\nport = {self.port}\nsocket = "{root}/door.sock"\n'
            f'certificate = "{root}/rapi.pem"\nusers = "{root}/users"\n'
            f'tokens = "{root}/tokens"\n'
        )
        users = root / "users"
        users.touch(0o600)
        users.write_text("top secret root\n")
        self.hands.type(f"moorage rapi certificate localhost --settings {settings}")
        argv = process.command("rapi", "run", "--settings", str(settings))
        self._door = Process(argv, root / "door.log")
        self.await_door()

    def await_door(self) -> None:
        """Wait until the door is open."""
        assert process.wait_until(self._is_open, PATIENCE)

    def _is_open(self) -> bool:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            link.connect()
        except OSError:
            return False
        link.close()
        return True

    def kill_door(self) -> None:
        self._door.kill()

    def start_door(self) -> None:
        """Start the door again, and wait until it is open."""
        self._door.start()
        self.await_door()

    def kill_master(self) -> None:
        kill_master(self.scratch.master)

    def start_master(self) -> None:
        """Start the master again, and wait until it leads."""
        self.hands.type("moorage master start")

    def close(self) -> None:
        self._door.kill()
        devcluster.down(self.scratch.path)


@contextmanager
def towns() -> Iterator[tuple[dict[str, Town], Path]]:
    """Found two clusters that share storage; yield them, and its directory."""
    directory = Path(mkdtemp(prefix="mrg-"))  # short: there are sockets beneath
    images = directory / "images"
    images.mkdir(mode=0o700)
    made: dict[str, Town] = {}
    try:
        for name in "ab":
            made[name] = Town(name, directory, images)
        yield made, images
    finally:
        for one in made.values():
            one.close()
        rmtree(directory, ignore_errors=True)
