# SPDX-License-Identifier: BSD-2-Clause
"""Logging in: by a password, a token that one has, or an application credential."""

from datetime import timedelta

from django.contrib.auth.hashers import check_password, make_password
from django.db import transaction
from django.utils import timezone

from . import tokens
from .models import ApplicationCredential, Assignment, Project, Revoked, User
from .tokens import InvalidToken, Token
from .who import Identity, identity_of, roles_of

DOMAIN = "default"
"""The only domain; everybody is in it."""


class Refused(Exception):
    """Who wants to come in may not; nobody is told why."""


def by_password(user: User | None, password: str) -> User:
    """Return who has a password; an unknown user takes as long as a known one."""
    if user is None:
        make_password(password)
        raise Refused
    if not user.check_password(password) or not user.enabled:
        raise Refused
    return user


def by_token(text: str) -> Identity:
    """Return who has a token that is good."""
    try:
        return identity_of(tokens.opened(text))
    except InvalidToken:
        raise Refused from None


def by_credential(found: ApplicationCredential | None, secret: str) -> Token:
    """Return a token for an application credential: for its project, while it lasts."""
    if found is None:
        make_password(secret)
        raise Refused
    late = found.expires is not None and found.expires <= timezone.now()
    if not check_password(secret, found.secret) or late or not found.user.enabled:
        raise Refused
    if not roles_of(found.user, found.project, found.pk):
        raise Refused
    return tokens.new(
        found.user_id,
        found.project_id,
        ("application_credential",),
        credential=found.pk,
        until=found.expires,
    )


def project_for(user: User, project: Project | None) -> Project:
    """Return a project if somebody has a role in it and it is enabled."""
    if project is None or not project.enabled or not roles_of(user, project):
        raise Refused
    return project


def projects_of(user: str) -> list[Project]:
    """Return the projects in which somebody has a role."""
    mine = Assignment.objects.filter(user=user).values("project")
    return list(Project.objects.filter(pk__in=mine, enabled=True))


def revoke(token: Token) -> None:
    """Let a token be good no more; what was kept of tokens that have ended goes."""
    with transaction.atomic():
        Revoked.objects.get_or_create(
            pk=token.audit_ids[0], defaults={"expires": token.expires_at}
        )
        Revoked.objects.filter(expires__lt=timezone.now() - timedelta(hours=1)).delete()
