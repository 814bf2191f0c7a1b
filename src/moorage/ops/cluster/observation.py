# SPDX-License-Identifier: BSD-2-Clause
"""What verify works with: everything that was seen, and what is wrong with it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import Struct

from moorage.errors import MoorageError
from moorage.jobs import Ask, View
from moorage.model import Config, Disk, GuestState, Node, NodeFacts, NodeGroup
from moorage.ops.volumes.directories import places_on
from moorage.ops.volumes.identity import is_adopted
from moorage.protocol import GetFacts


class Finding(Struct, frozen=True):
    """One thing that is not as it should be.

    Attributes
    ----------
    object
        Kind and name: ``disk data1``.
    hint
        A command to type.
    warning
        Whether nothing is broken yet.
    notice
        Whether it may well be as it should be, and is told all the same.
    code
        Of its own, for programs; empty for most.
    ecode
        Ganeti's, where it is not the one of the check; empty for most.
    """

    object: str
    message: str
    hint: str = ""
    warning: bool = False
    code: str = ""
    notice: bool = False
    ecode: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """The configuration, and what the nodes said.

    Attributes
    ----------
    facts
        By the uuid of each node that answered.
    silent
        Why a node did not, by uuid; nodes that are marked offline are in neither.
    running
        Nodes and guests that run, by the guest's uuid.
    """

    view: View
    facts: dict[str, NodeFacts]
    silent: dict[str, MoorageError]
    running: dict[str, list[tuple[Node, GuestState]]]

    @property
    def config(self) -> Config:
        """The snapshot."""
        return self.view.config

    def nodes(self) -> Iterator[tuple[Node, NodeFacts]]:
        """Yield the nodes that answered, by name, with what they said."""
        for node in self.config.named(Node):
            if node.uuid in self.facts:
                yield node, self.facts[node.uuid]


def ask_facts(config: Config) -> Iterator[Ask[NodeFacts]]:
    """Ask every node that is not marked offline for all that it knows of itself."""
    where = places_on(config)
    for node in config.online():
        yield Ask(node.uuid, GetFacts(places=where(node)))


def see(view: View) -> Seen:
    """Return what the nodes said, in order."""
    facts: dict[str, NodeFacts] = {}
    silent: dict[str, MoorageError] = {}
    running: dict[str, list[tuple[Node, GuestState]]] = defaultdict(list)
    for question in ask_facts(view.config):
        node = view.config.node(question.node)
        try:
            told = view.answer(question)
        except MoorageError as error:
            silent[node.uuid] = error
            continue
        if told is None:
            continue  # it was added since the nodes were asked
        facts[node.uuid] = told
        for guest in told.guests:
            if guest.runs:
                running[guest.uuid].append((node, guest))
    return Seen(view, facts, silent, running)


def adopted_disks(config: Config) -> Iterator[tuple[Disk, NodeGroup]]:
    """Yield the disks that are devices of somebody else's, with their group."""
    for disk in config.named(Disk):
        group = group_uuid(config, disk)
        if is_adopted(disk) and group:
            yield disk, config.group(group)


def group_uuid(config: Config, disk: Disk) -> str | None:
    """Return the uuid of the group where a disk is used, or was last."""
    owner = config.owner(disk)
    if owner:
        return config.home(owner).group
    return disk.group if disk.group in config.objects else None
