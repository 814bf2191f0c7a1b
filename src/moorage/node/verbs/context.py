# SPDX-License-Identifier: BSD-2-Clause
"""What a verb works with: the node's name, machine, hypervisors and held disks."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from moorage.errors import Failed, NotFound, WrongState
from moorage.model import Disk, Os, Place
from moorage.node.certificates.keys import Keys
from moorage.node.doors.tickets import Tickets
from moorage.node.extensions import oses
from moorage.node.host import Machine
from moorage.node.hypervisors.base import Drive, Hypervisor
from moorage.node.records.attachments import Attachments
from moorage.node.records.copies import Copies
from moorage.node.records.creations import Creations
from moorage.node.records.drafts import Drafts
from moorage.node.records.fence import Fence
from moorage.node.records.leader import Leaders
from moorage.node.records.trials import Trials
from moorage.protocol import OnDisk, Report, silent
from moorage.storage import (
    Command,
    Output,
    Site,
    Steps,
    Template,
    Where,
    limits,
    template_named,
)
from moorage.storage.provider import usable

R = TypeVar("R")


async def drive(
    steps: Steps[R],
    run: Callable[[Command], Awaitable[Output]],
) -> R:
    """Run the commands that `steps` yield, and return what they return.

    A command that fails is thrown into `steps`, which may yield commands that clean
    up before they let the failure out.

    Raises
    ------
    MoorageError
        What the steps raise.
    """
    try:
        command = next(steps)
        while True:
            try:
                output = await run(command)
            except Failed as failure:
                command = steps.throw(failure)
            else:
                command = steps.send(output)
    except StopIteration as stop:
        result: R = stop.value
        return result
    finally:
        steps.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    """One node, as its verbs see it.

    Attributes
    ----------
    leaders
        Who leads, as the node heard it.
    copies
        Of the master's state, where the node is a candidate.
    leave
        Called when the node leaves its cluster.
    keys, tickets
        What it serves with, and what it waits with for those who bring a ticket; None
        where it is not asked over a network.
    """

    name: str
    machine: Machine
    hypervisors: Mapping[str, Hypervisor]
    attachments: Attachments
    creations: Creations
    drafts: Drafts
    trials: Trials
    fence: Fence
    leave: Callable[[], None]
    leaders: Leaders
    copies: Copies
    keys: Keys | None = None
    tickets: Tickets | None = None

    async def run(self, command: Command, report: Report = silent) -> Output:
        """Run one command of a template or an OS definition."""
        return await self.machine.run(command, limits.COMMAND, report)

    async def do(self, steps: Steps[R], report: Report = silent) -> R:
        """Run the commands that `steps` yield, and return what came of it."""
        return await drive(steps, partial(self.run, report=report))

    def template(self, name: str, **about: Any) -> Template:  # noqa: ANN401
        """Return a template, bound to this node; `about` is what else its site has."""
        kind = template_named(name)
        needed = kind.capabilities.provider
        providers = usable(self.machine.providers()) if needed else {}
        return kind(Site(node=self.name, providers=providers, **about))

    def template_of(self, args: OnDisk[object]) -> Template:
        """Return the template of the disk that a verb is about."""
        return self.template(
            args.disk.dev_type,
            hypervisor=args.hypervisor,
            settings=args.settings,
            pool=args.pool,
            holders=args.holders,
        )

    def template_at(self, place: Place) -> Template:
        """Return the template that looks at a place."""
        settings, params = dict(place.settings), dict(place.params)
        return self.template(
            place.template, settings=settings, params=params, pool=place.pool
        )

    @asynccontextmanager
    async def local(self, where: Where, hypervisor: str) -> AsyncIterator[Where]:
        """Yield a place with a path, as programs need that know no URI.

        A disk that has only a URI is a regular file meanwhile, of the same size; where
        the node cannot do that, it stays without a path.
        """
        uri = where.uris.get(hypervisor.lower())
        if where.path or not uri:
            yield where
            return
        async with self.machine.exported(uri) as path:
            yield replace(where, path=path) if path else where

    def oses(self) -> dict[str, Os]:
        """Return the OS definition that each name stands for."""
        return oses.usable(self.machine.oses())

    def hypervisor(self, name: str) -> Hypervisor:
        """Return a hypervisor of this node."""
        try:
            return self.hypervisors[name]
        except KeyError:
            raise NotFound(
                f"node {self.name} has no hypervisor '{name}'",
                known=sorted(self.hypervisors),
            ) from None

    def drive(self, disk: Disk, slot: int = 0) -> Drive:
        """Return an attached disk as a drive of a guest."""
        return Drive(
            disk=disk.uuid,
            slot=slot,
            size=disk.size,
            where=self.where(disk),
            userspace=disk.params.get("access") == "userspace",
            mode=disk.mode,
            limits=self.attachments.limits(disk.uuid),
        )

    def where(self, disk: Disk) -> Where:
        """Return where an attached disk is."""
        where = self.attachments.get(disk.uuid)
        if where is None:
            raise WrongState(
                f"disk {disk.label} is not attached on node {self.name}", disk=disk.uuid
            )
        return where
