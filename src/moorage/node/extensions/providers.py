# SPDX-License-Identifier: BSD-2-Clause
"""The ExtStorage providers that this node has: a scan of the search path."""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path

from msgspec.structs import replace

from moorage.errors import Failed
from moorage.model import Provider
from moorage.node.machine.trust import distrust, distrust_below
from moorage.storage import Command
from moorage.storage.provider import (
    BY_UUID,
    OPTIONAL,
    PARAMETERS,
    PLACES,
    SCRIPTS,
    FileFact,
    judge,
    unreadable,
    unusable,
)
from moorage.storage.validation import is_provider_name

from . import provider_settings
from .examples import opener

OPENER = "VOL_OPEN"
"""The variable that names the program by which scripts open files over no link."""


@dataclass(frozen=True, slots=True)
class Providers:
    """Where providers are on this node, and how they are to be run here.

    Attributes
    ----------
    search_path
        Directories of providers; the first hit wins.
    settings
        Where the administrator's files about them are; None for nowhere.
    """

    search_path: Sequence[Path]
    settings: Path | None = None

    def scan(self) -> list[Provider]:
        """Return a record of every visible entry of every directory, in order.

        A directory of the search path that does not exist has no entries; one name in
        two directories gives two records. See :func:`moorage.storage.provider.usable`.
        """
        return [
            self._judged(look(entry))
            for folder in self.search_path
            for entry in visible(folder)
        ]

    def applied(self, command: Command) -> Command:
        """Return a command as it is to be run here: a provider's has its settings.

        Raises
        ------
        Failed
            If the provider's file cannot be used.
        """
        at = Path(command.cwd)
        if at.parent not in self.search_path:
            return command
        command = changed(command, env={**command.env, OPENER: opener()})
        if self.settings is None:
            return command
        return provider_settings.read(self.settings, at.name).applied(command)

    def _judged(self, one: Provider) -> Provider:
        """Return a provider with what is wrong with its file, if something is."""
        if self.settings is None or one.problem:
            return one
        try:
            provider_settings.read(self.settings, one.name)
        except Failed as error:
            return replace(one, problem=error.message)
        return one


def look(entry: Path) -> Provider:
    """Return the record of one entry."""
    if not is_provider_name(entry.name) or not entry.is_dir():
        return unusable(entry.name, str(entry))
    listed = (*SCRIPTS, *OPTIONAL, PARAMETERS, BY_UUID)
    files = {name: fact(entry / name) for name in listed}
    lists = []
    for name in (PARAMETERS, PLACES):
        try:
            lists.append(_listed(entry / name))
        except OSError as error:
            why = error.strerror or "I/O error"
            return unreadable(entry.name, str(entry), why, name)
    found = judge(entry.name, str(entry), files, *lists)
    return found if found.problem else replace(found, problem=company(entry))


def _listed(path: Path) -> str:
    """Return what a list says; nothing of one that is not there."""
    return path.read_text(errors="replace") if path.is_file() else ""


def company(entry: Path) -> str:
    """Return what is wrong with the files that scripts may read beside themselves."""
    told = distrust_below(entry)
    return f"Path '{entry}' is not trusted: {told}" if told else ""


def visible(folder: Path) -> list[Path]:
    """Return what a directory holds, by name, without what starts with a dot."""
    if not folder.is_dir():
        return []
    entries = folder.iterdir()
    return sorted(entry for entry in entries if not entry.name.startswith("."))


def fact(path: Path) -> FileFact:
    """Return what is at a path, links followed, and who could change it."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return FileFact(missing=os.strerror(error.errno or 0))
    return FileFact(
        regular=stat.S_ISREG(mode),
        executable=bool(mode & stat.S_IXUSR),
        distrust=distrust(path),
    )
