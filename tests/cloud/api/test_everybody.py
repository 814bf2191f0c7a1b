# SPDX-License-Identifier: BSD-2-Clause
"""Every route, asked by everybody: nobody sees or touches what is another project's.

The routes are those that the services declare. Each is asked for things of the project
``red``, and what is expected follows from its rule; of a route without a rule it is
stated here. So a new route without a stated expectation fails.
"""

import json
from collections.abc import Callable
from enum import Enum, auto

import pytest
from cloud_things import Things
from django.db import connection, transaction
from every_route import sample, send, told
from msgspec import structs
from msgspec.structs import fields
from site_of_people import Answer, Site, ask

from moorage_cloud.api.urls import SERVICES
from moorage_cloud.api.volume.absent import ABSENT
from moorage_cloud.api.wire import rules
from moorage_cloud.api.wire.routes import Endpoint
from moorage_cloud.api.wire.service import Service
from moorage_cloud.identity import people, tokens
from moorage_cloud.identity.models import Role

OWNED = {
    f"{{{name}_id}}"
    for name in (
        *("volume", "snapshot", "attachment", "transfer", "message", "type"),
        *("server", "project", "user"),
    )
}
"""What in a path is somebody's."""

OFFERED = "/accept"
"""What the path of a transfer ends with that somebody else may take, with its key."""


class For(Enum):
    """Who may ask for something of red."""

    ALL = auto()  # without a token
    KNOWN = auto()  # with a good token, be it for no project
    HERE = auto()  # with any role in any project, for what is nobody's
    READER = auto()
    MEMBER = auto()
    ADMIN = auto()
    ANNA = auto()  # herself alone
    ANNA_OR_ADMIN = auto()


BY_RULE = {
    rules.READER: For.READER,
    rules.MEMBER: For.MEMBER,
    rules.ADMIN: For.ADMIN,
    rules.ANYBODY: For.HERE,
    "": For.KNOWN,
}
STATED = {
    "GET /identity/": For.ALL,
    "GET /volume/": For.ALL,
    "GET /compute/": For.ALL,
    "GET /image/": For.ALL,
    "GET /identity/v3/": For.ALL,
    "GET /volume/v3/": For.ALL,
    "GET /compute/v2.1/": For.ALL,
    "POST /identity/v3/auth/tokens": For.ALL,
    "GET /identity/v3/auth/tokens": For.ANNA_OR_ADMIN,
    "HEAD /identity/v3/auth/tokens": For.ANNA_OR_ADMIN,
    "DELETE /identity/v3/auth/tokens": For.ANNA_OR_ADMIN,
    "GET /identity/v3/auth/catalog": For.KNOWN,
    "GET /identity/v3/auth/projects": For.KNOWN,
    "GET /identity/v3/users/{user_id}/projects": For.ANNA_OR_ADMIN,
    "GET /identity/v3/users/{user_id}": For.ANNA_OR_ADMIN,
    "GET /identity/v3/projects/{project_id}": For.READER,
    "GET /identity/v3/users/{user_id}/application_credentials": For.ANNA,
    "POST /identity/v3/users/{user_id}/application_credentials": For.ANNA,
    "GET /identity/v3/users/{user_id}/application_credentials/{credential_id}": (
        For.ANNA
    ),
    "DELETE /identity/v3/users/{user_id}/application_credentials/{credential_id}": (
        For.ANNA
    ),
    "GET /volume/v3/os-quota-sets/{project_id}": For.READER,
    "GET /volume/v3/os-quota-sets/{project_id}/defaults": For.READER,
    "GET /volume/v3/types/{type_id}/extra_specs/{key}": For.ADMIN,
    "GET /volume/v3/resource_filters": For.HERE,
    "GET /volume/v3/extensions": For.HERE,
    "GET /compute/v2.1/flavors": For.HERE,
    "GET /compute/v2.1/flavors/detail": For.HERE,
    "GET /compute/v2.1/limits": For.HERE,
}
"""Of routes that no rule says it of, or that tell somebody less."""
MAY = {
    For.ALL: {"no token", "nonsense", "expired", "revoked", "no role", "anna", "rita"}
    | {"bob", "bob with a service token", "boss of blue", "root"},
    For.KNOWN: {"no role", "anna", "rita", "bob", "bob with a service token"}
    | {"boss of blue", "root"},
    For.HERE: {"anna", "rita", "bob", "bob with a service token"}
    | {"boss of blue", "root"},
    For.READER: {"anna", "rita", "boss of blue", "root"},
    For.MEMBER: {"anna", "boss of blue", "root"},
    For.ADMIN: {"boss of blue", "root"},
    For.ANNA: {"anna"},
    For.ANNA_OR_ADMIN: {"anna", "boss of blue", "root"},
}
"""Whoever is an administrator of some project is one of the cloud, as in Cinder."""
STRANGERS = {"bob", "bob with a service token"}
UNKNOWN = {"no token", "nonsense", "expired", "revoked"}


def everybody(site: Site) -> dict[str, dict[str, str]]:
    """Return who there is, with what they show."""
    anna, blue = site.anna, site.blue
    over = tokens.new(anna.user.pk, site.red.pk, ("password",))
    expired = tokens.sealed(structs.replace(over, expires=over.issued))
    revoked = tokens.new(anna.user.pk, site.red.pk, ("password",))
    ask(
        "DELETE",
        "/identity/v3/auth/tokens",
        **_shows(tokens.sealed(revoked)) | {"X-Subject-Token": tokens.sealed(revoked)},
    )
    nora = people.add_user("nora", "a word", None)
    unscoped = tokens.new(nora.pk, "", ("password",))
    boss = people.add_user("boss", "a word", blue)
    people.grant(boss, blue, Role.ADMIN)
    chief = tokens.new(boss.pk, blue.pk, ("password",))
    return {
        "no token": {},
        "nonsense": _shows("nonsense"),
        "expired": _shows(expired),
        "revoked": _shows(tokens.sealed(revoked)),
        "no role": _shows(tokens.sealed(unscoped)),
        "rita": _shows(site.rita.token),
        "anna": _shows(anna.token),
        "bob": _shows(site.bob.token),
        "bob with a service token": _shows(site.bob.token)
        | {"X-Service-Token": site.root.token},
        "boss of blue": _shows(tokens.sealed(chief)),
        "root": _shows(site.root.token),
    }


def _shows(token: str) -> dict[str, str]:
    return {"X-Auth-Token": token}


class Writes:
    """Sees whether anything was written: to look at all there is takes long."""

    seen = False

    def __call__(
        self, execute: Callable[..., object], sql: str, *given: object
    ) -> object:
        self.seen |= not sql.startswith(("SELECT", "SAVEPOINT", "RELEASE"))
        return execute(sql, *given)


def expected(service: Service, one: Endpoint) -> For:
    """Return who may ask; a route of which nothing says it fails."""
    name = told(service, one)
    if one.open:
        assert STATED[name] is For.ALL
    if name in STATED:
        return STATED[name]
    assert one.rule, f"nothing says who may {name}"
    (check,) = [known.check for known in rules.RULES if known.name == one.rule]
    found = BY_RULE[check]
    if one.method not in {"GET", "HEAD"}:
        assert found in {For.MEMBER, For.ADMIN}, f"who only looks may {name}"
    return found


def is_absent(one: Endpoint) -> bool:
    """Whether nobody could find such a thing, or make one."""
    return any(one.path == path or one.path.startswith(f"{path}/") for path in ABSENT)


@pytest.fixture
def things(site: Site) -> Things:
    """Return what there is in red."""
    return Things(site)


@pytest.mark.slow
@pytest.mark.parametrize("service", SERVICES, ids=lambda one: one.root)
def test_nobody_reaches_what_is_not_theirs(things: Things, service: Service):
    shown = everybody(things.site)
    before = things.state()
    for one in service.routes.endpoints:
        who = expected(service, one)
        owned = not (
            OWNED.isdisjoint(one.path.split("/")) or one.path.endswith(OFFERED)
        )
        for name, shows in shown.items():
            where = f"{told(service, one)}, {name}"
            writes = Writes()
            with transaction.atomic():
                with connection.execute_wrapper(writes):
                    answer = send(service, one, things, shows)
                if writes.seen and name not in MAY[who]:
                    assert things.state() == before, where
                transaction.set_rollback(True)
            if name in UNKNOWN and not one.open:
                assert answer.status == 401, where
            elif name in STRANGERS and not owned and who in {For.READER, For.MEMBER}:
                # Their own is what they ask for, where the path names nothing of red.
                assert answer.status not in {401, 403}, where
            elif name in MAY[who] and not (name in STRANGERS and owned):
                assert answer.status not in {401, 403, 405}, where
                assert answer.status != 404 or is_absent(one), where
                assert answer.status < 500 or is_absent(one), where
            else:
                assert answer.status in {403, 404}, where
            if name in STRANGERS:
                no_leak(service, one, things, answer)


def no_leak(service: Service, one: Endpoint, things: Things, answer: Answer) -> None:
    """Fail if an answer tells what was not named by who asked."""
    named = str(sample(one.body, "", things.ids)) + one.path.format(**things.ids)
    seen = json.dumps(answer.body)
    leaked = [its for its in things.secrets() if its in seen and its not in named]
    assert not leaked, told(service, one)


@pytest.mark.parametrize("service", SERVICES, ids=lambda one: one.root)
def test_no_question_leads_to_what_is_anothers(things: Things, service: Service):
    """Each list is asked for red's things by every filter that it declares."""
    known = {
        **{f"{name}_id": things.ids[f"{name}_id"] for name in ("project", "user")},
        "tenant_id": things.ids["project_id"],
        "volume_id": things.ids["volume_id"],
        "instance_id": things.ids["server_id"],
        "resource_uuid": things.ids["volume_id"],
        "marker": things.ids["volume_id"],
        "name": "of red",
        "metadata": "{'k': 'v'}",
        "all_tenants": "1",
    }
    for one in service.routes.endpoints:
        if one.query is None or one.method != "GET" or "{" in one.path:
            continue
        for given in fields(one.query):
            key = given.encode_name
            if key not in known:
                continue
            path = f"/{service.root}{one.path}?all_tenants=1&{key}={known[key]}"
            headers = _shows(things.site.bob.token)
            if service.name:
                headers["OpenStack-API-Version"] = f"{service.name} latest"
            answer = ask("GET", path, **headers)
            assert answer.status < 500, path
            seen = json.dumps(answer.body).replace(known[key], "")
            assert not [its for its in things.secrets() if its in seen], path
