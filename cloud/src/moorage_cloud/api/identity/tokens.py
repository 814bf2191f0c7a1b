# SPDX-License-Identifier: BSD-2-Clause
"""Tokens: given for a password, for another token or for an application credential."""

from msgspec import structs

from moorage_cloud.api.wire.call import Call
from moorage_cloud.api.wire.errors import Unauthorized
from moorage_cloud.api.wire.routes import Routes
from moorage_cloud.api.wire.times import zulu
from moorage_cloud.errors import BadRequest, Forbidden, NotFound
from moorage_cloud.identity import login, tokens
from moorage_cloud.identity.models import ApplicationCredential, Project, User
from moorage_cloud.identity.tokens import InvalidToken, Token
from moorage_cloud.identity.who import Identity, identity_of, known_by

from .bodies import (
    ByCredential,
    Catalog,
    CredentialOfToken,
    CredentialUser,
    Domain,
    InDomain,
    Login,
    Named,
    NamedProject,
    NamedUser,
    OneToken,
    Proof,
    Scope,
    TokenQuery,
    TokenTold,
    TokenUser,
)
from .catalog import catalog

routes = Routes()
DEFAULT = Named(id=login.DOMAIN, name="Default")
TOKENS = "/auth/tokens"
SUBJECT = "X-Subject-Token"


@routes("POST", TOKENS, status=201, open_to_all=True)
def issue(call: Call, body: Login, query: TokenQuery) -> OneToken:
    """Give a token to somebody who shows who they are."""
    try:
        token = _login(body.auth.identity, body.auth.scope)
        identity = identity_of(token)
    except (login.Refused, InvalidToken):
        raise Unauthorized(str(InvalidToken())) from None
    call.headers[SUBJECT] = tokens.sealed(token)
    return _told(call, identity, token, catalogued=query.nocatalog is None)


@routes("GET", TOKENS)
def validate(call: Call, query: TokenQuery) -> OneToken:
    """Tell what a token says, if it is good."""
    identity = _subject(call)
    call.headers[SUBJECT] = call.request.headers[SUBJECT]
    assert identity.token is not None  # noqa: S101 - it was opened
    return _told(call, identity, identity.token, catalogued=query.nocatalog is None)


@routes("HEAD", TOKENS)
def validate_only(call: Call) -> None:
    """Tell whether a token is good."""
    _subject(call)
    call.headers[SUBJECT] = call.request.headers[SUBJECT]


@routes("DELETE", TOKENS, status=204)
def revoke(call: Call) -> None:
    """Let a token be good no more."""
    token = _subject(call).token
    assert token is not None  # noqa: S101 - it was opened
    login.revoke(token)


@routes("GET", "/auth/catalog")
def show_catalog(call: Call) -> Catalog:
    """Tell where the services are."""
    return Catalog(catalog(call.request, call.identity.project_id))


def _subject(call: Call) -> Identity:
    """Return whose token is asked about: one's own, or anybody's for administrators."""
    try:
        found = known_by(call.request.headers.get(SUBJECT, ""))
    except InvalidToken:
        raise NotFound("Could not find token.") from None
    if found.user_id != call.identity.user_id and not call.may("context_is_admin"):
        raise Forbidden("You are not authorized to perform the requested action.")
    return found


def _login(proof: Proof, scope: Scope | str | None) -> Token:
    match proof:
        case Proof(methods=["password"], password=password) if password:
            user = login.by_password(_user(password.user), password.user.password)
            return _for(user, scope, ("password",))
        case Proof(methods=["token"], token=token) if token:
            parent = login.by_token(token.id).token
            assert parent is not None  # noqa: S101 - it was opened
            user = User.objects.get(pk=parent.user)
            methods = (*parent.methods, "token")
            return _for(user, scope, tuple(dict.fromkeys(methods)), parent)
        case Proof(
            methods=["application_credential"], application_credential=given
        ) if given:
            if scope is not None:
                raise login.Refused
            return login.by_credential(_credential(given), given.secret)
    raise BadRequest(
        "a token is given for one method, with what belongs to it: password, token or "
        "application_credential"
    )


def _for(
    user: User,
    scope: Scope | str | None,
    methods: tuple[str, ...],
    parent: Token | None = None,
) -> Token:
    """Return a token for what somebody wants it for; else for their usual project."""
    project = _wanted(user, scope)
    if parent and parent.credential and project != parent.project:
        raise login.Refused  # it is for one project
    return tokens.new(user.pk, project, methods, parent=parent)


def _wanted(user: User, scope: Scope | str | None) -> str:
    if isinstance(scope, Scope):
        if scope.project is not None:
            return login.project_for(user, _project(scope.project)).pk
        if scope.domain is not None or scope.system is not None:
            raise BadRequest("a token is for a project or unscoped: nothing else here")
    unscoped = scope is not None
    usual = user.default_project
    if unscoped or usual is None:
        return ""
    try:
        return login.project_for(user, usual).pk
    except login.Refused:
        return ""


def _user(given: NamedUser | CredentialUser) -> User | None:
    if given.id is not None:
        return User.objects.filter(pk=given.id).first()
    if given.name is None or not _is_default(given.domain):
        return None
    return User.objects.filter(name=given.name).first()


def _project(given: NamedProject) -> Project | None:
    if given.id is not None:
        return Project.objects.filter(pk=given.id).first()
    if given.name is None or not _is_default(given.domain):
        return None
    return Project.objects.filter(name=given.name).first()


def _credential(given: ByCredential) -> ApplicationCredential | None:
    known = ApplicationCredential.objects.select_related("user", "project")
    if given.id is not None:
        return known.filter(pk=given.id).first()
    user = _user(given.user) if given.user else None
    if user is None or given.name is None:
        return None
    return known.filter(user=user, name=given.name).first()


def _is_default(domain: Domain | None) -> bool:
    if domain is None:
        return False
    return domain.id == DEFAULT.id or domain.name == DEFAULT.name


def _told(
    call: Call, identity: Identity, token: Token, *, catalogued: bool
) -> OneToken:
    told = TokenTold(
        methods=list(token.methods),
        user=TokenUser(identity.user_id, identity.user_name, DEFAULT),
        audit_ids=list(token.audit_ids),
        expires_at=zulu(token.expires_at),
        issued_at=zulu(token.issued_at),
    )
    if identity.project_id:
        told = structs.replace(
            told,
            project=InDomain(identity.project_id, identity.project_name, DEFAULT),
            is_domain=False,
            roles=[Named(id=role, name=role) for role in identity.roles],
        )
        if catalogued:
            services = catalog(call.request, identity.project_id)
            told = structs.replace(told, catalog=services)
    if token.credential:
        restricted = not ApplicationCredential.objects.get(
            pk=token.credential
        ).unrestricted
        kept = CredentialOfToken(id=token.credential, restricted=restricted)
        told = structs.replace(told, application_credential=kept)
    return OneToken(told)
