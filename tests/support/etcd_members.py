# SPDX-License-Identifier: BSD-2-Clause
"""A real etcd of three members, on loopback ports of its own."""

import base64
import json
import os
import shutil
import signal
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from support.ports import free_port

PROGRAM = shutil.which("etcd")
KEYS = ("ca", "member", "client", "key")
"""Files of keys, where there are any."""
_UP = 60.0
"""Seconds that the members get to agree on a leader."""


class Members:
    """The members; each is a process that may be killed, stopped and started again."""

    def __init__(self, directory: Path, size: int, *, tls: bool) -> None:
        self.directory = directory
        self.options: list[str] = []
        self.context: ssl.SSLContext | None = None
        if tls:
            self._secure()
        scheme = "https" if tls else "http"
        self.clients = [f"{scheme}://127.0.0.1:{free_port()}" for _ in range(size)]
        self._peers = [f"http://127.0.0.1:{free_port()}" for _ in range(size)]
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def _secure(self) -> None:
        draw_keys(self.directory)
        ca, member, _, key = (self.directory / f"{one}.pem" for one in KEYS)
        self.options = [
            *("--client-cert-auth", f"--trusted-ca-file={ca}"),
            *(f"--cert-file={member}", f"--key-file={key}"),
        ]
        self.context = ssl.create_default_context(cafile=str(ca))
        self.context.load_cert_chain(member, key)

    def ask(self, number: int, path: str, body: object, timeout: float = 5.0) -> dict:
        """Return what a member answers."""
        return ask(self.clients[number], path, body, timeout, self.context)

    def start(self, number: int, before: Sequence[str] = ()) -> None:
        """Start a member, with some words `before` its command."""
        cluster = ",".join(f"m{i}={url}" for i, url in enumerate(self._peers))
        client, peer = self.clients[number], self._peers[number]
        command = [
            *(*before, PROGRAM or "etcd", "--name", f"m{number}"),
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
        for number in range(len(self.clients)):
            with suppress(OSError, ValueError):
                found = self.ask(number, "maintenance/status", {}, timeout=1.0)
                if found.get("leader", "0") == found["header"]["member_id"]:
                    return number
        return None

    def keys(self) -> list[bytes]:
        """Return all keys that there are."""
        words = {"key": "AA==", "range_end": "AA==", "keys_only": True}
        found = self.ask(0, "kv/range", words)
        return [base64.b64decode(one["key"]) for one in found.get("kvs", ())]

    def wait(self) -> None:
        """Wait until the members take writes."""
        until = time.monotonic() + _UP
        while time.monotonic() < until:
            with suppress(OSError, ValueError):
                for number in range(len(self.clients)):
                    self.ask(number, "kv/put", {"key": "dXA=", "value": "dXA="}, 2.0)
                self.ask(0, "kv/deleterange", {"key": "dXA="}, 2.0)
                return
            time.sleep(0.05)
        logs = sorted(self.directory.glob("m*.log"))
        said = [f"{one.name}: {one.read_text(errors='replace')[-500:]}" for one in logs]
        raise AssertionError("\n".join(("etcd does not come up", *said)))

    def close(self) -> None:
        """End all."""
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()


def ask(
    url: str,
    path: str,
    body: object,
    timeout: float = 5.0,
    context: ssl.SSLContext | None = None,
) -> dict:
    """Return what a member answers."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{url}/v3/{path}", data)  # noqa: S310 - http
    with urllib.request.urlopen(request, timeout=timeout, context=context) as answer:  # noqa: S310
        return json.load(answer)


def draw_keys(directory: Path) -> None:
    """Write an authority, and certificates that it signed for 127.0.0.1."""
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca = _signed("ca", ca_key, ca_key, authority=True)
    member = _signed("member", key, ca_key, authority=False)
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    pkcs8 = serialization.PrivateFormat.PKCS8
    # With a name of its own, the gateway would refuse it where passwords are asked for.
    client = _signed("", key, ca_key, authority=False)
    written = (
        ca.public_bytes(pem),
        member.public_bytes(pem),
        client.public_bytes(pem),
        key.private_bytes(pem, pkcs8, plain),
    )
    for name, data in zip(KEYS, written, strict=True):
        (directory / f"{name}.pem").write_bytes(data)


def _signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    by: ec.EllipticCurvePrivateKey,
    *,
    authority: bool,
) -> x509.Certificate:
    now = datetime.now(UTC)
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []
    here = x509.IPAddress(ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(subject))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), True)
        .add_extension(x509.SubjectAlternativeName([here]), False)
    )
    return made.sign(by, hashes.SHA256())


@contextmanager
def members(
    size: int = 3, *, tls: bool = False, options: tuple[str, ...] = ()
) -> Iterator[Members]:
    """Start members that work; end them, and remove what they wrote."""
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    with TemporaryDirectory(dir=where, prefix="moorage-etcd-") as directory:
        made = Members(Path(directory), size, tls=tls)
        made.options += options
        try:
            for number in range(size):
                made.start(number)
            made.wait()
            yield made
        finally:
            made.close()
