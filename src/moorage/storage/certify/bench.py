# SPDX-License-Identifier: BSD-2-Clause
"""What a check of a provider works with: volumes of its own, and the scripts.

A check is a generator, as a template's verb is: it yields steps, receives what was
seen, and so runs on any node, and in a test without one.
"""

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct
from msgspec.structs import replace as with_fields

from moorage.model import Disk, Provider
from moorage.storage.command import Command, Site, Where
from moorage.storage.printed import parse_attach
from moorage.storage.templates.ext import Ext
from moorage.storage.uri import image_name
from moorage.units import MIB, Mib

PASSES, FAILS, MOOT = "passes", "fails", "not applicable"
_WRITTEN = 64 * 1024
"""Bytes of a pattern: at the beginning of a volume, and at an offset of as many."""

R = TypeVar("R")


class Broken(Exception):
    """The provider breaks the contract; the argument says how."""


class NotApplicable(Exception):
    """The check does not concern the provider; the argument says why."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a check.

    Attributes
    ----------
    makes, unmakes
        The disk whose volume is there after it, or is not. A node notes it, so that
        nothing is left behind if it is interrupted.
    """

    command: Command
    makes: Disk | None = None
    unmakes: Disk | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a step.

    Attributes
    ----------
    ok
        Whether it exited with 0.
    printed
        Its standard output.
    said
        Why it failed: one sentence and the last lines.
    killed
        Whether it was ended before its time.
    seconds
        How long it took.
    """

    ok: bool
    printed: str = ""
    said: str = ""
    killed: bool = False
    seconds: float = 0.0


Doing = Generator[Step, Seen, R]
"""Yield steps, receive what was seen, return something."""
Part = Doing[None]
"""What is done on one node."""
Remark = Doing[str]
"""The same, with a remark for the report; empty for none."""


class CheckResult(Struct, frozen=True, kw_only=True):
    """What came of a check, or of a part of one.

    Attributes
    ----------
    verdict
        ``passes``, ``fails`` or ``not applicable``.
    why
        What was seen, for the last two; a remark for the first.
    """

    check: str
    verdict: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be certified.

    Attributes
    ----------
    run
        What tells the volumes of this certification from all others.
    size
        Of the volumes, in MiB; what grows has twice as much then.
    """

    provider: str
    run: str
    params: Mapping[str, Any]
    size: Mib


class Bench:
    """The scripts of a provider on one node, for one check.

    Parameters
    ----------
    check
        Its name: volumes are called after it.
    """

    def __init__(self, order: Order, site: Site, check: str) -> None:
        self.order = order
        self.site = site
        self.check = check
        self._ext = Ext(site)

    @property
    def provider(self) -> Provider:
        """The provider as this node has it."""
        return self.site.providers[self.order.provider]

    def needs(self, *scripts: str) -> None:
        """Raise `NotApplicable` if the provider lacks a script that it may lack."""
        for script in scripts:
            if script not in self.provider.optional:
                raise NotApplicable(f"it has no script '{script}'")

    def prefix(self) -> str:
        """Return how the names of this check's volumes begin; of all, for no check."""
        return f"certify-{self.order.run}.{self.check and f'{self.check}.'}"

    def disk(self, word: str = "a", *, volume: str = "", named: bool = True) -> Disk:
        """Return a disk of this check, whose volume nobody made yet."""
        volume = volume or f"{self.prefix()}{word}"
        return Disk(
            uuid=str(uuid5(NAMESPACE_URL, volume)),
            name=volume if named else None,
            dev_type=Ext.name,
            logical_id=(self.order.provider, volume),
            size=self.order.size,
            params={"provider": self.order.provider, **self.order.params},
            epoch=1,
        )

    def copy_of(self, disk: Disk, size: Mib) -> Disk:
        """Return the disk that a snapshot of another one is."""
        name = f"{disk.volume}.snap"
        copy = with_fields(self.disk(volume=name), size=size, name=None, cname=name)
        return with_fields(copy, uuid=disk.uuid)

    def script(
        self, action: str, disk: Disk, *args: object, **more: object
    ) -> Doing[Seen]:
        """Run a script, whatever comes of it."""
        return (yield self._step(action, disk, args, more))

    def cut_short(
        self, seconds: float, action: str, disk: Disk, *args: object
    ) -> Doing[Seen]:
        """Run a script, and kill it after so many seconds."""
        step = self._step(action, disk, args, {})
        return (yield replace(step, command=replace(step.command, limit=seconds)))

    def must(
        self, action: str, disk: Disk, *args: object, **more: object
    ) -> Doing[Seen]:
        """Run a script that has to succeed.

        Raises
        ------
        Broken
            If it does not.
        """
        return _succeeded((yield from self.script(action, disk, *args, **more)))

    def refuses(
        self, why: str, action: str, disk: Disk, *args: object, **more: object
    ) -> Doing[Seen]:
        """Run a script that has to fail.

        Raises
        ------
        Broken
            If it succeeds; `why` says what is wrong with that.
        """
        seen = yield from self.script(action, disk, *args, **more)
        if seen.ok:
            raise Broken(f"{action} succeeds {why}")
        return seen

    def listed(self) -> Doing[Seen]:
        """Run ``list``, which has to succeed."""
        return _succeeded((yield self._tool(self._ext.volumes(self.disk().params))))

    def capacity(self) -> Doing[Seen]:
        """Run ``capacity``, which has to succeed."""
        return _succeeded((yield self._tool(self._ext.capacity(self.provider))))

    def _tool(self, steps: Generator[Command, Any, Any]) -> Step:
        try:
            command = next(steps)
        finally:
            steps.close()
        return Step(replace(command, log="", reads=False, check=True, progress=None))

    def _step(
        self, action: str, disk: Disk, args: tuple[object, ...], more: dict[str, object]
    ) -> Step:
        step = self._tool(getattr(self._ext, action)(disk, *args, **more))
        if action in ("create", "attach"):
            return replace(step, makes=disk)
        if action == "snapshot":
            return replace(step, makes=self.copy_of(disk, disk.size))
        return replace(step, unmakes=disk) if action == "remove" else step

    def made(self, disk: Disk) -> Doing[Where]:
        """Make a volume and attach it; return where it is."""
        yield from self.must("create", disk)
        return (yield from self.attached(disk))

    def attached(self, disk: Disk) -> Doing[Where]:
        """Attach a volume; return where it is.

        Raises
        ------
        Broken, Failed
            If that fails, or what is printed is no answer.
        """
        return self.told((yield from self.must("attach", disk)))

    def told(self, seen: Seen) -> Where:
        """Return where a volume is, by what ``attach`` printed."""
        return parse_attach(self.order.provider, seen.printed)

    def target(self, where: Where) -> str:
        """Return what QEMU's programs take for a place: the device, else the URI.

        Raises
        ------
        Broken
            If there is neither.
        """
        if where.path:
            return where.path
        uri = where.uris.get(self.site.hypervisor)
        if not uri:
            raise Broken(
                f"it has neither a device nor a URI for {self.site.hypervisor}: "
                f"{', '.join(sorted(where.uris))}"
            )
        return image_name(uri)

    def is_block(self, path: str) -> Doing[bool]:
        """Say whether there is a block device at a path."""
        return (yield Step(Command(("test", "-b", path)))).ok

    def size_of(self, where: Where) -> Doing[int]:
        """Return how large a volume is, in bytes."""
        words = ("qemu-img", "info", "--output=json", "-f", "raw")
        seen = yield from self._qemu(*words, self.target(where))
        if not seen.ok:
            raise Broken(f"its volume cannot be looked at: {seen.said}")
        return int(json.loads(seen.printed)["virtual-size"])

    def expects_size(self, where: Where, size: Mib, when: str) -> Doing[None]:
        """Raise `Broken` unless a volume has `size` MiB, or more: storage rounds up."""
        found = yield from self.size_of(where)
        if found < size * MIB:
            raise Broken(f"{when} it has {found} bytes, and not {size} MiB")

    def write(self, where: Where, pattern: int) -> Doing[None]:
        """Fill the beginning of a volume with a byte."""
        seen = yield from self._io(where, f"write -P {pattern} 0 {_WRITTEN}")
        if not seen.ok:
            raise Broken(f"its volume cannot be written: {seen.said}")

    def holds(self, where: Where, pattern: int) -> Doing[bool]:
        """Say whether the beginning of a volume is filled with a byte."""
        seen = yield from self._io(where, f"read -P {pattern} 0 {_WRITTEN}")
        return seen.ok and "verification failed" not in seen.printed

    def expects(self, where: Where, pattern: int, when: str) -> Doing[None]:
        """Raise `Broken` unless a volume holds what was written."""
        if not (yield from self.holds(where, pattern)):
            raise Broken(f"{when} its volume does not hold what was written")

    def _io(self, where: Where, what: str) -> Doing[Seen]:
        target = self.target(where)
        return (yield from self._qemu("qemu-io", "-f", "raw", "-c", what, target))

    def _qemu(self, *words: str) -> Doing[Seen]:
        return (yield Step(Command(words)))


def _succeeded(seen: Seen) -> Seen:
    if not seen.ok:
        raise Broken(seen.said)
    return seen
