# SPDX-License-Identifier: BSD-2-Clause
"""Users, projects, and who may do what where."""

import uuid
from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.utils import timezone


def new_id() -> str:
    """Return an id as Keystone makes them: 32 digits."""
    return uuid.uuid4().hex


class Role(models.TextChoices):
    """What somebody may do in a project; each may what those before it may."""

    READER = "reader"
    MEMBER = "member"
    ADMIN = "admin"

    @property
    def implied(self) -> tuple["Role", ...]:
        """It and those that it implies, highest first."""
        known = tuple(Role)
        return known[known.index(self) :: -1]


class Project(models.Model):
    """What owns volumes and has a quota."""

    id = models.CharField(primary_key=True, max_length=32, default=new_id)
    name = models.CharField(max_length=64, unique=True)
    description = models.CharField(max_length=255, blank=True)
    enabled = models.BooleanField(default=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class User(AbstractBaseUser):
    """Somebody with a password.

    Attributes
    ----------
    tokens_since
        Tokens of before then are good no more.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_id)
    name = models.CharField(max_length=255, unique=True)
    description = models.CharField(max_length=255, blank=True)
    email = models.CharField(max_length=255, blank=True)
    enabled = models.BooleanField(default=True)
    default_project = models.ForeignKey(
        Project, models.SET_NULL, null=True, related_name="+"
    )
    tokens_since = models.DateTimeField(default=timezone.now)
    created = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "name"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects = BaseUserManager["User"]()

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    def renew(self, password: str) -> None:
        """Set a password; it ends all tokens that there are."""
        self.set_password(password)
        self.tokens_since = timezone.now()
        self.save()


class Assignment(models.Model):
    """A role that somebody has in a project."""

    user = models.ForeignKey(User, models.CASCADE, related_name="assignments")
    project = models.ForeignKey(Project, models.CASCADE, related_name="assignments")
    role = models.CharField(max_length=16, choices=Role.choices)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("user", "project", "role"), name="one_assignment_of_a_role"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.project}"


class ApplicationCredential(models.Model):
    """A password of a program's: for one project, and with some of its user's roles.

    Attributes
    ----------
    secret
        Its hash.
    unrestricted
        Whether who has it may make others.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_id)
    name = models.CharField(max_length=255)
    description = models.CharField(max_length=255, blank=True)
    user = models.ForeignKey(User, models.CASCADE, related_name="credentials")
    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    roles = models.JSONField()
    secret = models.CharField(max_length=255)
    unrestricted = models.BooleanField(default=False)
    expires = models.DateTimeField(null=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(
                fields=("user", "name"), name="one_credential_of_a_name"
            ),
        )

    def __str__(self) -> str:
        return self.name


class Revoked(models.Model):
    """A token that was given back before its time.

    Attributes
    ----------
    audit_id
        Of the token, or of the first of its chain.
    expires
        When the token would have ended; then this row can go.
    """

    audit_id = models.CharField(primary_key=True, max_length=32)
    expires = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name_plural = "revoked"

    def __str__(self) -> str:
        return self.audit_id
