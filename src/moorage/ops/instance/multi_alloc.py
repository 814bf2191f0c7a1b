# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-instance batch-create`` of Ganeti's clients: several instances, a job each."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, ValidationError, convert

from moorage.errors import BadInput
from moorage.jobs import COMMON, Operation, View
from moorage.jobs.results import Following
from moorage.jobs.unread import Moot, check_unread
from moorage.model.misfit import misfit
from moorage.ops.planning import allocators

from .create import InstanceCreate

_MOST = 1_000
Opcode = dict[str, Any]


class Allocation(Following, frozen=True, kw_only=True):
    """The instances that jobs are made for.

    Attributes
    ----------
    allocatable
        Names of all: each job finds a place, or says why there is none.
    failed
        Nobody is known to fail before its job is tried.
    """

    allocatable: tuple[str, ...]
    failed: tuple[str, ...] = ()


class InstanceMultiAlloc(Operation, frozen=True, kw_only=True):
    """Make several instances, by a job each; those that come first choose first.

    Attributes
    ----------
    instances
        The fields of ``OP_INSTANCE_CREATE`` for each of them.
    iallocator
        Who chooses their nodes, where it is not named beside them: ``hail`` is the
        planner, another name an allocator's on the master's node.
    """

    op_id = "OP_INSTANCE_MULTI_ALLOC"

    instances: Annotated[list[Opcode], Meta(min_length=1, max_length=_MOST)]
    iallocator: allocators.Allocator = None
    opportunistic_locking: Annotated[
        bool, Moot("each job takes the locks that it needs, when they are free")
    ] = False

    def check(self, _view: View) -> None:
        """Refuse what no job could be made of, and two of one name."""
        allocators.check(self.iallocator)
        names = self._names()
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise BadInput(f"two instances are to be called {', '.join(twice)}")

    def _names(self) -> tuple[str, ...]:
        return tuple(_read(one).instance_name for one in self._opcodes())

    def _opcodes(self) -> list[Opcode]:
        given = {"iallocator": self.iallocator} if self.iallocator else {}
        fixed = {"OP_ID": InstanceCreate.op_id}
        return [{**_choosing(one, given), **one, **fixed} for one in self.instances]

    def jobs(self, _view: View) -> list[list[Opcode]]:
        """Return a job for each."""
        return [[one] for one in self._opcodes()]

    def result(self, _view: View, _results: Sequence[Any]) -> Allocation:
        """Return their names, in the order of the jobs."""
        names = self._names()
        return Allocation(names=names, allocatable=names)


def _choosing(wanted: Opcode, given: Opcode) -> Opcode:
    """Return who chooses the nodes of an instance that names none."""
    return {} if wanted.get("pnode") else given


def _read(opcode: Opcode) -> InstanceCreate:
    """Return what is to be made.

    Raises
    ------
    BadInput
        If that is off.
    """
    own = {name: value for name, value in opcode.items() if name not in COMMON}
    try:
        found = convert(own, InstanceCreate)
    except ValidationError as error:
        raise BadInput(f"an instance of the list: {misfit(error, 'it')}") from None
    check_unread(found)
    return found
