# SPDX-License-Identifier: BSD-2-Clause
"""A cluster whose door somebody can stand in, and of which a model hears."""

from collections.abc import Callable
from dataclasses import dataclass, field

from cloud_model import Model
from django.db import connection
from docks import JobFailed, Pier
from msgspec.structs import replace

from moorage_cloud.requests import AnyRequest, Destroy, Leave, Take
from moorage_cloud.requests import Snapshot as Copy


class Killed(BaseException):
    """Whoever did this is no more; nothing of ours may catch it."""


@dataclass
class Berth(Pier):
    """A cluster whose door somebody can stand in.

    Attributes
    ----------
    model
        Is told what became of data.
    meanwhile
        What else happens before it answers next.
    kills
        Whether who asks next is dead before the answer.
    late, half
        Whether the next job does its work, or half of it, and ends as failed.
    was_off
        Whether it was switched off at some time.
    left
        Steps until it answers again, or is on.
    wide
        Volumes that a guest has open here, and can write to.
    reasons
        Why each key was asked for.
    """

    model: Model = field(default_factory=Model)
    meanwhile: Callable[[], object] | None = None
    kills: bool = False
    late: bool = False
    half: bool = False
    was_off: bool = False
    left: int = 0
    wide: set[str] = field(default_factory=set)
    reasons: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def submit(self, request: AnyRequest, key: str, reason: str) -> int:
        if not self.deaf:
            asked = (reason, type(request).__name__, getattr(request, "name", ""))
            said = self.reasons.setdefault(key, asked)
            assert said == asked, "one key, two requests"
        return super().submit(request, key, reason)

    def _answer(self) -> None:
        assert not connection.in_atomic_block, "a cluster is asked in a transaction"
        what, self.meanwhile = self.meanwhile, None
        if what:
            what()
        if self.kills:
            self.kills = False
            raise Killed
        super()._answer()

    def _do(self, number: int, request: AnyRequest, *, cancel: bool) -> None:
        if self.half and isinstance(request, Leave | Destroy) and not cancel:
            self._takes_off(request)
        super()._do(number, request, cancel=cancel)
        self.wide &= self.known.keys()
        if isinstance(request, Copy):
            self.model.copied(request.name, request.snapshot)
        if self.late:
            raise JobFailed("it was done, and something else failed")

    def _takes_off(self, request: Leave | Destroy) -> None:
        """Take a disk from its instance, and get no further."""
        disk = self.known.get(request.name)
        if disk and disk.instance and disk.instance == request.instance:
            self.known[request.name] = replace(disk, instance=None)
            self.wide.discard(request.name)
            raise JobFailed("it is off its instance, and a script failed")

    def _take(self, request: Take) -> None:
        stale = request.adopt and request.epoch <= self.epochs.get(request.name, -1)
        assert self.was_off or not stale, "an epoch that was seen before"
        self.model.named(request.name)
        super()._take(request)
        if self.statuses.get(request.instance or "") == "running":
            self.wide.add(request.name)

    def _destroy(self, name: str) -> None:
        super()._destroy(name)
        self.model.destroyed(name)

    def loses_power(self) -> None:
        """Let all guests end."""
        self.deaf = self.silent = self.was_off = True
        self.wide.clear()

    def boots(self) -> None:
        """Let its guests have what the storage still gives them."""
        self.deaf = self.silent = False
        for name, disk in self.known.items():
            runs = self.statuses.get(disk.instance or "") == "running"
            if runs and disk.epoch >= self.epochs.get(name, 0):
                self.wide.add(name)

    def moves(self, name: str) -> None:
        """Let a guest go elsewhere in this cluster, which counts the epoch on."""
        if name in self.wide:
            disk = self.known[name]
            self.epochs[name] = disk.epoch + 1
            self.known[name] = replace(disk, epoch=disk.epoch + 1)
