# SPDX-License-Identifier: BSD-2-Clause
"""What root of a node lets the cluster do there beyond its work: off, until it says so.

A file of the node's says whether ``gnt-cluster command`` runs there, and another one
into which places ``gnt-cluster copyfile`` may write. Whoever has a master's key can do
no more than these allow.
"""

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from moorage import durable
from moorage.errors import BadInput, CommandFailed, Failed, Forbidden
from moorage.node.machine import commands
from moorage.node.machine.scripts import Scripts
from moorage.node.machine.trust import distrust
from moorage.protocol import Said
from moorage.protocol.orders import LARGEST
from moorage.storage import Command, limits

DIRECTORY = "/etc/ganeti"
COMMANDS = "cluster-command"
"""The file with the word ``yes`` where any command may be run."""
PLACES = "copyfile-paths"
"""The file that lists where files may be written: a file or a directory a line."""
LONGEST = 16 * 1024
"""Characters of a command."""
OUTPUT = 64 * 1024
"""Characters that are told of what a command prints: the last ones."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Orders:
    """What is allowed on a node.

    Attributes
    ----------
    directory
        Has both files; they need not be there.
    scripts
        Where a command is noted while it runs.
    """

    directory: Path
    scripts: Scripts | None = None

    async def run(self, text: str) -> Said:
        """Run a command of a shell's, and return what it printed.

        Raises
        ------
        BadInput
            If it is none, or too long.
        Forbidden
            If the node's administrator has not allowed it.
        Failed
            If it does not end.
        """
        if not text.strip() or "\0" in text or len(text) > LONGEST:
            raise BadInput(
                f"a command has 1 to {LONGEST} characters, none of them null"
            )
        file = self.directory / COMMANDS
        if _lines(file) != ["yes"]:
            raise Forbidden(
                "its administrator lets no master run commands here: "
                f"{file} does not say yes",
                hint=f"echo yes > {file}, by root of the node",
            )
        _LOG.info("the master has a command run: %r", text)
        argv = ("/bin/sh", "-c", f"exec 2>&1\n{text}")
        command = Command(argv, failure="command", check=False)
        try:
            found = await commands.run(
                command, timeout=limits.ADMIN_SCRIPT, scripts=self.scripts
            )
        except CommandFailed as error:
            raise Failed(" ".join(error.message.split())) from None
        told = found.stdout
        if len(told) > OUTPUT:
            told = f"(the last {OUTPUT} characters)\n{told[-OUTPUT:]}"
        return Said(output=told, code=found.code)

    def put(self, path: str, data: bytes, mode: int) -> None:
        """Write a file of root's, whole or not at all.

        Parameters
        ----------
        mode
            Who may read, write and run it: nine bits.

        Raises
        ------
        BadInput
            If it is no such path, or the file is too large.
        Forbidden
            If it is in none of the listed places.
        Failed
            If others could change what is there, or it cannot be written.
        """
        target = Path(path)
        if not target.is_absolute() or path != os.path.normpath(path):
            raise BadInput(f"{path[:200]} is no whole path of a file")
        if len(data) > LARGEST:
            raise BadInput(f"{path} has more than {LARGEST // 1024} KiB")
        self._check_listed(target)
        if told := distrust(target.parent):
            raise Failed(f"{path} is not written: {told}")
        if target.is_dir() or not target.parent.is_dir():
            what = "is a directory" if target.is_dir() else "has no directory here"
            raise Failed(f"{path} {what}")
        try:
            _write(target, data, mode & 0o777)
        except OSError as error:
            raise Failed(f"{path} cannot be written: {error.strerror}") from error
        _LOG.info("the master has written %s", path)

    def _check_listed(self, target: Path) -> None:
        """Raise `Forbidden` unless a file is in a listed place, by whatever link."""
        file = self.directory / PLACES
        listed = [Path(one) for one in _lines(file) if one.startswith("/")]
        real = target.parent.resolve() / target.name
        if _within(real, [self.directory.resolve()]):
            raise Forbidden(f"{target} says what this node lets the cluster do")
        resolved = [place.resolve() for place in listed]
        if not (_within(target, listed) and _within(real, resolved)):
            raise Forbidden(
                f"its administrator lets no master write {target}: {file} lists no "
                "such place",
                hint=f"a line in {file}, by root of the node",
            )


def _within(target: Path, listed: list[Path]) -> bool:
    whole = [place for place in listed if len(place.parts) > 1]  # never all there is
    return any(target.is_relative_to(place) for place in whole)


def _lines(file: Path) -> list[str]:
    """Return what an administrator's file says; nothing if others could have.

    Empty lines, and those that begin with ``#``, say nothing.
    """
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeError) as error:
        raise Failed(f"{file} cannot be read: {error}") from None
    if told := distrust(file):
        raise Failed(f"{file} is not believed: {told}")
    said = (line.strip() for line in lines)
    return [line for line in said if line and not line.startswith("#")]


def _write(target: Path, data: bytes, mode: int) -> None:
    draft = target.with_name(f".{target.name}.copyfile")  # nobody else's, as .x may be
    try:
        durable.write(draft, data, mode)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    durable.sync(target.parent)
