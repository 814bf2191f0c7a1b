# SPDX-License-Identifier: BSD-2-Clause
"""Whose a thing is to be, by the names that an administrator types."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from moorage_cloud.verbs import Caller

from . import find


def add_arguments(parser: ArgumentParser, *, required: bool = True) -> None:
    """Take a user and a project."""
    usual = {} if required else {"default": ""}
    parser.add_argument("--user", required=required, help="name or ID", **usual)
    parser.add_argument("--project", required=required, help="name or ID", **usual)


def owner(options: Mapping[str, Any]) -> Caller:
    """Return who was named; `NotFound` for who is not known here."""
    return Caller(
        find.user(options["user"]),
        find.project(options["project"]),
        request_id="snf-manage",
    )
