# SPDX-License-Identifier: BSD-2-Clause
"""Tokens: signed and not stored, so that a login writes nothing.

A token says who, where, how and until when. Django's signing keeps it from being
changed, and lets the key be changed while older ones are good. What it says is no
secret. Each use compares it with what is so now: a user, a project, a role or a
credential that is gone ends it at once. One that is given back is remembered until it
would have ended.
"""

import secrets
from datetime import UTC, datetime, timedelta

import msgspec
from django.core import signing
from django.utils import timezone
from msgspec import Struct

from moorage_cloud.conf import CONF

_SALT = "moorage_cloud.identity.token"


class InvalidToken(Exception):
    """It is no token, or is good no more."""

    def __str__(self) -> str:
        """Return the sentence that clients know."""
        return "The request you have made requires authentication."


class Token(Struct, frozen=True, kw_only=True):
    """What a token says.

    Attributes
    ----------
    user, project
        Ids; a token can be for no project.
    methods
        How its holder came in.
    issued, expires
        Microseconds since 1970.
    audit_ids
        Its own, and that of the first token of its chain if it was had for one.
    credential
        Id of the application credential that it was had with.
    """

    user: str
    project: str
    methods: tuple[str, ...]
    issued: int
    expires: int
    audit_ids: tuple[str, ...]
    credential: str = ""

    @property
    def issued_at(self) -> datetime:
        """When it was made."""
        return datetime.fromtimestamp(self.issued / 1e6, UTC)

    @property
    def expires_at(self) -> datetime:
        """When it ends."""
        return datetime.fromtimestamp(self.expires / 1e6, UTC)


def new(
    user: str,
    project: str,
    methods: tuple[str, ...],
    *,
    parent: Token | None = None,
    credential: str = "",
    until: datetime | None = None,
) -> Token:
    """Return a new token; one that was had for another ends with that.

    Parameters
    ----------
    until
        When it ends at the latest; None for no such time.
    """
    now = timezone.now()
    lasts = now + timedelta(seconds=CONF.token_lasts)
    ends = min(lasts, until) if until else lasts
    own = secrets.token_urlsafe(16)
    return Token(
        user=user,
        project=project,
        methods=methods,
        issued=int(now.timestamp() * 1e6),
        expires=parent.expires if parent else int(ends.timestamp() * 1e6),
        audit_ids=(own, parent.audit_ids[-1]) if parent else (own,),
        credential=parent.credential if parent else credential,
    )


def sealed(token: Token) -> str:
    """Return the text of a token."""
    return signing.dumps(msgspec.to_builtins(token), salt=_SALT, compress=True)


def opened(text: str) -> Token:
    """Return what a token's text says.

    Raises
    ------
    InvalidToken
        If nobody here made it, or it has ended.
    """
    try:
        token = msgspec.convert(signing.loads(text, salt=_SALT), Token)
    except (signing.BadSignature, msgspec.ValidationError, ValueError):
        raise InvalidToken from None
    if token.expires_at <= timezone.now():
        raise InvalidToken
    return token
