# SPDX-License-Identifier: BSD-2-Clause
"""OpenStack's own clients, as they come from their packages."""

import json
import os
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from site_of_people import SECRET, Person

Run = Callable[..., Any]


def become(person: Person, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AUTH_URL": f"{address}/identity/v3",
        "USERNAME": person.user.name,
        "PASSWORD": SECRET,
        "PROJECT_NAME": person.project.name,
        "USER_DOMAIN_ID": "default",
        "PROJECT_DOMAIN_ID": "default",
    }.items():
        monkeypatch.setenv(f"OS_{name}", value)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the environment say nothing about anybody."""
    for name in [one for one in os.environ if one.startswith("OS_")]:
        monkeypatch.delenv(name)


class OpenStack:
    """The command ``openstack``, for who the environment says."""

    def __init__(self, directory: Path) -> None:
        self.out, self.err = directory / "out", directory / "err"

    def __call__(self, line: str, *, fails: str = "", tells: bool = True) -> Any:
        """Run it; return what it prints, as data where a command tells some.

        Parameters
        ----------
        fails
            What it is to say when it fails; empty if it is to succeed.
        """
        words = line.split() + (["-f", "json"] if tells else [])
        shell = openstack_shell()
        status = in_a_process(lambda: shell().run(words), self.out, self.err)
        printed = self.out.read_text()
        assert (status != 0) == bool(fails), printed + self.err.read_text()
        assert fails in self.err.read_text()
        return json.loads(printed) if tells and not fails else printed


def openstack_shell() -> Callable[[], Any]:
    """Return the program; it takes a second to load, and few tests use it."""
    with warnings.catch_warnings(action="ignore"):
        return import_module("openstackclient.shell").OpenStackShell


def in_a_process(program: Callable[[], int], out: Path, err: Path) -> int:
    """Run a program that is loaded already in a process of its own.

    It keeps what it knows of one user for the next otherwise, and loading it takes a
    second.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 99
    try:
        with out.open("w") as printed, err.open("w") as told:
            sys.stdout, sys.stderr = printed, told
            status = program()
    finally:
        os._exit(status)
