# SPDX-License-Identifier: BSD-2-Clause
"""Whose a thing is to be, by the names that an administrator types."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.identity import people
from moorage_cloud.identity.models import Project, User
from moorage_cloud.verbs import Caller


def add_arguments(parser: ArgumentParser, *, required: bool = True) -> None:
    """Take a user and a project."""
    usual = {} if required else {"default": ""}
    parser.add_argument("--user", required=required, help="name or ID", **usual)
    parser.add_argument("--project", required=required, help="name or ID", **usual)


def owner(options: Mapping[str, Any]) -> Caller:
    """Return who was named; `NotFound` for who is not known here."""
    return Caller(
        user(options["user"]), project(options["project"]), request_id="snf-manage"
    )


def user(name: str) -> str:
    """Return a user's id; where identity is not ours, what was typed is one."""
    return people.user(name).pk if name and User.objects.exists() else name


def project(name: str) -> str:
    """Return a project's id; as with :func:`user`."""
    return people.project(name).pk if name and Project.objects.exists() else name
