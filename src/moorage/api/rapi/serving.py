# SPDX-License-Identifier: BSD-2-Clause
"""The door on the network: HTTPS, a certificate that may change, and who lingers."""

import asyncio
import logging
import ssl
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeAlias

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.log import server_logger
from cryptography import x509

from moorage.errors import Failed
from moorage.node.doors import doorkeeper
from moorage.node.doors.listening import listen

from .application import Door, application
from .limits import Gate

_KEPT = 75.0
"""Seconds that a connection lasts on which nothing is asked."""
_FAREWELL = 10.0
"""Seconds that requests under way get when the door ends."""
_LOOK = 1.0
_TOLD = 200
"""Characters of what is told of a request that is none."""
Connection: TypeAlias = web.RequestHandler


class _Strangers(logging.Filter):
    """Tells of who speaks no HTTP in a line: it is no defect, and has no trace."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return true; forget the trace of such a record."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError | web.RequestPayloadError):
            told = " ".join(str(error).split())[:_TOLD]
            record.msg, record.args = "%s: %a", (record.getMessage(), told)
            record.exc_info = None
            record.levelno, record.levelname = logging.INFO, "INFO"
        return True


_STRANGERS = _Strangers()


class Certificate(ssl.SSLContext):
    """A context with a key and its certificates in a file, which may change.

    Parameters
    ----------
    path
        PEM: the key, its certificate, and those of who signed it.

    Attributes
    ----------
    end
        When the certificate is over, in seconds since the epoch.

    Raises
    ------
    Failed
        If the file cannot be read.
    """

    def __new__(cls, _path: Path) -> Self:  # noqa: D102 - as any other
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._stamp()
        self._now, self.end = self._read()

    def look(self) -> bool:
        """Read the file if it changed; connections to come see it.

        What cannot be read changes nothing: it may be half written.
        """
        try:
            seen = self._stamp()
            if seen == self._seen:
                return False
            self._now, self.end = self._read()
        except Failed:
            return False
        self._seen = seen
        return True

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:  # noqa: ANN401
        """Begin a connection, with the key of this moment."""
        return self._now.wrap_bio(*args, **kwargs)

    def _stamp(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
        except OSError as error:
            raise self._failed(error) from error
        return found.st_mtime_ns, found.st_ino

    def _read(self) -> tuple[ssl.SSLContext, float]:
        """Return a context with what is in the file, and when that is over."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self._path)
            found = x509.load_pem_x509_certificates(self._path.read_bytes())
        except (OSError, ssl.SSLError) as error:
            raise self._failed(error) from error
        return context, found[0].not_valid_after_utc.timestamp()

    def _failed(self, error: OSError) -> Failed:
        told = error.strerror or error
        return Failed(
            f"{self._path} has no key with its certificate: {told}",
            hint="moorage rapi certificate",
        )


class Lingering:
    """Hangs up on connections that are too many, or never ask for anything."""

    def __init__(self, gate: Gate, clock: Callable[[], float]) -> None:
        self._gate = gate
        self._clock = clock
        self._since: dict[Connection, float] = {}

    def look(self, connections: list[Connection]) -> None:
        """Hang up on who must go: of those that are too many, the last to come."""
        now, limits = self._clock(), self._gate.limits
        self._since = {one: self._since.get(one, now) for one in connections}
        self._gate.heard.intersection_update(connections)
        places = Counter[str]()
        for one, since in sorted(self._since.items(), key=lambda item: item[1]):
            peer = _peer(one)
            places[peer] += 1
            crowded = places[peer] > limits.connections // 2
            crowded |= places.total() > limits.connections
            silent = one not in self._gate.heard and now - since > limits.arrival
            if crowded or silent:
                one.force_close()


def _peer(connection: Connection) -> str:
    transport = connection.transport
    name = transport.get_extra_info("peername") if transport else None
    return str(name[0]) if name else ""


async def serve(
    door: Door, address: str, port: int, certificate: Certificate
) -> web.AppRunner:
    """Serve; clean the returned runner up to end it.

    Raises
    ------
    Failed
        If the port cannot be had.
    """
    server_logger.addFilter(_STRANGERS)
    runner = web.AppRunner(
        application(door),
        access_log=None,
        auto_decompress=False,
        keepalive_timeout=_KEPT,
        shutdown_timeout=_FAREWELL,
    )
    await runner.setup()
    door.gate.certificate_end = certificate.end
    strangers = doorkeeper.Limits()
    await listen(runner, address, port, certificate, strangers)
    return runner


async def look_after(
    runner: web.AppRunner, gate: Gate, certificate: Certificate
) -> None:
    """Hang up on who lingers, and read the certificate anew, as long as it serves."""
    lingering = Lingering(gate, time.monotonic)
    while runner.server:
        lingering.look(runner.server.connections)
        if certificate.look():
            gate.certificate_end = certificate.end
        await asyncio.sleep(_LOOK)
