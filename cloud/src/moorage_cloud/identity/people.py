# SPDX-License-Identifier: BSD-2-Clause
"""Projects and users are made, and users get roles: what the commands do."""

from django.db import IntegrityError, transaction

from moorage_cloud.errors import BadRequest, Conflict, NotFound

from .models import Assignment, Project, Role, User


def project(name: str) -> Project:
    """Return a project by its id or its name; `NotFound` if there is none."""
    found = Project.objects.filter(pk=name).first()
    found = found or Project.objects.filter(name=name).first()
    if found is None:
        raise NotFound(f"there is no project '{name}'")
    return found


def user(name: str) -> User:
    """Return a user by id or name; `NotFound` if there is none."""
    found = User.objects.filter(pk=name).first()
    found = found or User.objects.filter(name=name).first()
    if found is None:
        raise NotFound(f"there is no user '{name}'")
    return found


def add_project(name: str, description: str = "") -> Project:
    """Make a project; `Conflict` if there is one of that name."""
    _check(name)
    try:
        with transaction.atomic():
            return Project.objects.create(name=name, description=description)
    except IntegrityError:
        raise Conflict(f"there is a project '{name}' already") from None


def add_user(
    name: str, password: str, usual: Project | None = None, email: str = ""
) -> User:
    """Make a user; `Conflict` if there is one of that name."""
    _check(name)
    if not password:
        raise BadRequest("a user needs a password")
    made = User(name=name, email=email, default_project=usual)
    made.set_password(password)
    try:
        with transaction.atomic():
            made.save(force_insert=True)
    except IntegrityError:
        raise Conflict(f"there is a user '{name}' already") from None
    return made


def grant(who: User, where: Project, role: Role) -> bool:
    """Give somebody a role in a project; return whether they had it not yet."""
    _, new = Assignment.objects.get_or_create(user=who, project=where, role=role)
    return new


def withdraw(who: User, where: Project, role: Role) -> bool:
    """Take a role from somebody; return whether they had it."""
    gone, _ = Assignment.objects.filter(user=who, project=where, role=role).delete()
    return bool(gone)


def _check(name: str) -> None:
    if not name.strip() or not name.isprintable():
        raise BadRequest(f"{name!r} is no name: it is empty, or cannot be printed")
