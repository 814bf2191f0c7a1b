# SPDX-License-Identifier: BSD-2-Clause
"""Exports on a node, in commands: begun, sealed, published, listed, removed.

An export is a directory below the node's export directory. It grows as ``NAME.new``;
once its files are synced it takes the name of an older one, which is then deleted.
Each step bears to be interrupted and repeated.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from msgspec import json
from msgspec.structs import replace

from moorage.errors import BadInput, Failed, NotFound
from moorage.model.export import HALF_MADE, REPLACED, Dump, Export, Form, check_name
from moorage.model.uidpool import UidPool
from moorage.units import MIB, Mib, mib_for

from . import manifest
from .command import Command, Confined, Content, Opened, Outcome, Steps
from .exports_ini import from_ini, to_ini
from .qcow2 import LENGTH, Header, header

MANIFEST, INI = "manifest.json", "config.ini"
MARK = ".mark"
"""The file that says who began an export that grows; a whole one has none."""
_SUM = 64
"""Digits of a SHA-256."""


class Exports:
    """The exports below a directory of a node.

    Parameters
    ----------
    root
        The directory: the node's own setting, which no master can change.
    """

    def __init__(self, root: str) -> None:
        self.root = root

    def folder(self, name: str) -> str:
        """Return the directory of an export."""
        return f"{self.root}/{check_name(name)}"

    def draft(self, name: str) -> str:
        """Return the directory of an export that grows."""
        return f"{self.root}/{check_name(name)}{HALF_MADE}"

    def growing(self, name: str, dump: Dump) -> str:
        """Return the path of a dump of an export that grows."""
        return f"{self.draft(name)}/{check_name(dump.file)}"

    def dump(self, name: str, dump: Dump) -> str:
        """Return the path of a dump of an export."""
        return f"{self.folder(name)}/{check_name(dump.file)}"

    def begin(self, name: str, mark: str) -> Steps[Outcome]:
        """Make a directory with a mark; what an interrupted export left goes away."""
        draft = self.draft(name)
        yield Command(("mkdir", "--parents", "--", self.root))
        yield _gone(draft)
        yield _at(Opened.ENTRY, "mkdir", "--", draft)
        yield _written(f"{draft}/{MARK}", mark)
        return Outcome.CHANGED

    def sweep(self, name: str, mark: str) -> Steps[Outcome]:
        """Remove what grew of an export with this mark, and nothing else."""
        draft = self.draft(name)
        told = yield _read(f"{draft}/{MARK}")
        if told.code or told.stdout != mark:
            return Outcome.UNCHANGED
        yield _gone(draft)
        return Outcome.CHANGED

    def drop(self, name: str) -> Steps[Outcome]:
        """Remove what is no export: what grew, and what was replaced.

        An older export whose place nothing took comes back.
        """
        folder, old = self.folder(name), f"{self.folder(name)}{REPLACED}"
        if (yield from _missing(self.root)):
            return Outcome.UNCHANGED
        yield _gone(self.draft(name))
        if (yield from _missing(folder)) and not (yield from _missing(old)):
            yield _renamed(old, folder)
        else:
            yield _gone(old)
        return Outcome.CHANGED

    def seal(
        self,
        name: str,
        export: Export,
        filled: Mapping[str, Mapping[str, Any]],
        *,
        marked: bool = False,
    ) -> Steps[Export]:
        """Write the manifest with lengths and checksums, and sync every file.

        Parameters
        ----------
        marked
            Whether the mark stays: what is sealed is not kept here.
        """
        draft = self.draft(name)
        found = list[Dump]()
        for dump in export.dumps:
            path = self.growing(name, dump)
            length = yield from _length(path)
            if length is None:
                raise Failed(f"dump {path} is gone: the export cannot be completed")
            digest = yield from _digest(path)
            size = yield from _held(path, dump, length)
            found.append(replace(dump, size=size, bytes=length, sha256=digest))
        sealed = replace(export, dumps=tuple(found))
        told = json.format(json.encode(sealed)).decode()
        texts = {f"{draft}/{MANIFEST}": told}
        if filled:
            texts[f"{draft}/{INI}"] = to_ini(sealed, filled)
        for path, text in texts.items():
            yield _written(path, text)
        for path in (*texts, *(self.growing(name, one) for one in sealed.dumps)):
            yield _at(Opened.FILE, "sync", "--", path)
        if not marked:
            yield _gone(f"{draft}/{MARK}")
        yield _at(Opened.DIRECTORY, "sync", "--", draft)
        return sealed

    def publish(self, name: str) -> Steps[Outcome]:
        """Give a sealed export its name; :meth:`drop` removes what it replaced.

        Either it is done, or what was there before is there again.
        """
        draft, folder = self.draft(name), self.folder(name)
        old = f"{folder}{REPLACED}"
        if (yield from _missing(draft)):
            if (yield from _missing(folder)):
                raise Failed(f"export {name} is gone before it was complete: {draft}")
            return Outcome.UNCHANGED
        if not (yield from _missing(folder)):
            yield _gone(old)
            yield _renamed(folder, old)
        try:
            yield _renamed(draft, folder)
        except Failed:
            if not (yield from _missing(old)):
                yield _renamed(old, folder)
            raise
        with suppress(Failed):  # it has its name, whatever a power loss makes of it
            yield _at(Opened.DIRECTORY, "sync", "--", self.root)
        return Outcome.CHANGED

    def remove(self, name: str, mark: str) -> Steps[Outcome]:
        """Make an export one that is not there; :meth:`drop` gives its room back."""
        folder, draft = self.folder(name), self.draft(name)
        if (yield from _missing(folder)):
            return Outcome.UNCHANGED
        yield _gone(f"{folder}{REPLACED}")
        yield _gone(draft)
        yield _renamed(folder, draft)
        with suppress(Failed):  # where there is no room, it is removed all the same
            yield _written(f"{draft}/{MARK}", mark)
        return Outcome.CHANGED

    def every(self) -> Steps[list[Export]]:
        """Return every export, half-made ones with their problem."""
        told = yield Command(
            (
                *("find", "-H", self.root, "-mindepth", "1", "-maxdepth", "1"),
                *("-type", "d", "-printf", "%f\\n"),
            ),
            check=False,
            images={self.root: Opened.DIRECTORY},
            reads=True,
        )
        found = list[Export]()
        for name in sorted(told.stdout.split("\n")):
            if name:
                found.append((yield from self._one(name)))
        return found

    def _one(self, name: str) -> Steps[Export]:
        try:
            return (yield from self.read(name))
        except (BadInput, Failed, NotFound) as error:
            half = name.endswith((HALF_MADE, REPLACED))
            problem = "it is half made" if half else error.message
            return Export(name=name, problem=problem)

    def read(self, name: str) -> Steps[Export]:
        """Return an export by its manifest, or by what Ganeti wrote.

        Raises
        ------
        NotFound
            If there is none of this name.
        BadInput
            If its manifest cannot be read, or names what is not in the directory.
        """
        folder = self.folder(name)
        told = yield _read(f"{folder}/{MANIFEST}")
        if not told.code:
            return manifest.decoded(name, told.stdout)
        told = yield _read(f"{folder}/{INI}")
        if told.code:
            raise NotFound(
                f"there is no export {name} in {self.root}", hint="gnt-backup list"
            )
        return (yield from self._measured(name, told.stdout))

    def _measured(self, name: str, text: str) -> Steps[Export]:
        """Return what Ganeti wrote, with the length of each dump."""
        export = manifest.checked(from_ini(name, manifest.bounded(name, text)))
        found = list[Dump]()
        for dump in export.dumps:
            length = yield from _length(self.dump(name, dump))
            found.append(replace(dump, bytes=length or 0))
        return replace(export, dumps=tuple(found))

    def verified(self, name: str, dump: Dump) -> Steps[str]:
        """Return what is wrong with a dump, in a sentence; empty if nothing is."""
        path = self.dump(name, dump)
        length = yield from _length(path)
        if length is None:
            return f"dump {dump.file} of export {name} is not there"
        if length != dump.bytes:
            return (
                f"dump {dump.file} of export {name} has {length} bytes, and its "
                f"manifest says {dump.bytes}"
            )
        if dump.sha256 and (yield from _digest(path)) != dump.sha256:
            return (
                f"dump {dump.file} of export {name} is not what was exported: its "
                "checksum differs"
            )
        return ""

    def look(self, name: str, dump: Dump) -> Steps[str]:
        """Return why the image of a dump must not be read; empty if it may be."""
        if dump.form is not Form.QCOW2:
            return ""
        try:
            found = yield from _header(self.dump(name, dump))
        except BadInput as error:
            return f"dump {dump.file} cannot be read: {error.message}"
        if found.foreign:
            return f"dump {dump.file} names another file: it is not what was exported"
        if found.size > dump.size * MIB:
            return f"dump {dump.file} is larger than the {dump.size} MiB of its disk"
        return ""

    def stamp(self, name: str, dump: Dump) -> Steps[str]:
        """Return what changes when a dump is written to: which file it is, and when.

        The kernel tells of each write from then on: what somebody had written into
        memory that is the file's is with the storage before.
        """
        path = self.dump(name, dump)
        yield _at(Opened.FILE, "sync", "--", path, check=False)
        form = "--format=%d:%i %s %.9Y %.9Z"
        told = yield _at(Opened.FILE, "stat", "--dereference", form, "--", path)
        return told.stdout

    def blank(self, name: str, dump: Dump, users: UidPool) -> Command:
        """Return what makes the file that a running guest's data are copied into."""
        path = self.growing(name, dump)
        return Command(
            ("qemu-img", "info", "-f", "raw", "--output=json", path),
            images={path: Opened.MADE},
            confined=Confined({path: grown(dump)}, users),
        )


class Growing(Exports):
    """The same directory, for who reads what grows there of an export."""

    def folder(self, name: str) -> str:
        """Return the directory of an export that grows."""
        return self.draft(name)


def grown(dump: Dump, *, packed: bool = False) -> Content:
    """Return the content of a dump that is to be written, empty at first."""
    size = dump.size * MIB
    return Content(dump.form.value, writes=True, made=size, packed=packed)


def _missing(path: str) -> Steps[bool]:
    found = yield _at(Opened.DIRECTORY, "test", "-d", path, check=False)
    return bool(found.code)


def _length(path: str) -> Steps[int | None]:
    found = yield _at(
        Opened.FILE, "stat", "--dereference", "--format=%s", "--", path, check=False
    )
    return None if found.code else int(found.stdout.strip() or 0)


def _held(path: str, dump: Dump, length: int) -> Steps[Mib]:
    """Return the MiB that a dump needs to be restored, at least those of its disk.

    Storage rounds up: the volume of a disk may be larger than it was asked for.
    """
    if dump.form is Form.OS:
        return dump.size
    if dump.form is Form.QCOW2:
        length = (yield from _header(path)).size
    return max(dump.size, mib_for(length))


def _header(path: str) -> Steps[Header]:
    words = ("od", "-A", "n", "-v", "-t", "x1", "-N", str(LENGTH), "--", path)
    return header((yield _at(Opened.FILE, *words)).stdout)


def _digest(path: str) -> Steps[str]:
    told = yield _at(Opened.FILE, "sha256sum", "--binary", "--", path)
    return told.stdout.lstrip("\\")[:_SUM]


def _read(path: str) -> Command:
    words = ("head", f"--bytes={manifest.LARGEST + 1}", "--", path)
    return _at(Opened.FILE, *words, check=False)


def _written(path: str, text: str) -> Command:
    return Command(("printf", "%s", text), images={path: Opened.MADE}, stdout=path)


def _renamed(old: str, new: str) -> Command:
    return Command(
        ("mv", "--no-target-directory", "--", old, new),
        images=dict.fromkeys((old, new), Opened.ENTRY),
    )


def _gone(path: str) -> Command:
    return _at(Opened.ENTRY, "rm", "--recursive", "--force", "--", path)


def _at(how: Opened, *argv: str, check: bool = True) -> Command:
    """Return a command on the one of its last words that is a path."""
    path = next(word for word in reversed(argv) if word.startswith("/"))
    looks = argv[0] in ("stat", "test", "head", "od", "sha256sum")
    return Command(argv, check=check, images={path: how}, reads=looks)
