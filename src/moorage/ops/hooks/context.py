# SPDX-License-Identifier: BSD-2-Clause
"""What hooks are told of: an operation, the cluster now, and as it is going to be."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from moorage.errors import NotFound
from moorage.jobs import Commit, Operation, Task
from moorage.model import Config, Disk, Entity, Instance, change

E = TypeVar("E", bound=Entity)


@dataclass(frozen=True)
class HookContext:
    """An operation that is about to do its tasks, or has done them.

    Attributes
    ----------
    config
        The cluster as it is.
    tasks
        What is to be done; none if it is done.
    """

    operation: Operation
    config: Config
    tasks: Sequence[Task] = ()

    def field(self, name: str) -> Any:  # noqa: ANN401 - whatever the field is
        """Return a field of the operation; None if it has no such field."""
        return getattr(self.operation, name, None)

    @cached_property
    def coming(self) -> dict[str, Entity]:
        """The objects that the tasks put, as they will be at last, by uuid."""
        commits = [one for one in self.tasks if isinstance(one, Commit)]
        changes = (change.from_json(one.change) for one in commits)
        return {one.uuid: one for made in changes for one in made.put}

    @cached_property
    def instance(self) -> Instance:
        """The instance that it is about, as it is; as it will be, if it is to be made.

        Raises
        ------
        NotFound
            If it is gone.
        """
        name = str(self.field("instance_name"))
        made = (one for one in self.coming.values() if isinstance(one, Instance))
        for one in made:
            if one.name == name and one.uuid not in self.config.objects:
                return one
        try:
            return self.config.instance(name)
        except NotFound:
            if self.field("new_name"):
                return self.config.instance(str(self.field("new_name")))
            raise

    @cached_property
    def moved(self) -> Instance:
        """The instance as it will be."""
        found = self.coming.get(self.instance.uuid)
        return found if isinstance(found, Instance) else self.instance

    def disks(self, instance: Instance) -> list[Disk]:
        """Return an instance's disks, were they still to be made."""
        known = self.config.objects
        found = [self.coming.get(one) or known.get(one) for one in instance.disks]
        return [one for one in found if isinstance(one, Disk)]

    def nodes(self, instance: Instance) -> list[str]:
        """Return the uuids of an instance's nodes, the primary one first."""
        held = [node for disk in self.disks(instance) for node in disk.nodes]
        return list(dict.fromkeys([instance.primary_node, *held]))

    def name(self, uuid: object) -> str:
        """Return the name of an object, or else the word itself."""
        known = self.config.objects.get(str(uuid))
        return str(getattr(known, "name", None) or uuid)
