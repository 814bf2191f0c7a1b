# SPDX-License-Identifier: BSD-2-Clause
"""What identity takes and tells."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

Name = Annotated[str, Meta(min_length=1, max_length=255)]


class Domain(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The domain by its id or its name; there is one."""

    id: str | None = None
    name: str | None = None


class NamedUser(Struct, frozen=True, forbid_unknown_fields=True):
    """A user by id or by name, and a password."""

    password: str
    id: str | None = None
    name: str | None = None
    domain: Domain | None = None


class ByPassword(Struct, frozen=True, forbid_unknown_fields=True):
    """The method ``password``."""

    user: NamedUser


class ByToken(Struct, frozen=True, forbid_unknown_fields=True):
    """The method ``token``."""

    id: str


class CredentialUser(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose credential it is, by id or by name."""

    id: str | None = None
    name: str | None = None
    domain: Domain | None = None


class ByCredential(Struct, frozen=True, forbid_unknown_fields=True):
    """The method ``application_credential``: by its id, or by its name and user."""

    secret: str
    id: str | None = None
    name: str | None = None
    user: CredentialUser | None = None


class Proof(Struct, frozen=True, forbid_unknown_fields=True):
    """How somebody shows who they are: by one method."""

    methods: Annotated[list[str], Meta(min_length=1)]
    password: ByPassword | None = None
    token: ByToken | None = None
    application_credential: ByCredential | None = None


class NamedProject(Struct, frozen=True, forbid_unknown_fields=True):
    """A project by id or by name."""

    id: str | None = None
    name: str | None = None
    domain: Domain | None = None


class Scope(Struct, frozen=True, forbid_unknown_fields=True):
    """What a token is to be for."""

    project: NamedProject | None = None
    domain: Domain | None = None
    system: dict[str, bool] | None = None
    unscoped: dict[str, str] | None = None


class Auth(Struct, frozen=True, forbid_unknown_fields=True):
    """Who wants a token, and for what."""

    identity: Proof
    scope: Scope | str | None = None


class Login(Struct, frozen=True, forbid_unknown_fields=True):
    """A request for a token."""

    auth: Auth


class TokenQuery(Struct, frozen=True):
    """How much a token is to tell: with any `nocatalog`, no catalog."""

    nocatalog: str | None = None


class Named(Struct, frozen=True):
    """Something by its id and its name."""

    id: str
    name: str


class InDomain(Struct, frozen=True):
    """Something by its id, its name and its domain."""

    id: str
    name: str
    domain: Named


class TokenUser(Struct, frozen=True):
    """Whose token it is."""

    id: str
    name: str
    domain: Named
    password_expires_at: str | None = None


class Address(Struct, frozen=True):
    """Where a service is."""

    id: str
    interface: str
    region: str
    region_id: str
    url: str


class ServiceAddresses(Struct, frozen=True):
    """A service, and where it is."""

    id: str
    type: str
    name: str
    endpoints: list[Address]


class CredentialOfToken(Struct, frozen=True):
    """The application credential that a token was had with."""

    id: str
    restricted: bool


class TokenTold(Struct, frozen=True, kw_only=True):
    """What a token says."""

    methods: list[str]
    user: TokenUser
    audit_ids: list[str]
    expires_at: str
    issued_at: str
    project: InDomain | UnsetType = UNSET
    is_domain: bool | UnsetType = UNSET
    roles: list[Named] | UnsetType = UNSET
    catalog: list[ServiceAddresses] | UnsetType = UNSET
    application_credential: CredentialOfToken | UnsetType = UNSET


class OneToken(Struct, frozen=True):
    """A token."""

    token: TokenTold


class Catalog(Struct, frozen=True):
    """All services."""

    catalog: list[ServiceAddresses]
