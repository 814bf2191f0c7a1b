# SPDX-License-Identifier: BSD-2-Clause
"""A cloud with people, who ask over HTTP; and its door on the network."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application
from django.test.client import Client, ClientHandler
from docks import Docks
from quay import Quay

from moorage_cloud.identity import people, tokens
from moorage_cloud.identity.models import Project, Role, User
from moorage_cloud.models import Server

SECRET = "a word that opens"  # noqa: S105 - to a cloud of a test
VOLUME, COMPUTE, IDENTITY = "/volume/v3", "/compute/v2.1", "/identity/v3"
SERVICE = ClientHandler(enforce_csrf_checks=False)
"""Its middleware is loaded once, which takes longer than a request."""


@dataclass
class Answer:
    """What came back."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def fault(self) -> str:
        """The name and the sentence of an error."""
        ((name, inner),) = self.body.items()
        return f"{name} {inner['code']}: {inner['message']}"


@dataclass
class Person:
    """Somebody who asks."""

    user: User
    project: Project
    token: str
    headers: dict[str, str] = field(default_factory=dict)

    def ask(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> Answer:
        return ask(method, path, body, **{"X-Auth-Token": self.token} | headers)

    def volumes(
        self, method: str, path: str, body: object = None, at: str = "3.71"
    ) -> Answer:
        """Ask block storage, with the project in the path."""
        where = f"{VOLUME}/{self.project.pk}{path}"
        version = {"OpenStack-API-Version": f"volume {at}"}
        return self.ask(method, where, body, **version)

    def servers(
        self, method: str, path: str, body: object = None, at: str = "2.100"
    ) -> Answer:
        """Ask compute."""
        version = {"OpenStack-API-Version": f"compute {at}"}
        return self.ask(method, f"{COMPUTE}/servers{path}", body, **version)

    def new_volume(self, **given: object) -> dict[str, Any]:
        """Make a volume; return what is shown of it."""
        answer = self.volumes("POST", "/volumes", {"volume": {"size": 1, **given}})
        assert answer.status == 202, answer.body
        return dict(answer.body["volume"])

    def look(self, volume: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is shown of a volume now."""
        return dict(self.volumes("GET", f"/volumes/{volume['id']}").body["volume"])


def ask(method: str, path: str, body: object = None, **headers: str) -> Answer:
    """Ask the service, in this process."""
    data = b"" if body is None else json.dumps(body).encode()
    client = Client()
    client.handler = SERVICE
    response = client.generic(
        method, path, data, content_type="application/json", headers=headers
    )
    found = json.loads(response.content) if response.content else None
    return Answer(response.status_code, found, response.headers)


class Site:
    """Two projects; in ``red`` somebody for each role, in ``blue`` a member."""

    def __init__(self, docks: Docks | Quay) -> None:
        self.docks = docks
        self.red, self.blue, self.service = map(
            people.add_project, ("red", "blue", "service")
        )
        self.anna = self._person("anna", self.red, Role.MEMBER)
        self.rita = self._person("rita", self.red, Role.READER)
        self.bob = self._person("bob", self.blue, Role.MEMBER)
        self.root = self._person("root", self.service, Role.ADMIN)
        Server.objects.update(project=self.red.pk, userid=self.anna.user.pk)

    def _person(self, name: str, project: Project, role: Role) -> Person:
        user = people.add_user(name, SECRET, project)
        people.grant(user, project, role)
        token = tokens.new(user.pk, project.pk, ("password",))
        return Person(user, project, tokens.sealed(token))

    def server(self, name: str) -> str:
        """Return the id of a server of the docks."""
        return str(self.docks.servers[name].uuid)


@contextmanager
def served() -> Iterator[str]:
    """Serve on the network for a while; yield the address."""
    server = ThreadedWSGIServer(("127.0.0.1", 0), _Quiet)
    server.daemon_threads = True
    server.set_app(get_wsgi_application())
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""
