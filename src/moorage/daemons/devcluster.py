# SPDX-License-Identifier: BSD-2-Clause
"""Scratch clusters: master and nodes as processes on one machine, in one directory.

Each node has its own address in 127.0.0.0/8, its own directory and its own certificate.
Several scratch clusters can live side by side: their addresses follow from their
directories.
"""

import contextlib
import hashlib
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

from msgspec import json

from moorage.api.luxi import NOCHANGE, LuxiClient
from moorage.errors import BadInput, Exists, Failed, NotFound
from moorage.hypervisors import HYPERVISORS, KVM, SIMULATED, USUAL
from moorage.jobs.job import FINISHED
from moorage.testing.guest_image import ARGUMENTS

from . import agent, bootstrap, process
from .furnishing import furnish
from .scratch_cluster import Scratch, down, lose_power, read
from .state_directory import claim

__all__ = [
    "PORT",
    "Scratch",
    "down",
    "lose_power",
    "read",
    "start_agent",
    "token",
    "up",
]

PORT = 1811
_SECONDS = 180.0
AT_ONCE = 4
"""Agents that start at the same time."""


def up(
    root: Path, *, nodes: int, hypervisor: str, guest: str = "", bare: bool = False
) -> Scratch:
    """Start a scratch cluster.

    Parameters
    ----------
    guest
        Directory of the tiny guest; needed for ``kvm``.
    bare
        Start the agents alone, waiting to be let in: no cluster yet.

    Raises
    ------
    MoorageError
        If it cannot be started; what was begun is ended.
    """
    scratch = _plan(root.absolute(), nodes, hypervisor, guest)
    claim(scratch.path, "a scratch cluster")
    (scratch.path / "scratch.json").write_bytes(json.encode(scratch))
    try:
        furnish(scratch.path, scratch.guest)
        _start_agents(scratch)
        if not bare:
            _found(scratch)
    except BaseException:
        down(scratch.path)
        raise
    return scratch


def _plan(root: Path, nodes: int, hypervisor: str, guest: str) -> Scratch:
    if hypervisor not in (*HYPERVISORS, SIMULATED):
        known = ", ".join(HYPERVISORS)
        raise BadInput(f"a hypervisor is {known} or {SIMULATED}, not '{hypervisor}'")
    if not 1 <= nodes <= 200:
        raise BadInput(f"a scratch cluster has 1 to 200 nodes, not {nodes}")
    if root.is_dir() and (root / "scratch.json").exists():
        raise Exists(
            f"there is a scratch cluster in {root}", hint=f"moorage down {root}"
        )
    if root.exists() and not root.is_dir():
        raise BadInput(f"{root} is a file, and no directory")
    if root.exists() and any(root.iterdir()):
        raise BadInput(f"{root} is not empty")
    if hypervisor == KVM:
        _check_kvm()
    return Scratch(
        root=str(root),
        nodes=nodes,
        hypervisor=hypervisor,
        network=_network(root),
        guest=guest,
    )


def _check_kvm() -> None:
    for program in ("qemu-system-x86_64", "qemu-storage-daemon"):
        if shutil.which(program) is None:
            raise NotFound(
                f"there is no {program} on this machine",
                hint="apt-get install qemu-system-x86, or --hypervisor sim",
            )


def _network(root: Path) -> str:
    """Return three bytes of 127.0.0.0/8 where nobody listens yet."""
    for attempt in range(20):
        digest = hashlib.sha256(f"{root}{attempt}".encode()).digest()
        network = f"127.{64 + digest[0] % 128}.{digest[1]}"
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((f"{network}.1", PORT))
            return network
    raise Failed(f"no free address for port {PORT} was found in 127.0.0.0/8")


def start_agent(scratch: Scratch, name: str) -> int:
    """Start a node's agent; return its pid when it waits or serves.

    One that runs is left alone.

    Raises
    ------
    Failed
        If it does not come up; the sentence ends with its last words.
    """
    known = process.running(scratch.node(name).pid, process.WORD)
    if known:
        return known
    pid = _begin_agent(scratch, name)
    _settle(scratch, name, pid)
    return pid


def _start_agents(scratch: Scratch) -> None:
    """Start the agents of all nodes, some at once: each mostly loads its modules."""
    names = list(scratch.names)
    for at in range(0, len(names), AT_ONCE):
        some = names[at : at + AT_ONCE]
        for name, pid in [(name, _begin_agent(scratch, name)) for name in some]:
            _settle(scratch, name, pid)


def _begin_agent(scratch: Scratch, name: str) -> int:
    """Start a node's agent; return its pid at once."""
    places = scratch.node(name)
    if not places.settings.exists():
        settings = agent.Settings(
            address=scratch.address(name),
            port=PORT,
            hypervisor=scratch.hypervisor,
            extstorage_path=(f"{scratch.root}/extstorage",),
            os_path=(f"{scratch.root}/os",),
            file_storage_paths=f"{scratch.root}/file-storage-paths",
            hooks_dir=f"{scratch.root}/hooks/{name}",
            scripts_dir=f"{scratch.root}/scripts/{name}",
            ssconf_dir=f"{scratch.root}/ssconf/{name}",
            iallocator_path=(f"{scratch.root}/iallocators",),
            export_dir=f"{scratch.root}/export/{name}",
            ganeti_run=f"{scratch.root}/ganeti/{name}",
            san=f"{scratch.root}/san" if scratch.hypervisor == SIMULATED else "",
        )
        agent.write_settings(places, settings)
    for sign in (places.token, places.serving):
        sign.unlink(missing_ok=True)
    return process.spawn(["agent", str(places.root)], places.log, places.pid)


def _settle(scratch: Scratch, name: str, pid: int) -> None:
    """Wait until a node's agent waits or serves; raise `Failed` if it does not."""
    places = scratch.node(name)

    def settled() -> bool:
        return (
            places.token.exists() or places.serving.exists() or not process.alive(pid)
        )

    if not process.wait_until(settled, _SECONDS) or not process.alive(pid):
        words = places.log.read_text(errors="replace").splitlines()[-5:]
        raise process.not_up(f"the agent of {name}", _SECONDS, words)


def _found(scratch: Scratch) -> None:
    """Make the cluster and let all nodes in."""
    first, *others = scratch.names
    with _found_by(scratch):
        bootstrap.init(
            "scratch",
            settings=cluster_settings(scratch) | {"node_name": first},
            token=token(scratch, first),
        )
    for name in others:
        told = {"node_name": name, "token": token(scratch, name)}
        _run(scratch, {"OP_ID": "OP_NODE_ADD", **told})
    if not process.wait_until(lambda: _led(scratch), _SECONDS):
        raise Failed("the candidates get no keys to lead with")


@contextlib.contextmanager
def _found_by(scratch: Scratch) -> Iterator[None]:
    """Let what is done here, and begun, find this cluster, and nothing after."""
    before = dict(os.environ)
    os.environ.update(scratch.environment())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _led(scratch: Scratch) -> bool:
    """Whether each candidate has a key to lead with: the jobs for that have ended.

    So the number of the next job does not depend on when it is submitted.
    """
    with LuxiClient(str(scratch.master.root / "luxi.sock")) as luxi:
        _, nodes = luxi.query("node", ["name", "role"])
        _, jobs = luxi.query("job", ["status"])
    own = [str(name) for (_, name), (_, role) in nodes if role == "C"]
    keys = [scratch.node(name).run / "state" / "keys" / "own.pem" for name in own]
    ended = {status for ((_, status),) in jobs} <= FINISHED
    return ended and all(one.exists() for one in keys)


def cluster_settings(scratch: Scratch) -> dict[str, object]:
    """Return the settings that suit a scratch cluster; memory in MiB."""
    hypervisor = USUAL if scratch.hypervisor == SIMULATED else scratch.hypervisor
    below = "" if scratch.hypervisor == SIMULATED else scratch.root
    # Of the tiny guest's kernel, whoever gives it to a guest: QEMU may have to emulate.
    hvparams = {KVM: {"kernel_args": ARGUMENTS}} if scratch.guest else {}
    return {
        "hvparams": hvparams,
        "enabled_hypervisors": [hypervisor],
        "shared_file_storage_dir": f"{below}/shared",
        "file_storage_dir": f"{scratch.root}/local",
        "nicparams": {"link": ""},  # no bridge of the machine's: guests have no cables
        "beparams": {"default": {"minmem": 160, "maxmem": 160, "vcpus": 1}},
    }


def token(scratch: Scratch, name: str) -> str:
    """Return the token of a node that waits to be let in."""
    try:
        return scratch.node(name).token.read_text().strip()
    except FileNotFoundError:
        raise NotFound(f"node {name} does not wait to be let in") from None


def _run(scratch: Scratch, opcode: dict[str, object]) -> None:
    with LuxiClient(str(scratch.master.root / "luxi.sock")) as luxi:
        job = luxi.submit_job([opcode])
        known: list[object] | None = None
        while known is None or known[0] not in FINISHED:
            fields = ("status", "opresult")
            change = luxi.wait_for_job_change(job, fields, (known, None))
            known = known if change == NOCHANGE else change[0]
    if known[0] != "success":
        raise Failed(f"{opcode['OP_ID']} ended as {known[0]}: {known[1]}")
