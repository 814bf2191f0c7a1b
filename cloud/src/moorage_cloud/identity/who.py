# SPDX-License-Identifier: BSD-2-Clause
"""Who asks: what a token says, compared with what is so now."""

from collections.abc import Iterable

from msgspec import Struct

from .models import ApplicationCredential, Assignment, Project, Revoked, Role, User
from .tokens import InvalidToken, Token, opened


class Identity(Struct, frozen=True, kw_only=True):
    """Somebody, in a project.

    Attributes
    ----------
    project_id, project_name
        Empty for a token without a project.
    roles
        With those that they imply.
    """

    user_id: str
    user_name: str
    project_id: str = ""
    project_name: str = ""
    roles: tuple[str, ...] = ()
    token: Token | None = None

    def credentials(self) -> dict[str, object]:
        """Return it as rules ask for it."""
        return {
            "user_id": self.user_id,
            "project_id": self.project_id,
            "roles": list(self.roles),
            "is_admin": Role.ADMIN in self.roles,
            "is_admin_project": True,
        }


NOBODY = Identity(user_id="", user_name="")


def known_by(text: str) -> Identity:
    """Return who has a token.

    Raises
    ------
    InvalidToken
        If it is none, has ended, or who had it may not come in any more.
    """
    return identity_of(opened(text))


def identity_of(token: Token) -> Identity:
    """Return who has an opened token; `InvalidToken` as with :func:`known_by`."""
    if Revoked.objects.filter(pk__in=token.audit_ids).exists():
        raise InvalidToken
    if token.project:
        return _in_project(token)
    user = User.objects.filter(pk=token.user, enabled=True).first()
    if user is None:
        raise InvalidToken
    _check_time(token, user)
    return Identity(user_id=user.pk, user_name=user.name, token=token)


def _in_project(token: Token) -> Identity:
    """Return who has a token for a project, by one look at what they may do there."""
    known = Assignment.objects.filter(
        user=token.user,
        project=token.project,
        user__enabled=True,
        project__enabled=True,
    )
    found = list(known.select_related("user", "project"))
    roles = _kept([one.role for one in found], token.user, token.credential)
    if not roles:
        raise InvalidToken
    user, project = found[0].user, found[0].project
    _check_time(token, user)
    return Identity(
        user_id=user.pk,
        user_name=user.name,
        project_id=project.pk,
        project_name=project.name,
        roles=roles,
        token=token,
    )


def _check_time(token: Token, user: User) -> None:
    if token.issued_at < user.tokens_since:
        raise InvalidToken


def roles_of(user: User, project: Project, credential: str = "") -> tuple[str, ...]:
    """Return somebody's roles in a project, with those that they imply.

    Parameters
    ----------
    credential
        Id of the application credential that they came with: they have its roles
        only, as far as they have them still.
    """
    found = Assignment.objects.filter(user=user, project=project)
    return _kept(found.values_list("role", flat=True), user.pk, credential)


def _kept(named: Iterable[str], user: str, credential: str) -> tuple[str, ...]:
    """Return roles with those that they imply, as far as a credential has them."""
    had = _implied(named)
    if credential:
        known = ApplicationCredential.objects.filter(pk=credential, user=user)
        had &= _implied(role for one in known for role in one.roles)
    return tuple(role.value for role in Role if role in had)


def _implied(named: Iterable[str]) -> set[Role]:
    return {implied for name in named for implied in Role(name).implied}
