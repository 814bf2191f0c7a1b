# SPDX-License-Identifier: BSD-2-Clause
"""A simulated cluster behind RAPI: master, sockets and HTTPS are real."""

import json
import ssl
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from desk import desk
from moorage.api.luxi_async import AsyncLuxi
from moorage.api.rapi.application import Door
from moorage.api.rapi.events import LISTENER, Hub
from moorage.api.rapi.limits import Gate, Limits
from moorage.api.rapi.route import Route
from moorage.api.rapi.routes import ROUTES
from moorage.api.rapi.serving import Certificate, serve
from moorage.api.rapi.users import Users
from moorage.api.store_health import KnownHealth
from moorage.node.certificates import tls
from moorage.testing.cluster import SimCluster
from moorage.web.serving import WebPages

USERS = """\
# who may come in
root secret write
keeper secret adopt
top secret root
op {cleartext}secret operate
eye {ha1}16363ac93be5c910501e7bb18d87a286 read
guest secret
short
"""


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: Any
    headers: Any = None


class RapiDoor:
    """A door, and a client that speaks plain HTTPS."""

    def __init__(
        self, cluster: SimCluster, directory: Path, port: int, made: Door
    ) -> None:
        self.cluster = cluster
        self.directory = directory
        self.port = port
        self.users = directory / "users"
        self.hub = made.hub
        self.pages = made.pages
        self._gate = made.gate
        self._session: aiohttp.ClientSession

    def forgive(self) -> None:
        """Forget the logins that failed."""
        for counts in (self._gate._of_names, self._gate._of_addresses):
            counts._failed.clear()

    async def ask(
        self, method: str, path: str, body: Any = ..., user: str = "root:secret", **more
    ) -> Answer:
        """Ask for something; `body` is sent as JSON, and so comes most of an answer."""
        headers = dict(more.pop("headers", {}))
        if user:
            headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
        if body is not ...:
            headers.setdefault("Content-Type", "application/json")
            more["data"] = json.dumps(body)
        url = f"https://127.0.0.1:{self.port}{path}"
        async with self._session.request(method, url, headers=headers, **more) as told:
            plain = told.content_type != "application/json"
            body = await (told.text() if plain else told.json())
            return Answer(told.status, body, told.headers)

    async def does(self, method: str, path: str, body: Any = ..., **more) -> Any:
        """Make a job that must succeed; return its result."""
        answer = await self.ask(method, path, body, **more)
        assert answer.status == 200, answer
        assert isinstance(answer.body, int)
        job = await self.cluster.finished(answer.body)
        assert [op.error for op in job.ops] == [None] * len(job.ops)
        return job.ops[0].result


def certificate(directory: Path) -> Path:
    """Make a key with a certificate; return the file."""
    path = directory / "rapi.pem"
    key = tls.new_key()
    path.write_bytes(tls.key_pem(key) + tls.pem(tls.self_signed(key, "localhost")))
    return path


@asynccontextmanager
async def rapi_door(
    cluster: SimCluster,
    directory: Path,
    limits: Limits | None = None,
    routes: Sequence[Route] = ROUTES,
    store: KnownHealth | None = None,
) -> AsyncIterator[RapiDoor]:
    """Serve a cluster over LUXI, and that over RAPI, as long as it is needed."""
    users = directory / "users"
    users.write_text(USERS)
    users.chmod(0o600)
    gate = Gate(limits or Limits(), time.monotonic)
    luxi = AsyncLuxi(directory / "door.sock")
    known = Users(users, directory / "tokens", clock=time.time)
    made = Door(luxi, known, gate, routes, Hub(luxi.of(LISTENER)))
    made = replace(made, pages=WebPages(made))
    async with desk(cluster, directory, store):
        shown = Certificate(certificate(directory))
        runner = await serve(made, "127.0.0.1", 0, shown)
        door = RapiDoor(cluster, directory, runner.addresses[0][1], made)
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        connector = aiohttp.TCPConnector(ssl=trust)
        async with aiohttp.ClientSession(connector=connector) as door._session:
            yield door
        await runner.cleanup()
        luxi.close()
