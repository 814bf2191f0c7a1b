# SPDX-License-Identifier: BSD-2-Clause
"""``file``: raw images in a directory of one node."""

from pathlib import PurePosixPath
from typing import Any

from msgspec.structs import replace

from moorage.disk_templates import FACTS
from moorage.errors import BadInput, Failed
from moorage.model import Disk, Need, Unit, Volume
from moorage.storage.base import Template, VolumeRequest, nothing
from moorage.storage.capabilities import Can, Capabilities
from moorage.storage.command import (
    Command,
    Id,
    Opened,
    Outcome,
    Params,
    Settings,
    Steps,
    Where,
)
from moorage.storage.validation import check_image_directory, check_name
from moorage.units import MIB, Mib, mib_for

_DRIVER = "loop"
PROGRAMS = ("cp", "fallocate", "mkdir", "mv", "rm", "stat", "truncate")
_NOBODY = "detached"
"""The directory of disks that were made without an instance."""


class File(Template):
    """Image files, sparse unless the parameter ``preallocate`` is set.

    A file is never shrunk and never overwritten: sizes are asked for as "at least".
    Each command says how the node is to open what it names: who may write to the
    directory cannot lead it elsewhere.
    """

    name = "file"
    capabilities = Capabilities(
        facts=FACTS["file"],
        can=Can.CREATE | Can.GROW | Can.SNAPSHOT | Can.ROOM | Can.LIST,
        programs=PROGRAMS,
        images=True,
    )

    @classmethod
    def logical_id(cls, request: VolumeRequest) -> tuple[Any, ...]:
        """Return ``("loop", path)``, as Ganeti does."""
        name = request.name(cls.name)
        root = cls._root_of(request.settings, request.params)
        folder = PurePosixPath(root, request.folder, request.instance or _NOBODY)
        return (_DRIVER, cls._inside(f"{folder}/{name}", root))

    @classmethod
    def snapshot_id(cls, disk: Disk, name: str) -> tuple[Any, ...]:
        """Return the identity of a file called `name` beside the disk's own."""
        check_name("snapshot", name)
        return (_DRIVER, f"{PurePosixPath(disk.volume).parent}/{name}")

    @classmethod
    def unit_key(cls, settings: Settings, params: Params, logical_id: Id = ()) -> str:
        """Return the directory."""
        root = cls._root_of(settings, params)
        return root or super().unit_key(settings, params, logical_id)

    @classmethod
    def at_rest(cls, disk: Disk) -> Where | None:
        """Return the file: it is there, or the directory is not mounted."""
        return Where(path=disk.volume)

    @classmethod
    def parameters(cls, given: Params) -> dict[str, Any]:
        """Return the parameters; a directory of its own is none of the system's."""
        kept = super().parameters(given)
        if "directory" in kept:
            kept["directory"] = PurePosixPath(kept["directory"]).as_posix()
            check_image_directory("directory", kept["directory"])
        return kept

    @classmethod
    def _root_of(cls, settings: Settings, params: Params) -> str:
        (name,) = cls.capabilities.facts.settings
        return str(params.get("directory") or settings.get(name, ""))

    def _root(self, disk: Disk) -> str:
        return self._root_of(self.site.settings, disk.params)

    @classmethod
    def _inside(cls, path: str, root: str) -> str:
        if not root:
            raise BadInput(f"no directory is configured for disk template '{cls.name}'")
        pure = PurePosixPath(path)
        if ".." in pure.parts or not pure.is_relative_to(root) or path == root:
            raise BadInput(f"file {path} lies outside of {root}", path=path, root=root)
        return str(pure)

    def create(self, disk: Disk) -> Steps[Outcome]:
        """Make the file; one of the same size is left alone, another one refused."""
        disk = yield from self._here(disk)
        path = self._path(disk)
        yield from self._check_root(disk)
        size = yield from self._bytes(path)
        if size == disk.size * MIB:
            return Outcome.UNCHANGED
        if size:  # an empty one is what an interrupted create leaves
            raise Failed(
                f"file {path} exists with {size} bytes instead of "
                f"{disk.size * MIB}: it is not overwritten",
                path=path,
            )
        for folder in self._folders(disk):
            yield _on(Opened.ENTRY, "mkdir", "--parents", "--", folder)
        steps = self._extend(disk, path, Mib(0), disk.size)
        yield from self._made(path, steps)
        return Outcome.CHANGED

    def remove(self, disk: Disk) -> Steps[Outcome]:
        """Delete the file, and the instance's directory once it is empty."""
        disk = yield from self._here(disk)
        path = self._path(disk)
        yield from self._check_root(disk)
        folder = str(PurePosixPath(path).parent)
        there = yield _on(Opened.DIRECTORY, "test", "-d", folder, check=False)
        if there.code:
            return Outcome.UNCHANGED
        removed = yield _rm(path, _half(path))
        if not folder.endswith(f"/{_NOBODY}") and folder != self._root(disk):
            yield _on(Opened.ENTRY, "rmdir", "--", folder, check=False)
        return Outcome.CHANGED if removed.stdout else Outcome.UNCHANGED

    def attach(self, disk: Disk) -> Steps[Where]:
        """Check that the file is there; nothing has to be mapped."""
        disk = yield from self._here(disk)
        path = self._path(disk)
        found = yield _on(Opened.FILE, "test", "-f", path, check=False)
        if found.code:
            raise self._missing(path)
        return Where(path=path)

    def detach(self, disk: Disk) -> Steps[Outcome]:
        """Do nothing: a file needs no mapping."""
        del disk
        return nothing()

    def grow(self, disk: Disk, to: Mib) -> Steps[Outcome]:
        """Extend the file to `to` MiB; where there is no room, it stays as it was."""
        disk = yield from self._here(disk)
        path = self._path(disk)
        size = yield from self._bytes(path)
        if size is None:
            raise self._missing(path)
        if size >= to * MIB:
            return Outcome.UNCHANGED
        try:
            yield from self._extend(disk, path, Mib(size // MIB), to)
        except Failed:
            # What was added was shown to nobody yet.
            back = ("truncate", f"--size={size}", "--", path)
            yield _on(Opened.FILE, *back, check=False)
            raise
        return Outcome.CHANGED

    def snapshot(self, disk: Disk, name: str, size: Mib) -> Steps[Outcome]:
        """Copy the file beside itself, sharing blocks where the file system can.

        Without shared blocks the copy takes a while: what a running guest writes
        meanwhile may or may not be in it.
        """
        disk = yield from self._here(disk)
        path = self._path(disk)
        target = str(self.snapshot_id(disk, name)[-1])
        there = yield _on(Opened.FILE, "test", "-f", target, check=False)
        if not there.code:
            return Outcome.UNCHANGED
        yield from self._made(_half(target), _copied(path, target, size))
        return Outcome.CHANGED

    def measure(self, disk: Disk) -> Steps[Mib]:
        """Return the file's length."""
        disk = yield from self._here(disk)
        path = self._path(disk)
        size = yield from self._bytes(path)
        if size is None:
            raise self._missing(path)
        return Mib(size // MIB)

    def examine(self) -> Steps[tuple[Need, ...]]:
        """Ask for the directory; the node says whether it allows image files there."""
        root = self._root_of(self.site.settings, self.site.params)
        if not root:
            why = f"no directory is set for disk template '{self.name}'"
            return (Need(kind="directory", name="", problem=why),)
        found = yield _on(Opened.DIRECTORY, "test", "-d", root, check=False)
        why = f"there is no directory {root}" if found.code else ""
        return (Need(kind="directory", name=root, problem=why),)

    def room(self) -> Steps[tuple[Unit, ...]]:
        """Ask the file system of the directory, if that is there."""
        root = self._root_of(self.site.settings, self.site.params)
        if not root:
            return ()
        asked = ("stat", "--file-system", "--format=%S %b %a", "--", f"{root}/.")
        told = yield Command(asked, check=False, reads=True)
        if told.code:
            return ()
        unit = Unit(template=self.name, key=root)
        if told.stdout.strip():
            block, total, free = map(int, told.stdout.split())
            sizes = (Mib(blocks * block // MIB) for blocks in (total, free))
            unit = replace(unit, **dict(zip(("total", "free"), sizes, strict=True)))
        return (unit,)

    def volumes(self, params: Params) -> Steps[tuple[Volume, ...]]:
        """Return the regular files below the directory; no link is followed."""
        root = self._root_of(self.site.settings, params)
        if not root:
            return ()
        shown = ("-type", "f", "-printf", "%s %P\\0")
        told = yield Command(
            ("find", "-H", root, "-ignore_readdir_race", *shown),
            images={root: Opened.DIRECTORY},
            reads=True,
            whole=True,
        )
        lines = (line.split(" ", 1) for line in told.stdout.split("\0") if line)
        return tuple(
            Volume(
                logical_id=(_DRIVER, f"{root}/{path}"),
                size=mib_for(int(size)),
            )
            for size, path in lines
        )

    def _here(self, disk: Disk) -> Steps[Disk]:
        """Return a disk with the path of its file on this node, once it can be used."""
        return disk
        yield  # what makes this a generator

    def _path(self, disk: Disk) -> str:
        return self._inside(disk.volume, self._root(disk))

    def _folders(self, disk: Disk) -> list[str]:
        """Return the directories between the root and a file, outermost first."""
        root = self._root(disk)
        inside = PurePosixPath(self._path(disk)).relative_to(root).parents
        found = [str(PurePosixPath(root, folder)) for folder in inside]
        return found[-2::-1]

    def _missing(self, path: str) -> Failed:
        return Failed(f"there is no file {path} on node {self.site.node}", path=path)

    def _check_root(self, disk: Disk) -> Steps[None]:
        """Refuse to work below a mount point that is not mounted."""
        root = self._root(disk)
        found = yield _on(Opened.DIRECTORY, "test", "-d", root, check=False)
        if found.code:
            raise Failed(f"there is no directory {root} on node {self.site.node}")

    @staticmethod
    def _bytes(path: str) -> Steps[int | None]:
        """Return the file's length, None if there is no file."""
        command = ("stat", "--dereference", "--format=%s", "--", path)
        found = yield _on(Opened.FILE, *command, check=False)
        return None if found.code else int(found.stdout.strip() or 0)

    @staticmethod
    def _made(path: str, steps: Steps[None]) -> Steps[None]:
        """Run `steps` that make the file `path`; a half-made one is deleted."""
        try:
            yield from steps
        except Failed:
            yield _rm(path)
            raise

    @classmethod
    def _extend(cls, disk: Disk, path: str, old: Mib, new: Mib) -> Steps[None]:
        """Make the file `new` MiB long.

        Its length is asked for afterwards: util-linux before 2.39 says that
        ``fallocate --posix`` succeeded where there was no room.
        """
        if disk.params.get("preallocate"):
            span = (f"--offset={old * MIB}", f"--length={(new - old) * MIB}")
            yield _on(Opened.MADE, "fallocate", "--posix", *span, path)
        else:
            yield _at_least(path, new)
        size = yield from cls._bytes(path)
        if size is None or size < new * MIB:
            raise Failed(
                f"file {path} has {size or 0} bytes instead of {new * MIB}: its file "
                "system has no room for them",
                path=path,
            )


def _copied(path: str, target: str, size: Mib) -> Steps[None]:
    part = _half(target)
    yield Command(
        ("cp", "--reflink=auto", "--sparse=always", "--", path, part),
        images={path: Opened.FILE, part: Opened.MADE},
    )
    yield _at_least(part, size)
    yield Command(
        ("mv", "--no-target-directory", "--", part, target),
        images=dict.fromkeys((part, target), Opened.ENTRY),
    )


def _at_least(path: str, size: Mib) -> Command:
    return _on(Opened.MADE, "truncate", f"--size=>{size * MIB}", "--", path)


def _on(how: Opened, *argv: str, check: bool = True) -> Command:
    """Return a command on the image file or directory that is its last word."""
    looks = argv[0] in ("stat", "test")
    return Command(argv, check=check, images={argv[-1]: how}, reads=looks)


def _half(target: str) -> str:
    """Return where a copy grows before it gets its name."""
    return f"{target}.part"


def _rm(*paths: str) -> Command:
    return Command(
        ("rm", "--force", "--verbose", "--", *paths),
        images=dict.fromkeys(paths, Opened.ENTRY),
    )
