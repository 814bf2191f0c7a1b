# SPDX-License-Identifier: BSD-2-Clause
"""Who may see the pages: administrators of the cloud, by their password."""

from django.contrib.auth.backends import BaseBackend
from django.http import HttpRequest

from moorage_cloud.identity.login import Refused, by_password
from moorage_cloud.identity.models import Assignment, Role, User


def is_admin(user: object) -> bool:
    """Whether somebody is an administrator now: in some project that is enabled."""
    return (
        isinstance(user, User)
        and user.enabled
        and Assignment.objects.filter(
            user=user, role=Role.ADMIN, project__enabled=True
        ).exists()
    )


class Administrators(BaseBackend):
    """Lets administrators in; who is none any more is out with the next page."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **_others: object,
    ) -> User | None:
        """Return who has a password and is an administrator."""
        del request
        try:
            found = by_password(
                User.objects.filter(name=username or "").first(), password or ""
            )
        except Refused:
            return None
        return found if is_admin(found) else None

    def get_user(self, user_id: str) -> User | None:
        """Return who a session is of, if they may still be here."""
        found = User.objects.filter(pk=user_id).first()
        return found if found and is_admin(found) else None
