# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-debug iallocator``: what an allocator would read, and what it would answer."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, field, json

from moorage import htools
from moorage.errors import BadInput, Exists
from moorage.htools.formats import iallocator as files
from moorage.jobs import Question, View, once
from moorage.model import DISKLESS, Instance, Node, NodeGroup
from moorage.model.kinds import Count, Mebibytes
from moorage.ops.planning import message, placement
from moorage.ops.planning.allocators import OURS, Allocator, Chooser
from moorage.ops.planning.fleet import Newcomer
from moorage.ops.volumes.pairs import is_mirrored
from moorage.ops.volumes.units import unit_named

Mode = Literal[
    "allocate",
    "multi-allocate",
    "relocate",
    "node-evacuate",
    "change-group",
    "allocate-secondary",
]


_LONGEST = 1 << 20
"""Bytes of a request: its message is the result of a job, which the store keeps."""


class TryAllocator(Chooser, frozen=True, kw_only=True):
    """Tell what an allocator would read, or have it answer; nothing else is done.

    Attributes
    ----------
    direction
        ``in`` for what it would read, ``out`` for its answer, which nobody looks at.
    mode
        The type of the request.
    name
        The instance that is to be made, or to get another node.
    instances
        Those that leave their nodes, or their group.
    memory, vcpus, disks, disk_template, nics, os, hypervisor, tags, spindle_use
        What is to be made.
    group_name
        The only node group that it may go to.
    evac_mode
        Which of their nodes instances leave.
    target_groups
        Where they may go; all other groups when empty.
    count
        How many are to be made of what is wanted, in ``multi-allocate``.
    """

    op_id = "OP_TEST_ALLOCATOR"

    name: str
    mode: Mode = "relocate"
    direction: Literal["in", "out"] = "in"
    instances: tuple[str, ...] | None = None
    iallocator: Allocator = None
    memory: Mebibytes | None = None
    vcpus: Count | None = None
    disks: list[dict[str, Any]] | None = None
    disk_template: str | None = None
    nics: list[dict[str, Any]] | None = None
    os: str | None = None
    hypervisor: str | None = None
    tags: tuple[str, ...] = ()
    spindle_use: Count = 1
    group_name: str | None = None
    evac_mode: Literal["primary-only", "secondary-only", "all"] | None = None
    target_groups: tuple[str, ...] | None = field(default=())
    count: Annotated[int, Meta(ge=1, le=1_000)] = 1

    def chooses(self, _view: View) -> bool:
        """Whether anybody is to answer."""
        return self.direction == "out"

    def questions(self, view: View) -> Iterator[Question]:
        """Ask all nodes for their room."""
        yield from placement.ask_room(view.config, view.config.hosts())

    def check(self, view: View) -> None:
        """Refuse words of which no request can be made."""
        self.allocator_request(view)

    @once
    def allocator_request(self, view: View) -> dict[str, Any]:
        """Return the request."""
        config = view.config
        if self.mode == "allocate":
            found = self._newcomer(view, self.name)
            _check_length(found)
            return found
        if self.mode == "multi-allocate":
            each = [self._newcomer(view, f"{self.name}{n}") for n in range(self.count)]
            _check_length(each[0], self.count)
            return message.multi_allocate(each)
        if self.mode in ("relocate", "allocate-secondary"):
            one = config.instance(self.name)
            if self.mode == "allocate-secondary":
                return {"type": self.mode, "name": one.name}
            return message.relocate(view, one, _left(view, one))
        leaving = [config.instance(name) for name in self.instances or (self.name,)]
        if self.mode == "node-evacuate":
            return message.evacuate(leaving, self.evac_mode or "all")
        groups = [config.group(name) for name in self.target_groups or ()]
        return message.change_group(leaving, groups)

    def _newcomer(self, view: View, name: str) -> dict[str, Any]:
        config = view.config
        if config.knows(Instance, name):
            raise Exists(f"there is an instance {name} already")
        groups = [config.group(self.group_name)] if self.group_name else None
        allowed = placement.hosts(config, groups or config.named(NodeGroup))
        if not allowed:
            raise BadInput("no node takes new instances")
        template = self.disk_template or DISKLESS
        given = [] if template == DISKLESS else self.disks or []
        wanted = Newcomer(
            name,
            memory=self.memory or 128,
            vcpus=self.vcpus or 1,
            disks=tuple((template, _size(one)) for one in given),
            units=tuple(unit_named(config, template, one) for one in given),
            tags=self.tags,
            spindle_use=self.spindle_use,
        )
        enabled = config.cluster.enabled_hypervisors
        instance = Instance(
            uuid="",
            name=name,
            primary_node="",
            os=self.os or "",
            hypervisor=self.hypervisor or enabled[0],
        )
        pairs = template != DISKLESS and is_mirrored(template)
        found = message.allocate(
            view,
            instance,
            wanted,
            allowed,
            count=2 if pairs else 1,
            group=self.group_name,
        )
        return found | {"nics": self.nics or []}

    def result(self, view: View, _results: Sequence[Any]) -> str:
        """Return what is read, or what is answered."""
        if view.advice is not None:
            return view.advice
        text = message.written(view, self.allocator_request(view))
        if self.direction == "in":
            return text
        asked = files.parse(text)
        state = htools.load(asked.fleet, htools.Reading(kvm_memory=0)).state
        if asked.request is None:
            raise BadInput(f"{OURS} was asked nothing")
        return files.dump(htools.answer(state, asked.request, htools.Asking()))


def _check_length(request: dict[str, Any], count: int = 1) -> None:
    if len(json.encode(request)) * count > _LONGEST:
        raise BadInput(f"the request is longer than {_LONGEST >> 20} MiB")


def _left(view: View, instance: Instance) -> Node:
    """Return the node that an instance leaves when it gets another one."""
    second = view.config.secondary_nodes(instance)
    return next(iter(second), view.config.home(instance))


def _size(disk: dict[str, Any]) -> int:
    size = disk.get("size")
    if not isinstance(size, int) or size <= 0:
        raise BadInput("a disk has a size: a whole number of MiB")
    return size
