# SPDX-License-Identifier: BSD-2-Clause
# ruff: noqa: T201 - a program that prints
"""Send a cluster of real processes what nobody should send, and see what it costs them.

python tests/soak/run.py --seed 1 --requests 100000

Malformed LUXI requests, hostile names in opcodes, calls of an agent with the master's
certificate and without any, and hostile answers of a node to the master. The daemons'
memory, descriptors and answer times are measured before, meanwhile and after. The exit
status is 1 if a daemon died, grew without bounds, or kept others waiting.
"""

import argparse
import http.client
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostile import Hostile
from rogue import rogue_server

from moorage.api.luxi import LuxiClient
from moorage.api.luxi_messages import END, encode_request
from moorage.daemons import devcluster as scratches
from moorage.daemons import process
from moorage.daemons.devcluster import Scratch
from moorage.errors import MoorageError
from moorage.node.certificates import tls
from moorage.node.certificates.authority import Authority

LONGEST_WAIT = 10.0
"""Seconds that an honest client may have to wait meanwhile; a busy machine is slow."""
GROWTH = 200
"""MiB that a daemon may grow by."""
PEAK = 600
"""MiB that it may grow by meanwhile: a request of 64 MiB is held several times."""
HANDLES = 20
"""Descriptors that may be left over: connections that have not timed out yet."""
LUXI = (
    ("Query", ["node", ["name", "mfree"], ["=", "name", "node1"]]),
    ("Query", ["instance", ["name", "disk.sizes"], None]),
    ("QueryFields", ["disk", ["name"]]),
    ("QueryJobs", [[1, 2], ["id", "status"]]),
    ("WaitForJobChange", [1, ["status"], None, None, 1]),
    ("CancelJob", [1]),
    ("ArchiveJob", [999]),
    ("QueryClusterInfo", []),
    ("QueryConfigValues", [["cluster_name"]]),
    ("SetDrainFlag", ["no"]),
)
OPCODES: tuple[dict[str, Any], ...] = (
    {"OP_ID": "OP_DISK_ADD", "disk_template": "sharedfile", "size": 1, "name": "a"},
    {"OP_ID": "OP_DISK_ATTACH", "disk": "a", "instance_name": "b", "index": 0},
    {"OP_ID": "OP_DISK_RENAME", "disk": "a", "new_name": "b"},
    {"OP_ID": "OP_INSTANCE_SHUTDOWN", "instance_name": "a", "timeout": 1},
    {
        "OP_ID": "OP_INSTANCE_CREATE",
        "instance_name": "a",
        "disk_template": "ext",
        "disks": [{"size": 1, "provider": "p"}],
        "nics": [{"mac": "auto", "link": "x"}],
        "hvparams": {"kernel_path": "/x"},
        "beparams": {"maxmem": 1},
        "osparams": {"a": "b"},
    },
    {"OP_ID": "OP_CLUSTER_SET_PARAMS", "hvparams": {"kvm": {"kernel_args": "x"}}},
    {"OP_ID": "OP_GROUP_ADD", "group_name": "g"},
    {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": "n", "drained": False},
)
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("facts", {"brief": True, "directories": [["file", "/x"]]}),
    ("guest", {"uuid": "u"}),
    ("device", {"path": "/dev/null"}),
    ("providers", {}),
    (
        "disk.attach",
        {"disk": {"uuid": "u", "dev_type": "ext", "logical_id": ["p", "v"]}},
    ),
    ("disk.remove", {"disk": {"uuid": "u", "dev_type": "file", "logical_id": ["p"]}}),
    ("instance.stop", {"uuid": "../u", "name": "n", "hypervisor": "fake"}),
)


ASKING: tuple[dict[str, Any], ...] = (
    {"OP_ID": "OP_CLUSTER_VERIFY"},
    {"OP_ID": "OP_TEST_DELAY", "duration": 0, "on_nodes": ["node3"]},
    {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": "node3", "offline": True},
)
"""Jobs that want to know something of the rogue."""
JOBS = 0.01
"""Of the questions, this part."""


@dataclass
class Measure:
    """What a daemon uses: MiB of memory, now and at most so far, and descriptors."""

    pid: int
    memory: int
    peak: int
    handles: int

    @classmethod
    def of(cls, pid: int) -> "Measure":
        told = Path(f"/proc/{pid}/status").read_text().splitlines()
        words = [line.split() for line in told]
        sizes = {one[0]: int(one[1]) >> 10 for one in words if one[-1] == "kB"}
        handles = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        return cls(pid, sizes["VmRSS:"], sizes["VmHWM:"], handles)


class Soak:
    """One run against one cluster."""

    def __init__(self, scratch: Scratch, seed: int) -> None:
        self.hostile = Hostile(seed)
        self.sent = 0
        self.longest = 0.0
        self._scratch = scratch
        self._socket = str(scratch.master.root / "luxi.sock")

    # -- honest clients -----------------------------------------------------------

    def probe(self) -> float:
        """Return the seconds that an honest client waits for a short answer."""
        begin = time.monotonic()
        with LuxiClient(self._socket, 120) as luxi:
            luxi.query("node", ["name"])
        took = time.monotonic() - begin
        self.longest = max(self.longest, took)
        return took

    def pids(self) -> dict[str, int]:
        found = {"master": _master_pid(self._scratch)}
        for name in self._scratch.names:
            found[name] = int(self._scratch.node(name).pid.read_text())
        return found

    def count(self, number: int, send: Callable[[], None]) -> None:
        """Send so many times; somebody else asks meanwhile."""
        over = threading.Event()

        def ask() -> None:
            while not over.wait(0.05):
                self.probe()

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        try:
            for _ in range(number):
                send()
                self.sent += 1
        finally:
            over.set()
            asking.join()

    # -- LUXI ---------------------------------------------------------------------

    def luxi(self) -> Callable[[], None]:
        link = _Link(self._socket)

        def send() -> None:
            name, args = self.hostile.dice.choice(LUXI)
            if self.hostile.dice.random() < 0.4:
                name, args = self.hostile.word(), self.hostile.value()
            link.ask(
                self.hostile.text(
                    self.hostile.spoilt(
                        {"method": name, "args": args, "version": 3_010_000}
                    )
                )
            )

        return send

    def opcodes(self) -> Callable[[], None]:
        link = _Link(self._socket)

        def send() -> None:
            opcode = self.hostile.spoilt(self.hostile.dice.choice(OPCODES))
            with suppress(UnicodeEncodeError):
                link.ask(encode_request("SubmitJob", [[opcode]])[: -len(END)])

        return send

    # -- an agent -----------------------------------------------------------------

    def calls(self) -> Callable[[], None]:
        """Call an agent with the master's certificate, but never as a later master."""
        authority = Authority(self._scratch.master.keys)
        name = self._scratch.names[-1]
        made = iter(_connections(self._scratch, name, authority.asking()))

        def send() -> None:
            verb, args = self.hostile.dice.choice(CALLS)
            term = self.hostile.dice.choice((0, 1, -1, "x", None, 0.5))
            asked = {"verb": verb, "args": self.hostile.spoilt(args), "term": term}
            if self.hostile.dice.random() < 0.2:
                asked = {"verb": self.hostile.word(), "args": self.hostile.value()}
            body = self.hostile.text(asked)
            with suppress(OSError, http.client.HTTPException):
                link = next(made)
                link.request("POST", "/call", body)
                link.getresponse().read()

        return send

    def strangers(self) -> Callable[[], None]:
        """Knock at an agent without a certificate: in TLS, or with any bytes."""
        name = self._scratch.names[-1]
        address = (self._scratch.address(name), scratches.PORT)
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE

        def send() -> None:
            with suppress(OSError), socket.create_connection(address, 20) as link:
                if self.hostile.dice.random() < 0.5:
                    link.sendall(self.hostile.dice.randbytes(200))
                    return
                with context.wrap_socket(link, server_hostname=name) as secure:
                    secure.sendall(b"POST /call HTTP/1.1\r\n\r\n")
                    secure.settimeout(20)
                    secure.recv(100)

        return send

    # -- a rogue node -------------------------------------------------------------

    def rogue(self) -> Callable[[], None]:
        """Take a node's place with its own key; every question gets a bad answer."""
        name = self._scratch.names[-1]
        places = self._scratch.node(name)
        process.end(int(places.pid.read_text()))
        address = (self._scratch.address(name), scratches.PORT)
        server = rogue_server(address, tls.serving(places.keys), self.hostile)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        link = _Link(self._socket)

        def send() -> None:
            asked = ("Query", ["node", ["name", "mfree", "role"], None])
            if self.hostile.dice.random() < JOBS:
                asked = ("SubmitJob", [[self.hostile.dice.choice(ASKING)]])
            link.ask(encode_request(*asked)[: -len(END)])

        return send


class _Link:
    """A connection to the master's socket that is opened again when it breaks."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._link: socket.socket | None = None

    def ask(self, message: bytes) -> None:
        """Send a message, and wait until something is answered or it hangs up."""
        try:
            if self._link is None:
                self._link = socket.socket(socket.AF_UNIX)
                self._link.settimeout(120)
                self._link.connect(self._path)
            self._link.sendall(message.replace(END, b"") + END)
            data = b"?"
            while data and not data.endswith(END):
                data = self._link.recv(1 << 20)
        except ConnectionError:
            data = b""
        if not data and self._link is not None:  # it hung up
            self._link.close()
            self._link = None


def _connections(
    scratch: Scratch, name: str, context: ssl.SSLContext
) -> Iterator[http.client.HTTPSConnection]:
    """Yield connections to an agent, each for some requests."""
    context.check_hostname = False
    while True:
        link = http.client.HTTPSConnection(
            scratch.address(name), scratches.PORT, timeout=60, context=context
        )
        for _ in range(50):
            yield link
        link.close()


def _master_pid(scratch: Scratch) -> int:
    """Return the master's process: the one that has the store open."""
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if entry.readlink() == scratch.master.store:
                return int(entry.parts[2])
    raise AssertionError("no master has the store open")


def soak(scratch: Scratch, seed: int, requests: int) -> list[str]:
    """Send everything; return what is wrong."""
    run = Soak(scratch, seed)
    run.probe()
    before = {name: Measure.of(pid) for name, pid in run.pids().items()}
    quick = run.probe()
    for share, kind in (
        (0.70, run.luxi),
        (0.15, run.opcodes),
        (0.09, run.calls),
        (0.04, run.strangers),
        (0.02, run.rogue),
    ):
        begin = time.monotonic()
        try:
            run.count(int(requests * share), kind())
        except (OSError, MoorageError) as error:
            return [f"{kind.__name__}, after {run.sent}: {error}"]
        took = time.monotonic() - begin
        print(f"{kind.__name__}: {int(requests * share)} in {took:.0f} s", flush=True)
    faults = list(_grown(before, scratch.names[-1]))
    times = f"{quick:.3f} s before, {run.probe():.3f} after, {run.longest:.2f} at most"
    print(f"answers: {times}")
    if run.longest > LONGEST_WAIT:
        faults.append(f"somebody waited {run.longest:.1f} s")
    return faults


def _grown(before: dict[str, Measure], rogue: str) -> Iterator[str]:
    """Say which daemons died or use much more than before."""
    for name, was in before.items():
        if name == rogue:
            continue
        if not process.alive(was.pid):
            yield f"{name} died"
            continue
        now = Measure.of(was.pid)
        memory = f"{was.memory} -> {now.memory} MiB, {now.peak} at most"
        print(f"{name}: {memory}, {was.handles} -> {now.handles} descriptors")
        if now.memory > was.memory + GROWTH or now.peak > was.memory + PEAK:
            yield f"{name} grew: {memory}"
        if now.handles > was.handles + HANDLES:
            yield f"{name} keeps {now.handles} descriptors, not {was.handles}"


def main() -> int:
    """Run the program; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=100_000)
    args = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="soak-")) / "c"
    scratch = scratches.up(root, nodes=3, hypervisor="fake")
    try:
        faults = soak(scratch, args.seed, args.requests)
    finally:
        scratches.down(root)
        root.parent.rmdir()
    print("\n".join(faults) or f"no fault: {args.requests} requests, seed {args.seed}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
