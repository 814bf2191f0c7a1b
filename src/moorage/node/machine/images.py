# SPDX-License-Identifier: BSD-2-Clause
"""The image files of this node: where they may be, and how they are opened.

The node's own list says in which directories, whatever the master asks for. Beneath
them no symbolic link is followed, for many may write there: every node, and the file
server. What was opened is handed on as a descriptor, so nobody can put something else
in its place between the look and the use.
"""

import errno
import fcntl
import logging
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from moorage.errors import Failed
from moorage.storage import Opened
from moorage.storage.uri import with_files
from moorage.storage.validation import is_of_the_system

from . import proc
from .beneath import open_beneath
from .trust import distrust

_LOG = logging.getLogger(__name__)
LIST = "/etc/ganeti/file-storage-paths"
"""Ganeti's list of the directories that image files may be kept in, one a line."""
UNLISTED = ("/srv/ganeti/file-storage", "/srv/ganeti/shared-file-storage")
"""What is allowed where there is no list: Ganeti's own places for image files.

Nothing else is kept there, and nobody makes them by chance."""
_SCRIPTS = 64
"""Numbers of descriptors that are left to scripts: they name them by one digit."""
EXPORTS = "/srv/ganeti/export"
"""Ganeti's directory of exports."""


@dataclass(frozen=True, slots=True)
class Handed:
    """What a program gets instead of paths.

    Attributes
    ----------
    words
        By path, what names the open file in the program.
    descriptors
        Those that it must inherit.
    front
        What is typed before the program, for it to have fewer rights.
    """

    words: Mapping[str, str]
    descriptors: Sequence[int]
    front: Sequence[str] = ()

    def word(self, path: str) -> str:
        """Return what the program gets for a word of its command.

        That may be a URI, in which files are named.
        """
        if self.words and path.startswith(("json:", "file:")):
            return with_files(path, self.words)
        return self.words.get(path, path)

    def argv(self, command: Sequence[str]) -> list[str]:
        """Return what is run for a command."""
        return [*self.front, *map(self.word, command)]

    def with_paths(self, said: str) -> str:
        """Return what the program said, with paths for the names that it was given."""
        for path, word in sorted(self.words.items(), key=lambda one: -len(one[1])):
            if word:
                said = said.replace(word, path.removesuffix("/."))
        return said


NOTHING = Handed({}, ())
"""What a command without image files gets."""
NO_PINS: Mapping[str, int] = MappingProxyType({})


class Images:
    """Opens image files, in the directories that this node allows.

    Parameters
    ----------
    node
        The node's name, for the sentences.
    listed
        The list. Lines that are empty or begin with ``#`` count for nothing, nor do
        directories of the system.
    state
        Directories of Moorage itself, which never hold images.
    exports
        The directory of the node's exports, which is opened in the same way. It needs
        no line in the list, and no disk is put there for that.
    """

    def __init__(
        self,
        node: str,
        listed: Path,
        state: Sequence[Path] = (),
        exports: str = EXPORTS,
    ) -> None:
        self._node = node
        self._listed = listed
        self._state = state
        self.exports = exports

    def allowed(self) -> tuple[str, ...]:
        """Return the directories that the node allows; none if its list is no good."""
        try:
            return self._directories()
        except Failed as error:
            _LOG.warning("%s", error.message)
            return ()

    def allows(self, path: str) -> bool:
        """Whether a path lies in a directory that the node allows, links or not."""
        pure = PurePosixPath(path)
        return any(pure.is_relative_to(one) for one in self.allowed())

    def open(self, path: str, flags: int) -> int:
        """Return a descriptor of the image file at an absolute path.

        Raises
        ------
        Failed
            If it is not there, is no regular file, lies outside of the directories
            that the node allows, or behind a symbolic link.
        """
        try:
            found = self._opened(path, Opened.FILE)
        except FileNotFoundError:
            told = f"there is no file {path} on node {self._node}"
            raise Failed(told, path=path) from None
        try:
            return os.open(proc.descriptor(found), flags | os.O_CLOEXEC)
        except OSError as error:
            raise self._refusal(path, error) from None
        finally:
            os.close(found)

    def create(self, path: str) -> int:
        """Return a descriptor, for writing, of an image file that is empty now.

        Raises
        ------
        Failed
            As :meth:`open` does, where it cannot be made.
        """
        try:
            os.close(self._opened(path, Opened.MADE))
        except FileNotFoundError:
            told = f"there is no directory for {path} on node {self._node}"
            raise Failed(told, path=path) from None
        return self.open(path, os.O_WRONLY | os.O_TRUNC)

    @contextmanager
    def handed(
        self, images: Mapping[str, Opened], pins: Mapping[str, int] = NO_PINS
    ) -> Iterator[Handed | None]:
        """Open what a command names; yield None if some of it is not there.

        Parameters
        ----------
        pins
            Descriptors of what is open already.

        Raises
        ------
        Failed
            As :meth:`open` does.
        """
        words: dict[str, str] = {}
        descriptors: list[int] = []
        with ExitStack() as stack:
            for path, how in images.items():
                try:
                    pin = pins.get(path)
                    found = self._opened(path, how) if pin is None else os.dup(pin)
                except FileNotFoundError:
                    if how is Opened.PLACE:
                        words[path] = ""
                        continue
                    yield None
                    return
                if how is Opened.PLACE:
                    found = _beyond(found)
                stack.callback(os.close, found)
                descriptors.append(found)
                name = f"/{PurePosixPath(path).name}" if how is Opened.ENTRY else ""
                words[path] = proc.descriptor(found) + name
            yield Handed(words, descriptors)

    def _directories(self) -> tuple[str, ...]:
        try:
            lines = self._listed.read_text().splitlines()
        except FileNotFoundError:
            return UNLISTED
        except (OSError, UnicodeError) as error:
            raise Failed(f"{self._listed} cannot be read: {error}") from None
        told = distrust(self._listed)
        if told:
            raise Failed(
                f"node {self._node} does not believe its list of directories for image "
                f"files, {self._listed}: {told}",
                hint=f"chown root {self._listed}; chmod 644 {self._listed}",
            )
        entries = [PurePosixPath(line.strip()) for line in lines if _counts(line)]
        return tuple(str(one) for one in entries if not is_of_the_system(one))

    def _place(self, path: str) -> tuple[Path, str]:
        """Return the allowed directory that a path is in, and the path beneath it.

        The directory is the administrator's word: links that lead to it are followed.
        """
        pure = PurePosixPath(path)
        if pure.is_relative_to(self.exports) and ".." not in pure.parts:
            return Path(self.exports).resolve(), str(pure.relative_to(self.exports))
        allowed = self._directories()
        around = [one for one in allowed if pure.is_relative_to(one)]
        if not around or ".." in pure.parts:
            told = ", ".join(allowed) or "none"
            raise Failed(
                f"node {self._node} keeps no image files at {pure}: its list "
                f"{self._listed} allows {told}",
                hint=f"echo DIRECTORY >>{self._listed}",
                path=path,
                node=self._node,
            )
        entry = max(around, key=len)
        root, inside = Path(entry).resolve(), pure.relative_to(entry)
        self._check_holds_images(path, root / inside)
        return root, str(inside)

    def _check_holds_images(self, path: str, real: Path) -> None:
        for state in self._state:
            if real.is_relative_to(state.resolve()):
                raise Failed(f"{path} is no image file: {state} is Moorage's own")
        if is_of_the_system(PurePosixPath(real)):
            raise Failed(f"{path} is no image file: {real} is of the system")

    def _opened(self, path: str, how: Opened) -> int:
        """Return a descriptor that is neither for reading nor for writing.

        Raises
        ------
        FileNotFoundError
            If nothing is there.
        Failed
            If it is something else than it must be, or not to be opened.
        """
        pure = PurePosixPath(path)
        place = str(pure.parent) if how is Opened.ENTRY else path
        try:
            if how in (Opened.ENTRY, Opened.DIRECTORY, Opened.PLACE):
                return self._beneath(place, os.O_PATH | os.O_DIRECTORY)
            if how is Opened.VOLUME and not self.allows(path):
                return open_named(path)
            if how is Opened.MADE:
                self._make(path)
            return self._regular(path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._refusal(path, error) from None

    def _make(self, path: str) -> None:
        with suppress(FileExistsError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            os.close(self._beneath(path, flags))

    def _regular(self, path: str) -> int:
        found = self._beneath(path, os.O_PATH)
        if stat.S_ISREG(os.fstat(found).st_mode):
            return found
        os.close(found)
        raise self._refusal(path, OSError(errno.EINVAL, "it is no regular file"))

    def _beneath(self, path: str, flags: int) -> int:
        place, inside = self._place(path)
        root = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return open_beneath(root, inside, flags)
        finally:
            os.close(root)

    def _refusal(self, path: str, error: OSError) -> Failed:
        why = error.strerror
        if error.errno in (errno.ELOOP, errno.EXDEV, errno.ENOTDIR):
            why = "a symbolic link, or no directory, is on the way"
        return Failed(
            f"node {self._node} does not open {PurePosixPath(path)}: {why}",
            hint=f"namei -lx {PurePosixPath(path)}",
            path=path,
            node=self._node,
        )


def open_named(path: str) -> int:
    """Return a descriptor of what a provider names, for neither reading nor writing.

    Where it is, is the provider's word. A link there may lead to a device, but not to a
    file: anybody who may write to a shared directory could put one there.

    Raises
    ------
    OSError
        ``ELOOP`` for such a link, ``EINVAL`` for what holds no data.
    """
    flags = os.O_PATH | os.O_CLOEXEC
    found = os.open(path, flags | os.O_NOFOLLOW)
    mode = os.fstat(found).st_mode
    if stat.S_ISREG(mode) or stat.S_ISBLK(mode):
        return found
    os.close(found)
    if not stat.S_ISLNK(mode):
        raise OSError(errno.EINVAL, "it is no file and no device", path)
    found = os.open(path, flags)
    if stat.S_ISBLK(os.fstat(found).st_mode):
        return found
    os.close(found)
    raise OSError(errno.ELOOP, "it is a symbolic link", path)


def _beyond(found: int) -> int:
    """Return the same descriptor under a number that no script takes for itself."""
    try:
        return fcntl.fcntl(found, fcntl.F_DUPFD_CLOEXEC, _SCRIPTS)
    finally:
        os.close(found)


def _counts(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith("#")
