# SPDX-License-Identifier: BSD-2-Clause
"""Scratch clouds: two scratch clusters that see the same storage, and a service above.

All of it is in one directory: the clusters in ``a`` and ``b``, the volumes in
``storage``, and in ``service`` what the service keeps. The service is a distribution of
its own: here it is a few programs that are found where ``moorage`` is.
"""

import os
import secrets
import shutil
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, json

from moorage.errors import BadInput, Exists, NotFound

from . import process, scratch_cluster, scratch_note
from .furnishing import add_provider
from .state_directory import claim

CLUSTERS = ("a", "b")
PROVIDER = "named"
DOOR_PORT, WEB_PORT = 5080, 5000
_NOTE = "scratch-cloud.json"
_PROGRAMS = ("snf-manage", "openstack")
_SECONDS = 180.0


class Cloud(Struct, frozen=True, kw_only=True):
    """A scratch cloud, as its directory keeps it.

    Attributes
    ----------
    hypervisor
        That of both clusters: ``kvm`` or ``fake``.
    guest
        Directory of the tiny guest's kernel; empty without ``kvm``.
    """

    root: str
    hypervisor: str
    guest: str = ""

    @property
    def path(self) -> Path:
        """The cloud's directory."""
        return Path(self.root)

    @property
    def service(self) -> Path:
        """Where the service keeps its database, its settings and its logs."""
        return self.path / "service"

    @property
    def settings(self) -> Path:
        """The service's settings."""
        return self.service / "cloud.toml"

    @property
    def storage(self) -> Path:
        """Where the volumes of both clusters are."""
        return self.path / "storage"

    @property
    def clouds_yaml(self) -> Path:
        """The file by which OpenStack's clients find the service."""
        return self.path / "clouds.yaml"

    def cluster(self, name: str) -> scratch_cluster.Scratch:
        """Return one of its clusters, which is up."""
        return scratch_cluster.read(self.path / name)

    def environment(self) -> dict[str, str]:
        """Return the variables by which commands find the service."""
        return {
            "MOORAGE_CLOUD": str(self.settings),
            "OS_CLIENT_CONFIG_FILE": str(self.clouds_yaml),
            "OS_CLOUD": "moorage",
            "PATH": f"{scratch_cluster.programs()}:{os.environ.get('PATH', '')}",
        }


def prepare(root: Path, *, hypervisor: str, guest: str = "") -> Cloud:
    """Make the directory of a scratch cloud; nothing runs in it yet.

    Raises
    ------
    MoorageError
        If there is something already, or a program of the cloud is missing.
    """
    cloud = Cloud(root=str(root.absolute()), hypervisor=hypervisor, guest=guest)
    if cloud.path.is_dir() and (cloud.path / _NOTE).exists():
        raise Exists(
            f"there is a scratch cloud in {root}", hint=f"moorage down {cloud.root}"
        )
    if cloud.path.exists() and not cloud.path.is_dir():
        raise BadInput(f"{root} is a file, and no directory")
    if cloud.path.exists() and any(cloud.path.iterdir()):
        raise BadInput(f"{root} is not empty")
    for program in _PROGRAMS:
        _program(program)
    claim(cloud.path, "a scratch cloud")
    (cloud.path / _NOTE).write_bytes(json.encode(cloud))
    for directory in (cloud.storage, cloud.service):
        directory.mkdir(mode=0o700)
    return cloud


def share_storage(cloud: Cloud) -> None:
    """Let both clusters have the provider, with its volumes in one directory."""
    for name in CLUSTERS:
        add_provider(cloud.path / name, PROVIDER, {"IMAGE_DIR": str(cloud.storage)})


def _program(name: str) -> str:
    """Return where a program of the cloud is: beside this Python's other ones."""
    places = scratch_cluster.programs()
    found = shutil.which(name, path=f"{places}:{os.environ.get('PATH', '')}")
    if found is None:
        raise NotFound(
            f"there is no {name} in {places}, nor in PATH",
            hint="make, in a checkout, installs it",
        )
    return found


def open_door(cloud: Cloud, name: str) -> None:
    """Serve the door of a cluster, which has its settings and its certificate."""
    place = cloud.path / name
    arguments = ["rapi", "run", "--settings", f"{place}/rapi.toml"]
    pid = process.spawn(arguments, place / "rapi.log", place / "rapi.pid")
    where = (cloud.cluster(name).address("node1"), DOOR_PORT)
    _wait(f"the door of cluster {name}", pid, where, place / "rapi.log")


def serve(cloud: Cloud) -> str:
    """Start the worker and the API; return the API's address."""
    host = web_host(cloud)
    web = ["serve", "--bind", f"{host}:{WEB_PORT}"]
    _start(cloud, "worker", [_program("snf-manage"), "worker"])
    pid = _start(cloud, "web", [_program("snf-manage"), *web])
    _wait("the API", pid, (host, WEB_PORT), cloud.service / "web.log")
    return f"http://{host}:{WEB_PORT}"


def web_host(cloud: Cloud) -> str:
    """Return where the API listens: an address of the first cluster's."""
    return cloud.cluster(CLUSTERS[0]).address("node1")


def _start(cloud: Cloud, name: str, argv: list[str]) -> int:
    environ: Mapping[str, str] = {**os.environ, **cloud.environment()}
    log, pid_file = (cloud.service / f"{name}.{end}" for end in ("log", "pid"))
    return process.launch(argv, log, pid_file, environ)


def _wait(what: str, pid: int, where: tuple[str, int], log: Path) -> None:
    """Wait until somebody listens.

    Raises
    ------
    Failed
        If nobody does; the sentence ends with the last words of the log.
    """

    def settled() -> bool:
        return _listens(where) or not process.alive(pid)

    if not process.wait_until(settled, _SECONDS) or not process.alive(pid):
        words = log.read_text(errors="replace").splitlines()[-5:]
        raise process.not_up(what, _SECONDS, words)


def _listens(where: tuple[str, int]) -> bool:
    with suppress(OSError), socket.create_connection(where, 5.0):
        return True
    return False


def secret() -> str:
    """Return a password that nobody has had."""
    return secrets.token_hex(16)


def is_one(root: Path) -> bool:
    """Whether a directory has a scratch cloud."""
    return (root / _NOTE).exists()


def read(root: Path) -> Cloud:
    """Return the scratch cloud of a directory; see :func:`scratch_note.read`."""
    return scratch_note.read(root / _NOTE, Cloud, "cloud")


def shell(cloud: Cloud) -> str:
    """Return the environment as shell commands."""
    return scratch_note.shell(cloud.environment())


def down(root: Path) -> None:
    """End a scratch cloud, whatever of it is up: no process or file of it is left."""
    cloud = read(root)
    for pid_file in sorted(cloud.service.glob("*.pid")):
        pid = _running(cloud, pid_file)
        if pid:
            process.end(pid)
    for name in CLUSTERS:
        if (cloud.path / name / "scratch.json").exists():
            scratch_cluster.down(cloud.path / name)
    shutil.rmtree(cloud.path)


def _running(cloud: Cloud, pid_file: Path) -> int | None:
    """Return the pid in a file, if its process was started with the cloud's settings.

    A number that another program got meanwhile is not taken for ours.
    """
    try:
        pid = int(pid_file.read_text())
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    ours = f"MOORAGE_CLOUD={cloud.settings}".encode()
    return pid if ours in variables and process.alive(pid) else None
