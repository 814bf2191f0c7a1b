# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's ``ssconf`` files on a node: written for scripts, and taken away again.

Files of Ganeti's own that lie there are put into a directory beside them first, whole,
and come back. What was interrupted is gone on with: as long as that directory is there,
the files beside it are ours, but for those that are on their way back.
"""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from moorage import durable
from moorage.errors import BadInput, Failed
from moorage.node.machine.trust import distrust

DIRECTORY = "/var/lib/ganeti"
ASIDE = "ssconf-of-ganeti"
"""Name of the directory with what lay there before."""
_ASIDE_DRAFT = f"{ASIDE}.draft"
_RETURNING = "returning"
"""There when ours are gone, and Ganeti's come back one by one."""
_OWNER = "owner"
"""Whose Ganeti's directory was, if not root's: user and group, by number."""
_DONE = f"{ASIDE}.done"
"""What :data:`ASIDE` is called when all have come back, until it is gone."""
_PREFIX = "ssconf_"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,60}")
_MOST = 8 << 20
"""Bytes of a file: a hundred thousand instances."""
_MANY = 100
"""Files that there can be."""


@dataclass(frozen=True, slots=True)
class SsconfFiles:
    """The files in a directory.

    Attributes
    ----------
    directory
        Ganeti's; it need not be there.
    """

    directory: Path

    @property
    def written(self) -> bool:
        """Whether the files there are ours."""
        return _is_own(self._aside)

    @property
    def _aside(self) -> Path:
        return self.directory / ASIDE

    @property
    def _done(self) -> Path:
        return self.directory / _DONE

    def problem(self) -> str:
        """Return why the files cannot be written; empty if they can."""
        if self._belongs_to_ganeti():
            told = distrust(self.directory.parent)
        else:
            told = distrust(self.directory)
        if told:
            return f"root does not write there: {told}"
        if self.directory.is_symlink() or self.directory.is_file():
            return f"{self.directory} is no directory"
        return ""

    def _belongs_to_ganeti(self) -> bool:
        """Whether root can take the directory from a user, who alone writes there."""
        try:
            known = self.directory.lstat()
        except FileNotFoundError:
            return False
        alone = stat.S_ISDIR(known.st_mode) and not known.st_mode & 0o022
        return alone and known.st_uid != os.geteuid() == 0

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, those that changed; put Ganeti's aside, the first time.

        Parameters
        ----------
        files
            Texts by name, without ``ssconf_``.

        Raises
        ------
        BadInput
            If it is none of their names, or too long.
        Failed
            If others could change what lies there.
        """
        for name, text in files.items():
            if not _NAME.fullmatch(name) or len(text) > _MOST or len(files) > _MANY:
                raise BadInput(f"'{name[:60]}' is no ssconf file, or too long")
        if told := self.problem():
            raise Failed(told)
        self.directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        owner = self._taken()
        if (self._aside / _RETURNING).exists() or _is_own(self._done):
            self.restore()  # it was interrupted, and gives the directory back
            owner = self._taken() or owner
        if not self.written:
            self._put_aside(owner)
        for name, text in files.items():
            _write(self.directory / f"{_PREFIX}{name}", _lines(text))

    def restore(self) -> None:
        """Remove our files, and bring Ganeti's back; nothing if none are ours."""
        if _is_own(self.directory):
            self._finish()
        if not _is_own(self.directory):  # it is, for as long as ours are there
            return
        draft = self.directory / _ASIDE_DRAFT
        if _is_own(draft) and not self.written:  # nothing was written yet
            self._bring_back(draft)
        if not self.written:
            return
        mark = self._aside / _RETURNING
        if not mark.exists():
            for path in _files(self.directory):
                path.unlink()
            durable.sync(self.directory)
            durable.write(mark, b"")
        self._bring_back(self._aside)

    def _taken(self) -> bytes:
        """Make the directory root's, and return whose it was; empty if it is.

        Ganeti's belongs to a user of its own, who must not say where root writes.

        Raises
        ------
        Failed
            If somebody else has made what only we make there.
        """
        handle = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            known = os.fstat(handle)
            taken = known.st_uid != os.geteuid()
            if taken:
                os.fchown(handle, 0, 0)
        finally:
            os.close(handle)
        ours = (self._aside, self.directory / _ASIDE_DRAFT, self._done)
        for made in ours:
            if os.path.lexists(made) and not _is_own(made):
                if taken:
                    os.chown(self.directory, known.st_uid, known.st_gid)
                raise Failed(f"{made} is not root's")
        return b"%d %d" % (known.st_uid, known.st_gid) if taken else b""

    def _put_aside(self, owner: bytes) -> None:
        draft = self.directory / _ASIDE_DRAFT
        draft.mkdir(mode=0o700, exist_ok=True)
        if owner:
            durable.write(draft / _OWNER, owner)
        for path in _files(self.directory):
            path.rename(draft / path.name)
        durable.sync(draft)
        draft.rename(self._aside)
        durable.sync(self.directory)

    def _bring_back(self, kept: Path) -> None:
        for path in _files(kept):
            path.rename(self.directory / path.name)
        durable.sync(self.directory)
        kept.rename(self._done)  # at once: from now on nothing here is ours
        durable.sync(self.directory)
        self._finish()

    def _finish(self) -> None:
        """Remove what is left of a return, and give the directory to whose it was."""
        if not _is_own(self._done):
            return
        note = self._done / _OWNER
        was = note.read_bytes().split() if note.exists() else []
        for left in self._done.iterdir():  # notes: Ganeti's files are out of it
            left.unlink()
        self._done.rmdir()
        if was:  # not before: its user could put another directory there
            os.chown(self.directory, int(was[0]), int(was[1]))


def _is_own(directory: Path) -> bool:
    """Whether there is a directory of this process's user's, and no link to one."""
    try:
        known = directory.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(known.st_mode) and known.st_uid == os.geteuid()


def _files(directory: Path) -> list[Path]:
    return sorted(directory.glob(f"{_PREFIX}*"))


def _lines(text: str) -> bytes:
    return f"{text}\n".encode() if text and not text.endswith("\n") else text.encode()


def _write(path: Path, data: bytes) -> None:
    """Write a file that everybody can read, if it has other content."""
    if not path.is_file() or path.read_bytes() != data:
        durable.write(path, data, 0o444)
