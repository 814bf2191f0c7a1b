# SPDX-License-Identifier: BSD-2-Clause
"""Application credentials: a user makes them for their programs."""

import secrets
from datetime import UTC, datetime

from django.contrib.auth.hashers import make_password
from django.db import IntegrityError, transaction
from msgspec import UNSET, Struct, UnsetType

from moorage_cloud.api.wire.address import address
from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.times import moment
from moorage_cloud.errors import BadRequest, Conflict, Forbidden, NotFound
from moorage_cloud.identity.models import ApplicationCredential

from .bodies import Name, Named
from .directory import Pages, Self

routes = Routes()
PATH = "/users/{user_id}/application_credentials"


class RoleNamed(Struct, frozen=True, forbid_unknown_fields=True):
    """A role by its id or its name, which are the same."""

    id: str | None = None
    name: str | None = None
    domain_id: str | None = None


class NewCredential(Struct, frozen=True, forbid_unknown_fields=True):
    """What a credential is to be; without roles it has all of the token's."""

    name: Name
    secret: str | None = None
    description: str | None = None
    roles: list[RoleNamed] | None = None
    expires_at: datetime | None = None
    unrestricted: bool | None = None
    access_rules: list[dict[str, str]] | None = None
    project_id: str | None = None


class CreateCredential(Struct, frozen=True, forbid_unknown_fields=True):
    """A request for a credential."""

    application_credential: NewCredential


class CredentialShown(Struct, frozen=True, kw_only=True):
    """A credential; its secret is told once."""

    id: str
    name: str
    description: str | None
    project_id: str
    user_id: str
    roles: list[Named]
    expires_at: str | None
    unrestricted: bool
    links: Self
    secret: str | UnsetType = UNSET


class OneCredential(Struct, frozen=True):
    """A credential."""

    application_credential: CredentialShown


class Credentials(Struct, frozen=True):
    """Credentials."""

    application_credentials: list[CredentialShown]
    links: Pages


class CredentialQuery(Struct, frozen=True):
    """What a list is to have."""

    name: str | None = None


@routes("GET", PATH)
def list_credentials(call: Call, user_id: str, query: CredentialQuery) -> Credentials:
    """List somebody's credentials."""
    _own(call, user_id)
    found = ApplicationCredential.objects.filter(user=user_id)
    if query.name is not None:
        found = found.filter(name=query.name)
    pages = Pages(address(call.request))
    return Credentials([_shown(call, one) for one in found], pages)


@routes("POST", PATH, status=201)
def create_credential(
    call: Call, user_id: str, body: CreateCredential
) -> OneCredential:
    """Make a credential for the project of the token."""
    _own(call, user_id, change=True)
    if not call.identity.project_id:
        raise Forbidden("The token is for no project: ask for one with a scope.")
    new = body.application_credential
    if new.access_rules:
        raise BadRequest("a credential is good for all requests: no access rules here")
    roles = _roles(call, new)
    secret = new.secret or secrets.token_urlsafe(64)
    try:
        with transaction.atomic():
            made = ApplicationCredential.objects.create(
                name=new.name,
                description=new.description or "",
                user_id=user_id,
                project_id=call.identity.project_id,
                roles=roles,
                secret=make_password(secret),
                unrestricted=bool(new.unrestricted),
                expires=_aware(new.expires_at),
            )
    except IntegrityError:
        raise Conflict(
            f"there is an application credential '{new.name}' already"
        ) from None
    return OneCredential(_shown(call, made, secret))


@routes("GET", PATH + "/{credential_id}")
def show_credential(call: Call, user_id: str, credential_id: str) -> OneCredential:
    """Show a credential."""
    _own(call, user_id)
    return OneCredential(_shown(call, _found(user_id, credential_id)))


@routes("DELETE", PATH + "/{credential_id}", status=204)
def delete_credential(call: Call, user_id: str, credential_id: str) -> None:
    """Delete a credential; tokens that were had with it end."""
    _own(call, user_id, change=True)
    _found(user_id, credential_id).delete()


def _own(call: Call, user_id: str, *, change: bool = False) -> None:
    """Let users at their own alone; who came with one only if it is unrestricted."""
    if user_id != call.identity.user_id:
        raise Forbidden("You are not authorized to perform the requested action.")
    token = call.identity.token
    if change and token and token.credential:
        own = ApplicationCredential.objects.filter(pk=token.credential).first()
        if own is None or not own.unrestricted:
            raise Forbidden("An application credential that is restricted makes none.")


def _found(user_id: str, credential_id: str) -> ApplicationCredential:
    found = ApplicationCredential.objects.filter(pk=credential_id, user=user_id)
    one = found.first()
    if one is None:
        raise NotFound(f"Could not find Application Credential: {credential_id}.")
    return one


def _roles(call: Call, new: NewCredential) -> list[str]:
    """Return the roles of a new credential: some of those that who asks has."""
    if not new.roles:
        return list(call.identity.roles)
    found = [one.id or one.name or "" for one in new.roles]
    for name in found:
        if name not in call.identity.roles:
            raise BadRequest(f"you do not have the role '{name}' in this project")
    return found


def _aware(when: datetime | None) -> datetime | None:
    if when is None or when.tzinfo is None:
        return when and when.replace(tzinfo=UTC)
    try:
        return when.astimezone(UTC)
    except OverflowError:
        raise BadRequest(f"expires_at is no moment: {when}") from None


def _shown(call: Call, one: ApplicationCredential, secret: str = "") -> CredentialShown:
    return CredentialShown(
        id=one.pk,
        name=one.name,
        description=one.description or None,
        project_id=one.project_id,
        user_id=one.user_id,
        roles=[Named(id=role, name=role) for role in one.roles],
        expires_at=moment(one.expires) if one.expires else None,
        unrestricted=one.unrestricted,
        links=Self(f"{call.base}/users/{one.user_id}/application_credentials/{one.pk}"),
        secret=secret or UNSET,
    )
