# SPDX-License-Identifier: BSD-2-Clause
"""Built-in identity: who gets a token, what it says, and when it ends."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from site_of_people import IDENTITY, SECRET, VOLUME, Answer, Person, Site, ask

from moorage_cloud.identity import people, tokens
from moorage_cloud.identity.models import ApplicationCredential, Revoked, Role

DEFAULT = {"id": "default"}


def login(scope: object = None, **methods: Any) -> Answer:
    auth: dict[str, Any] = {"identity": {"methods": list(methods), **methods}}
    if scope is not None:
        auth["scope"] = scope
    return ask("POST", f"{IDENTITY}/auth/tokens", {"auth": auth})


def password(name: str, word: str = SECRET, scope: object = None) -> Answer:
    user = {"name": name, "domain": DEFAULT, "password": word}
    return login(scope, password={"user": user})


def project(name: str) -> dict[str, Any]:
    return {"project": {"name": name, "domain": DEFAULT}}


def test_a_password_gets_a_token_for_a_project(site: Site):
    answer = password("anna", scope=project("red"))
    assert answer.status == 201
    told = answer.body["token"]
    assert told["user"]["name"] == "anna"
    assert told["project"] == {
        "id": site.red.pk,
        "name": "red",
        "domain": {"id": "default", "name": "Default"},
    }
    assert [role["name"] for role in told["roles"]] == ["reader", "member"]
    assert {one["type"] for one in told["catalog"]} == {
        *("identity", "block-storage", "compute", "image"),
    }
    token = answer.headers["X-Subject-Token"]
    listed = ask("GET", f"{VOLUME}/volumes", **{"X-Auth-Token": token})
    assert listed.body == {"volumes": []}


@pytest.mark.parametrize(
    ("name", "word", "scope"),
    [
        ("anna", "wrong", None),
        ("nobody", SECRET, None),
        ("anna", SECRET, project("blue")),
        ("anna", SECRET, project("nowhere")),
        ("anna", SECRET, {"project": {"name": "red"}}),  # of no domain
    ],
)
@pytest.mark.usefixtures("site")
def test_who_is_not_known_gets_nothing(name: str, word: str, scope: object):
    answer = password(name, word, scope)
    assert answer.status == 401
    assert answer.fault == (
        "error 401: The request you have made requires authentication."
    )
    assert "X-Subject-Token" not in answer.headers


@pytest.mark.usefixtures("site")
def test_a_token_gets_another_that_ends_with_it():
    first = password("anna", scope="unscoped")
    assert "project" not in first.body["token"]
    token = first.headers["X-Subject-Token"]
    answer = login(project("red"), token={"id": token})
    assert answer.status == 201
    told = answer.body["token"]
    assert told["methods"] == ["password", "token"]
    assert told["expires_at"] == first.body["token"]["expires_at"]
    assert told["audit_ids"][1] == first.body["token"]["audit_ids"][0]


@pytest.mark.usefixtures("site")
def test_a_token_for_no_project_sees_no_volumes():
    token = password("anna", scope="unscoped").headers["X-Subject-Token"]
    answer = ask("GET", f"{VOLUME}/volumes", **{"X-Auth-Token": token})
    assert answer.status == 403


def of(person: Person, method: str, subject: str) -> Answer:
    return person.ask(method, f"{IDENTITY}/auth/tokens", **{"X-Subject-Token": subject})


def test_a_token_is_told_about_and_given_back(site: Site):
    answer = of(site.anna, "GET", site.anna.token)
    assert answer.body["token"]["user"]["name"] == "anna"
    assert of(site.anna, "HEAD", site.anna.token).status == 200
    # Of somebody else's, administrators alone are told.
    assert of(site.anna, "GET", site.bob.token).status == 403
    assert of(site.root, "GET", site.bob.token).status == 200
    assert of(site.root, "GET", "nonsense").status == 404

    assert of(site.anna, "DELETE", site.anna.token).status == 204
    assert site.anna.volumes("GET", "/volumes").status == 401
    assert of(site.root, "GET", site.anna.token).status == 404
    # One that was had for it is good no more, either.
    assert Revoked.objects.count() == 1


def test_a_token_ends_with_its_time_its_role_its_project_and_its_password(site: Site):
    def status(person: Person) -> int:
        return person.volumes("GET", "/volumes").status

    assert [status(one) for one in (site.anna, site.bob, site.rita)] == [200] * 3
    people.withdraw(site.rita.user, site.red, Role.READER)
    assert status(site.rita) == 401
    site.blue.enabled = False
    site.blue.save()
    assert status(site.bob) == 401
    site.anna.user.renew("another")
    assert status(site.anna) == 401
    old = tokens.Token(
        user=site.root.user.pk,
        project=site.service.pk,
        methods=("password",),
        issued=1,
        expires=2,
        audit_ids=("a",),
    )
    site.root.token = tokens.sealed(old)
    assert status(site.root) == 401


def test_a_user_who_is_disabled_is_out(site: Site):
    site.anna.user.enabled = False
    site.anna.user.save()
    assert password("anna").status == 401
    assert site.anna.volumes("GET", "/volumes").status == 401


def test_a_token_cannot_be_changed(site: Site):
    head, _, tail = site.anna.token.partition(":")
    forged = f"{head[:-1]}{'A' if head[-1] != 'A' else 'B'}:{tail}"
    answer = ask("GET", f"{VOLUME}/volumes", **{"X-Auth-Token": forged})
    assert answer.status == 401


def credential(person: Person, **given: object) -> Answer:
    path = f"{IDENTITY}/users/{person.user.pk}/application_credentials"
    return person.ask("POST", path, {"application_credential": {"name": "ci", **given}})


def test_an_application_credential_is_for_one_project(site: Site):
    people.grant(site.anna.user, site.blue, Role.MEMBER)
    answer = credential(site.anna)
    assert answer.status == 201
    made = answer.body["application_credential"]
    assert made["project_id"] == site.red.pk
    kept = ApplicationCredential.objects.get()
    assert made["secret"] not in kept.secret

    given = {"id": made["id"], "secret": made["secret"]}
    answer = login(application_credential=given)
    assert answer.status == 201
    assert answer.body["token"]["project"]["name"] == "red"
    token = answer.headers["X-Subject-Token"]
    # Not for another project, not for another credential.
    assert login(project("blue"), token={"id": token}).status == 401
    path = f"{IDENTITY}/users/{site.anna.user.pk}/application_credentials"
    more = {"application_credential": {"name": "more"}}
    assert ask("POST", path, more, **{"X-Auth-Token": token}).status == 403

    named = {"name": "ci", "user": {"name": "anna", "domain": DEFAULT}}
    named["secret"] = made["secret"]
    assert login(application_credential=named).status == 201
    assert login(application_credential={**given, "secret": "no"}).status == 401
    # It goes, and what was had with it.
    assert site.anna.ask("DELETE", f"{path}/{made['id']}").status == 204
    assert ask("GET", f"{VOLUME}/volumes", **{"X-Auth-Token": token}).status == 401


def test_an_application_credential_has_no_more_than_its_user(site: Site):
    assert credential(site.rita, roles=[{"name": "member"}]).status == 400
    made = credential(site.anna, roles=[{"name": "reader"}])
    shown = made.body["application_credential"]
    given = {"id": shown["id"], "secret": shown["secret"]}
    answer = login(application_credential=given)
    token = answer.headers["X-Subject-Token"]
    new = {"volume": {"size": 1}}
    tried = ask("POST", f"{VOLUME}/volumes", new, **{"X-Auth-Token": token})
    assert tried.fault == (
        "forbidden 403: Policy doesn't allow volume:create to be performed."
    )
    # Names are its user's own, and nobody else makes or sees them.
    assert credential(site.anna).status == 409
    path = f"{IDENTITY}/users/{site.anna.user.pk}/application_credentials"
    assert site.bob.ask("GET", path).status == 403
    assert len(site.anna.ask("GET", path).body["application_credentials"]) == 1


def test_an_application_credential_ends_with_its_time(site: Site):
    soon = timezone.now() + timedelta(seconds=30)
    made = credential(site.anna, expires_at=soon.isoformat())
    shown = made.body["application_credential"]
    given = {"id": shown["id"], "secret": shown["secret"]}
    told = login(application_credential=given).body["token"]
    assert told["expires_at"].startswith(soon.isoformat()[:19])
    ApplicationCredential.objects.update(expires=timezone.now())
    assert login(application_credential=given).status == 401
    never = credential(site.anna, name="never", expires_at="9999-12-31T23:59:59-14:00")
    assert never.status == 400


def test_who_is_there_is_told_to_administrators_and_oneself(site: Site):
    def names(person: Person, path: str) -> object:
        answer = person.ask("GET", f"{IDENTITY}{path}")
        if answer.status != 200:
            return answer.status
        found = next(one for key, one in answer.body.items() if key != "links")
        return (
            [one["name"] for one in found] if isinstance(found, list) else found["name"]
        )

    assert names(site.root, "/projects") == ["blue", "red", "service"]
    assert names(site.root, "/projects?name=red") == ["red"]
    assert names(site.root, "/users") == ["anna", "bob", "rita", "root"]
    assert names(site.anna, "/projects") == names(site.anna, "/users") == 403
    assert names(site.anna, f"/users/{site.anna.user.pk}") == "anna"
    assert names(site.anna, f"/users/{site.bob.user.pk}") == 403
    assert names(site.anna, f"/users/{site.anna.user.pk}/projects") == ["red"]
    assert names(site.anna, f"/users/{site.bob.user.pk}/projects") == 403
    assert names(site.anna, "/auth/projects") == ["red"]
    assert names(site.anna, f"/projects/{site.red.pk}") == "red"
    assert names(site.anna, f"/projects/{site.blue.pk}") == 404
    assert names(site.anna, "/roles") == ["reader", "member", "admin"]
    assert names(site.anna, "/domains") == ["Default"]
