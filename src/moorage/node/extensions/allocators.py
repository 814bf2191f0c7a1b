# SPDX-License-Identifier: BSD-2-Clause
"""Allocators: programs that say where instances go, in Ganeti's search path.

A program reads one file and prints an answer, so it runs as a user that nobody else
is, without any capability, in a directory of its own.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from moorage.errors import AllocatorFailed, CommandFailed, NotFound
from moorage.node.machine import commands, users
from moorage.node.machine.scripts import Scripts
from moorage.node.machine.trust import distrust
from moorage.protocol import RunAllocator, Said
from moorage.storage import Command, limits

SEARCH_PATH = ("/usr/local/lib/ganeti/iallocators", "/usr/lib/ganeti/iallocators")
_NAME = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_MESSAGE = "message.json"
_LONGEST = 8 << 20
"""Bytes of an answer: Ganeti's hail needs some 5 MiB to move 10,000 instances."""


@dataclass(frozen=True, slots=True)
class Allocators:
    """The allocators of a node.

    Attributes
    ----------
    path
        The directories where they are looked for, the first ones first.
    scripts
        Where each is noted while it runs.
    limit
        Seconds that one may take.
    apart
        Whether it runs as a user that nobody else is; else as the agent does, which
        is for simulated nodes: their directories are the agent's alone.
    """

    path: Sequence[Path]
    scripts: Scripts | None = None
    limit: float = limits.ALLOCATOR
    apart: bool = True

    def names(self) -> tuple[str, ...]:
        """Return what can be asked for."""
        found = (one.name for place in self.path for one in _entries(place))
        return tuple(sorted({name for name in found if self._program(name)}))

    async def run(self, asked: RunAllocator) -> Said:
        """Run one, and return what it printed.

        Raises
        ------
        NotFound
            If there is none of that name.
        AllocatorFailed
            If others than root could have written it, or it fails, or does not end.
        """
        name = asked.allocator
        program = self._program(name)
        if program is None:
            told = ", ".join(map(str, self.path))
            raise NotFound(
                f"there is no allocator '{name[:80]}' in {told}",
                hint="it is a file of that name that can be executed",
            )
        if problem := distrust(program):
            raise AllocatorFailed(f"{program} is not run: {problem}")
        user_of = (
            users.lent(asked.uid_pool) if self.apart else nullcontext(users.User())
        )
        with user_of as user, _directory(user) as place:
            file = place / _MESSAGE
            _write(file, asked.message, user)
            words = (str(program), str(file), *asked.arguments)
            command = Command(
                (*user.words(), *words),
                env={"TMPDIR": str(place), "HOME": str(place)},
                cwd=str(place),
                failure=f"allocator '{name}'",
                whole=True,
            )
            try:
                found = await commands.run(
                    command, timeout=self.limit, scripts=self.scripts
                )
            except CommandFailed as error:
                raise AllocatorFailed(" ".join(error.message.split())) from None
        if len(found.stdout) > _LONGEST:
            most = _LONGEST >> 20
            raise AllocatorFailed(f"allocator '{name}' printed more than {most} MiB")
        return Said(output=found.stdout)

    def _program(self, name: str) -> Path | None:
        if not _NAME.fullmatch(name):
            return None
        found = (place / name for place in self.path)
        return next((one for one in found if _runs(one)), None)


def _entries(place: Path) -> list[Path]:
    try:
        return list(place.iterdir())
    except OSError:
        return []


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


@contextmanager
def _directory(user: users.User) -> Iterator[Path]:
    """Yield a directory that is that user's alone, and will be gone."""
    place = Path(tempfile.mkdtemp(prefix="moorage-iallocator."))
    try:
        if user.uid is not None and user.gid is not None:
            os.chown(place, user.uid, user.gid)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _write(file: Path, text: str, user: users.User) -> None:
    made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(made, "w", encoding="utf-8") as handle:
        if user.uid is not None and user.gid is not None:
            os.fchown(made, user.uid, user.gid)
        handle.write(text)
