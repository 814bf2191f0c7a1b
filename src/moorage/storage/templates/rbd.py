# SPDX-License-Identifier: BSD-2-Clause
"""``rbd``: images of a Ceph cluster, mapped by the kernel or reached by QEMU itself."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moorage.disk_templates import FACTS
from moorage.errors import BadInput, Failed
from moorage.model import Disk, Need, Unit, Volume
from moorage.storage.base import Template, VolumeRequest
from moorage.storage.capabilities import Can, Capabilities
from moorage.storage.command import Command, Id, Outcome, Params, Settings, Steps, Where
from moorage.storage.validation import checked_access, is_userspace
from moorage.units import MIB, Mib, mib_for

from .ext import plain

_DRIVER = "rbd"
_ABSENT = 2
"""The exit status for what is not there."""
_PATIENCE = "10"
"""Seconds to look for a cluster that may be down."""
_NOTE = "note"
"""The key of the note beside an image."""


class Rbd(Template):
    """RADOS block devices; the kernel maps them unless userspace access is wanted.

    Snapshots are clones. An image that has clones lets them become whole before it is
    destroyed.
    """

    name = "rbd"
    capabilities = Capabilities(
        facts=FACTS["rbd"],
        can=Can.CREATE
        | Can.GROW
        | Can.SNAPSHOT
        | Can.CLONE
        | Can.USERSPACE
        | Can.SETINFO
        | Can.ROOM
        | Can.LIST,
        programs=("rbd", "ceph"),
    )

    @classmethod
    def logical_id(cls, request: VolumeRequest) -> tuple[Any, ...]:
        """Return ``("rbd", image)``, as Ganeti does; the pool is a parameter."""
        if not _pool(request.params):
            raise BadInput(
                f"no Ceph pool is configured for disk template '{cls.name}'",
                hint="gnt-cluster modify -D rbd:pool=NAME",
            )
        return (_DRIVER, request.name(cls.name))

    @classmethod
    def parameters(cls, given: Params) -> dict[str, Any]:
        """Return the parameters; names of Ceph's are plain ones."""
        kept = super().parameters(given)
        checked_access(kept)
        for name in {"pool", "user-id"} & kept.keys():
            if not _is_plain(kept[name]):
                raise BadInput(f"'{kept[name]}' is not a {name} of Ceph's")
        return kept

    @classmethod
    def unit_key(cls, settings: Settings, params: Params, logical_id: Id = ()) -> str:
        """Return the pool, and the file that names its cluster, if it is not Ceph's."""
        del settings, logical_id
        conf = params.get("conf")
        return f"{_pool(params)}@{conf}" if conf else _pool(params)

    def create(self, disk: Disk) -> Steps[Outcome]:
        """Make the image; one of the same size is left alone, another one refused."""
        found = yield from self._look(disk, disk.volume)
        if found is None:
            size = ("--size", f"{disk.size}M")
            yield self._rbd(disk, "create", *size, _image(disk))
            return Outcome.CHANGED
        if found["size"] != disk.size * MIB:
            raise Failed(
                f"image {_image(disk)} exists with {found['size'] // MIB} MiB instead "
                f"of {disk.size}: it is not overwritten",
                disk=disk.uuid,
            )
        return Outcome.UNCHANGED

    def remove(self, disk: Disk) -> Steps[Outcome]:
        """Destroy the image, after its clones have become whole."""
        if (yield from self._look(disk, disk.volume)) is None:
            return Outcome.UNCHANGED
        listed = yield self._asked(disk, "children", "--all", _image(disk))
        for child in json.loads(listed.stdout or "[]"):
            whole = f"{child['pool']}/{child['image']}"
            yield self._rbd(disk, "flatten", "--no-progress", whole)
        yield self._rbd(disk, "snap", "purge", "--no-progress", _image(disk))
        yield self._rbd(disk, "rm", "--no-progress", _image(disk))
        return Outcome.CHANGED

    def attach(self, disk: Disk) -> Steps[Where]:
        """Map the image, unless QEMU reaches it itself; twice is once."""
        yield from self._there(disk)
        uris = {"kvm": self._uri(disk)}
        if is_userspace(disk.params):
            return Where(uris=uris)
        mapped = yield from self._mapped(disk)
        for device in mapped:
            there = yield Command(("test", "-b", device), check=False, reads=True)
            if not there.code:
                return Where(path=device, block=True, uris=uris)
            yield self._rbd(disk, "unmap", device)  # its device is gone
        told = yield self._rbd(disk, "map", _image(disk))
        return Where(path=told.stdout.strip(), block=True, uris=uris)

    def detach(self, disk: Disk) -> Steps[Outcome]:
        """Unmap the image, if it is mapped here."""
        if is_userspace(disk.params):
            return Outcome.UNCHANGED
        mapped = yield from self._mapped(disk)
        for device in mapped:
            yield self._rbd(disk, "unmap", device)
        return Outcome.CHANGED if mapped else Outcome.UNCHANGED

    def grow(self, disk: Disk, to: Mib) -> Steps[Outcome]:
        """Enlarge the image to `to` MiB; a larger one is left alone."""
        found = yield from self._there(disk)
        if found["size"] >= to * MIB:
            return Outcome.UNCHANGED
        yield self._resize(disk, disk.volume, to)
        return Outcome.CHANGED

    def snapshot(self, disk: Disk, name: str, size: Mib) -> Steps[Outcome]:
        """Make a clone of a snapshot that nobody sees, which goes with the clone."""
        if (yield from self._look(disk, name)) is None:
            try:
                yield from self._clone(disk, name, size)
            except Failed as error:
                yield from self._unmake(disk, name, error)
                raise
        else:
            yield from self._finish(disk, name, size)
        return Outcome.CHANGED

    def _unmake(self, disk: Disk, name: str, why: Failed) -> Steps[None]:
        """Take back a clone that failed; what stays there is said to be in doubt."""
        half = ("rm", "--no-progress", _image(disk, name))
        drop = ("snap", "rm", "--no-progress", f"{_image(disk)}@{name}")
        try:
            yield replace(self._rbd(disk, *half), check=False)
            yield replace(self._rbd(disk, *drop), check=False)
            left = yield from self._look(disk, name)
        except Failed:
            left = {}
        if left is not None:
            why.facts["killed"] = True

    def _clone(self, disk: Disk, name: str, size: Mib) -> Steps[None]:
        source = f"{_image(disk)}@{name}"
        if not (yield from self._has_snapshot(disk, name)):
            yield self._rbd(disk, "snap", "create", "--no-progress", source)
        form = ("--rbd-default-clone-format", "2")
        yield self._rbd(disk, "clone", *form, source, _image(disk, name))
        yield from self._finish(disk, name, size)

    def _finish(self, disk: Disk, name: str, size: Mib) -> Steps[None]:
        """Hide the snapshot of a clone, and make the clone as large as it is to be."""
        if (yield from self._has_snapshot(disk, name)):
            source = f"{_image(disk)}@{name}"
            yield self._rbd(disk, "snap", "rm", "--no-progress", source)
        copy = yield from self._there(disk, name)
        if copy["size"] < size * MIB:
            yield self._resize(disk, name, size)

    def _has_snapshot(self, disk: Disk, name: str) -> Steps[bool]:
        told = yield self._asked(disk, "snap", "ls", _image(disk))
        return name in {one["name"] for one in json.loads(told.stdout or "[]")}

    def setinfo(self, disk: Disk, text: str) -> Steps[Outcome]:
        """Keep the note in the image's metadata."""
        yield self._rbd(disk, "image-meta", "set", _image(disk), _NOTE, plain(text))
        return Outcome.CHANGED

    def measure(self, disk: Disk) -> Steps[Mib]:
        """Return the image's size."""
        found = yield from self._there(disk)
        return Mib(found["size"] // MIB)

    def examine(self) -> Steps[tuple[Need, ...]]:
        """Ask the cluster for the pool."""
        params = self.site.params
        pool = _pool(params)
        if not pool:
            why = "no Ceph pool is set: gnt-cluster modify -D rbd:pool=NAME"
            return (Need(kind="pool", name="", problem=why),)
        words = ("namespace", "ls", pool, "--format", "json")
        try:
            yield Command(("rbd", *_options(params), *words), reads=True)
        except Failed as error:
            return (Need(kind="pool", name=pool, problem=error.message),)
        return (Need(kind="pool", name=pool),)

    def room(self) -> Steps[tuple[Unit, ...]]:
        """Ask the cluster for the pool; a node that reaches none has no such unit."""
        params = self.site.params
        if not _pool(params):  # nobody said that there is Ceph
            return ()
        ask = ("--connect-timeout", _PATIENCE, "df", "--format", "json")
        try:
            told = yield Command(("ceph", *_options(params), *ask), reads=True)
        except Failed:  # no Ceph here
            return ()
        return tuple(
            _unit(self.unit_key({}, params), one["stats"])
            for one in json.loads(told.stdout)["pools"]
            if one["name"] == _pool(params)
        )

    def volumes(self, params: Params) -> Steps[tuple[Volume, ...]]:
        """Return the images of a pool."""
        words = ("ls", "--long", "--format", "json", _pool(params))
        told = yield Command(("rbd", *_options(params), *words), reads=True, whole=True)
        return tuple(
            Volume(logical_id=(_DRIVER, one["image"]), size=mib_for(one["size"]))
            for one in json.loads(told.stdout or "[]")
            if "snapshot" not in one
        )

    def _rbd(self, disk: Disk, *words: str) -> Command:
        return Command(("rbd", *_options(disk.params), *words))

    def _asked(self, disk: Disk, *words: str, check: bool = True) -> Command:
        argv = ("rbd", *_options(disk.params), *words, "--format", "json")
        return Command(argv, check=check, reads=True)

    def _look(self, disk: Disk, name: str) -> Steps[dict[str, Any] | None]:
        """Return what Ceph tells of an image; None if there is none.

        Whoever finds no cluster, or no pool, gets the same exit status. So the pool is
        asked for, too: else an image would be taken for gone that is out of sight.
        """
        told = yield self._asked(disk, "info", _image(disk, name), check=False)
        if told.code == _ABSENT:
            yield self._asked(disk, "namespace", "ls", _pool(disk.params))
            return None
        if told.code:  # again, to be told why
            told = yield self._asked(disk, "info", _image(disk, name))
        found: dict[str, Any] = json.loads(told.stdout or '{"size": 0}')
        return found

    def _there(self, disk: Disk, name: str = "") -> Steps[dict[str, Any]]:
        found = yield from self._look(disk, name or disk.volume)
        if found is None:
            raise Failed(f"there is no image {_image(disk, name)}", disk=disk.uuid)
        return found

    def _mapped(self, disk: Disk) -> Steps[list[str]]:
        """Return the devices that the image is mapped to on this node."""
        told = yield self._asked(disk, "showmapped")
        return [
            one["device"]
            for one in json.loads(told.stdout or "[]")
            if (one["pool"], one["name"]) == (_pool(disk.params), disk.volume)
            and one.get("snap", "-") in ("", "-")
        ]

    def _resize(self, disk: Disk, name: str, to: Mib) -> Command:
        words = ("--no-progress", "--size", f"{to}M", _image(disk, name))
        return self._rbd(disk, "resize", *words)

    def _uri(self, disk: Disk) -> str:
        words = {"conf": disk.params.get("conf"), "id": disk.params.get("user-id")}
        told = [f":{name}={_escaped(text)}" for name, text in words.items() if text]
        return f"rbd:{_image(disk)}{''.join(told)}"


def _pool(params: Params) -> str:
    return str(params.get("pool") or "")


def _image(disk: Disk, name: str = "") -> str:
    return f"{_pool(disk.params)}/{name or disk.volume}"


def _options(params: Params) -> tuple[str, ...]:
    """Return which cluster a program is to ask, and as whom."""
    given = {"--conf": params.get("conf"), "--id": params.get("user-id")}
    told = ((option, str(text)) for option, text in given.items() if text)
    return tuple(word for pair in told for word in pair)


def _unit(name: str, told: Mapping[str, int]) -> Unit:
    free = told["max_avail"]
    total = Mib((free + told["stored"]) // MIB)
    return Unit(template="rbd", key=name, total=total, free=Mib(free // MIB))


def _escaped(text: str) -> str:
    r"""Return text as a part of an ``rbd:`` URI.

    >>> _escaped("/etc/ceph/a:b.conf")
    '/etc/ceph/a\\:b.conf'
    """
    return "".join(f"\\{sign}" if sign in "\\:@=" else sign for sign in text)


def _is_plain(name: str) -> bool:
    """Whether a name means nothing else between the signs of a URI."""
    return (
        bool(name)
        and not name.startswith("-")
        and name.isascii()
        and (name.replace("-", "").replace("_", "").replace(".", "").isalnum())
    )
