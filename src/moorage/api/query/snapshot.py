# SPDX-License-Identifier: BSD-2-Clause
"""What queries are evaluated on: a snapshot, the jobs, and what nodes said."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from moorage.errors import MoorageError
from moorage.jobs import Job
from moorage.jobs.turns import let_go
from moorage.model import Config, Disk, GuestState, Instance, NodeFacts
from moorage.model.export import Export
from moorage.protocol import CopyStatus

Progress = Callable[[int], dict[str, Any] | None]


@dataclass
class Snapshot:
    """Everything that a getter may look at; pure data.

    Attributes
    ----------
    jobs
        Jobs by number.
    archived
        The numbers of those that were put away.
    locks
        Returns the rows of :meth:`moorage.jobs.locks.Locks.rows`.
    progress
        How far a job's running task has come.
    facts
        What nodes said, by uuid; an error where one failed to say. Nodes that were
        not asked, and nodes that are marked offline, are not in it.
    copies
        Of the master's state, by the uuid of the candidate.
    exports
        Likewise the exports that lie on nodes.
    """

    config: Config
    jobs: Mapping[int, Job] = field(default_factory=dict)
    archived: AbstractSet[int] = frozenset()
    locks: Callable[[], list[dict[str, Any]]] = list
    progress: Progress = lambda _number: None
    facts: dict[str, NodeFacts | MoorageError] = field(default_factory=dict)
    copies: Mapping[str, CopyStatus] = field(default_factory=dict)
    exports: Mapping[str, list[Export] | MoorageError] = field(default_factory=dict)

    def let_go(self) -> None:
        """Forget what nodes said, bit by bit, once the rows are made."""
        let_go(self.facts)
        for name in ("guests", "holders", "secondaries"):
            let_go(vars(self).get(name, {}))

    @cached_property
    def guests(self) -> dict[str, list[tuple[str, GuestState]]]:
        """Guests that run, each with the uuid of its node, by the guest's uuid."""
        found: dict[str, list[tuple[str, GuestState]]] = defaultdict(list)
        for node, facts in self.facts.items():
            if isinstance(facts, NodeFacts):
                for guest in facts.guests:
                    if guest.runs:
                        found[guest.uuid].append((node, guest))
        return found

    @cached_property
    def powered_off(self) -> set[tuple[str, str]]:
        """Nodes and guests that powered themselves off there, by their uuids."""
        return {
            (node, guest)
            for node, facts in self.facts.items()
            if isinstance(facts, NodeFacts)
            for guest in facts.powered_off
        }

    @cached_property
    def holders(self) -> dict[str, list[str]]:
        """Uuids of the nodes that have a disk attached, by the disk's uuid."""
        found: dict[str, list[str]] = defaultdict(list)
        for node, facts in self.facts.items():
            for held in facts.held if isinstance(facts, NodeFacts) else ():
                found[held.disk].append(node)
        return found

    @cached_property
    def secondaries(self) -> dict[str, list[Instance]]:
        """Instances by the uuid of the nodes that hold a second copy of a disk."""
        found: dict[str, list[Instance]] = defaultdict(list)
        for disk in self.config.all(Disk):
            owner = self.config.owner(disk) if len(disk.nodes) > 1 else None
            for node in disk.nodes if owner else ():
                if owner and node != owner.primary_node and owner not in found[node]:
                    found[node].append(owner)
        return found
