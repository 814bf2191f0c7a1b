# SPDX-License-Identifier: BSD-2-Clause
"""``gluster``: image files of a Gluster volume, mounted or reached by QEMU itself."""

from pathlib import PurePosixPath
from typing import Any

from msgspec.structs import replace

from moorage.disk_templates import FACTS
from moorage.errors import BadInput, CommandFailed, Failed
from moorage.model import Disk, Need, Unit, Volume
from moorage.storage.base import VolumeRequest
from moorage.storage.capabilities import Can, Capabilities
from moorage.storage.command import (
    Command,
    Id,
    Opened,
    Params,
    Settings,
    Steps,
    Where,
)
from moorage.storage.validation import check_name, checked_access, is_userspace

from .file import PROGRAMS, File

_DRIVER = "loop"
_FOLDER = "ganeti"
"""The directory of images in a volume, as in Ganeti."""
_USUAL = {"host": "127.0.0.1", "port": 24007, "volume": "gv0"}
"""What stands for a parameter that is not given, as in Ganeti."""
_SETTING = "gluster_storage_dir"


class Gluster(File):
    """Image files that every node reaches over the network.

    Files are made and changed through a mount, which the node makes where there is
    none; guests open them there, or with userspace access by their URI.
    """

    name = "gluster"
    capabilities = Capabilities(
        facts=FACTS["gluster"],
        can=Can.CREATE | Can.GROW | Can.SNAPSHOT | Can.USERSPACE | Can.ROOM | Can.LIST,
        programs=(*PROGRAMS, "findmnt", "mount.glusterfs"),
        modules=("fuse",),
    )

    @classmethod
    def logical_id(cls, request: VolumeRequest) -> tuple[Any, ...]:
        """Return ``("loop", path)``, below the volume's root, as Ganeti does."""
        if not cls._root_of(request.settings, request.params):
            raise BadInput(
                f"no directory is configured for disk template '{cls.name}'",
                hint="gnt-cluster modify --gluster-storage-dir=DIR",
            )
        return (_DRIVER, f"{_FOLDER}/{request.name(cls.name)}")

    @classmethod
    def parameters(cls, given: Params) -> dict[str, Any]:
        """Return the parameters; host and volume are plain names."""
        kept = super().parameters(given)
        checked_access(kept)
        for name in {"host", "volume"} & kept.keys():
            check_name(name, kept[name])
        return kept

    @classmethod
    def unit_key(cls, settings: Settings, params: Params, logical_id: Id = ()) -> str:
        """Return the volume, with its server."""
        del settings, logical_id
        return _source(params)

    @classmethod
    def at_rest(cls, disk: Disk) -> Where | None:
        """Return None: attach mounts the volume first."""
        del disk
        return None

    @classmethod
    def _root_of(cls, settings: Settings, params: Params) -> str:
        """Return where the volume is mounted: each has a directory of its own."""
        directory = settings.get(_SETTING, "")
        return f"{directory}/{_given(params, 'volume')}" if directory else ""

    def attach(self, disk: Disk) -> Steps[Where]:
        """Check that the file is there; the guest opens it, or QEMU its URI."""
        found = yield from super().attach(disk)
        if is_userspace(disk.params):
            yield from self._let_in(str(found.path))
        server = f"{_given(disk.params, 'host')}:{_given(disk.params, 'port')}"
        at = f"{_given(disk.params, 'volume')}/{disk.volume}"
        uris = {"kvm": f"gluster+tcp://{server}/{at}"}
        path = None if is_userspace(disk.params) else found.path
        return Where(path=path, uris=uris)

    def examine(self) -> Steps[tuple[Need, ...]]:
        """Try to mount the volume."""
        source = _source(self.site.params)
        try:
            yield from self._mounted(self.site.params)
        except Failed as error:
            return (Need(kind="volume", name=source, problem=error.message),)
        return (Need(kind="volume", name=source),)

    def room(self) -> Steps[tuple[Unit, ...]]:
        """Ask the mounted volume; a node that cannot mount it has no such unit."""
        if not self._root_of(self.site.settings, self.site.params):
            return ()
        try:
            yield from self._mounted(self.site.params)
        except Failed:
            return ()
        found = yield from super().room()
        key = _source(self.site.params)
        return tuple(replace(unit, key=key) for unit in found)

    def volumes(self, params: Params) -> Steps[tuple[Volume, ...]]:
        """Return the files of the volume."""
        yield from self._mounted(params)
        root = self._root_of(self.site.settings, params)
        found = yield from super().volumes(params)
        return tuple(
            replace(
                one, logical_id=(_DRIVER, one.logical_id[1].removeprefix(f"{root}/"))
            )
            for one in found
        )

    def _here(self, disk: Disk) -> Steps[Disk]:
        """Mount the volume, and return the disk with the path of its file in it."""
        yield from self._mounted(disk.params)
        root = self._root(disk)
        path = self._inside(str(PurePosixPath(root, disk.volume)), root)
        return replace(disk, logical_id=(_DRIVER, path))

    def _let_in(self, path: str) -> Steps[None]:
        """Let QEMU open the file, which is a user without rights in the volume, too.

        Gluster asks for no proof of who somebody is: what is kept from others is kept
        by its own lists of addresses (``auth.allow``).
        """
        folder = str(PurePosixPath(path).parent)
        enter = ("chmod", "o+x", "--", folder)
        yield Command(enter, images={folder: Opened.DIRECTORY})
        write = ("chmod", "o+rw", "--", path)
        yield Command(write, images={path: Opened.FILE})

    def _mounted(self, params: Params) -> Steps[None]:
        """Mount the volume, if it is not.

        Raises
        ------
        Failed
            If something else is mounted in its place, or it cannot be mounted.
        """
        root, source = self._root_of(self.site.settings, params), _source(params)
        if not root:
            raise Failed(f"no directory is configured for disk template '{self.name}'")
        if (yield from self._is_mounted(root, source)):
            return
        made = ("mkdir", "--parents", "--", root)
        yield Command(made, images={root: Opened.ENTRY})
        port = f"server-port={_given(params, 'port')}"
        try:
            yield Command(("mount", "-t", "glusterfs", "-o", port, source, root))
        except CommandFailed:  # another step may have mounted it meanwhile
            if not (yield from self._is_mounted(root, source)):
                raise

    def _is_mounted(self, root: str, source: str) -> Steps[bool]:
        """Return whether the volume is mounted; fail if something else is there."""
        look = ("findmnt", "--noheadings", "--output", "SOURCE", "--mountpoint", root)
        there = yield Command(look, check=False, reads=True)
        if there.code:
            return False
        for mounted in there.stdout.split():  # two steps at a time: it is there twice
            if mounted.replace(":/", ":") != source:
                raise Failed(
                    f"{mounted} is mounted at {root} on node {self.site.node} "
                    f"instead of {source}",
                    path=root,
                )
        return True


def _given(params: Params, name: str) -> str:
    return str(params.get(name) or _USUAL[name])


def _source(params: Params) -> str:
    """Return what is mounted: ``host:volume``."""
    return f"{_given(params, 'host')}:{_given(params, 'volume')}"
