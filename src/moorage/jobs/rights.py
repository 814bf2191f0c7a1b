# SPDX-License-Identifier: BSD-2-Clause
"""Who may ask for what: a role for each operation, and for what lets root act.

An operation names the role that it takes (`Operation.role`). A field through which
somebody could have a node's root do what he may not do himself is marked beside its
type, ::

    adopt: Annotated[str | None, Reserved("any device of the node can be named")] = None

and whoever fills it in needs the role of the mark.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from moorage.errors import Forbidden
from moorage.model import reserved as parameters
from moorage.model.caller import Caller, Role
from moorage.model.objects import REUSE

from .operation import Operation


@dataclass(frozen=True, slots=True)
class Reserved:
    """A field that not everybody may fill in.

    Attributes
    ----------
    why
        What could be done with it: the end of a sentence behind a colon.
    role
        Who may.
    within
        Returns the reserved parameters in a value of many; None for the whole value.
    lower
        Those among them that a lower role may fill in.
    """

    why: str
    role: Role = Role.ROOT
    within: Callable[[Any], Iterable[str]] | None = None
    lower: Mapping[str, Role] = field(default_factory=dict)

    def takes(self, name: str) -> Role:
        """Return the role that fills in a parameter."""
        return self.lower.get(name, self.role)


HYPERVISOR = Reserved(
    "root would open files of a node, or run programs, for its guest",
    within=parameters.hypervisor,
)
"""Parameters of hypervisors."""
DISK = Reserved("it names storage of a node as it is", within=parameters.disk)
"""Parameters of a disk, a provider or a pool."""
DISKS = Reserved("it names storage of a node as it is", within=parameters.disks)
"""Disks, or changes of disks."""
_BY_NAME = {REUSE: Role.ADOPT}
"""What a provider has by the name of a disk: no file or device of a node is named."""
NEW_DISK = replace(DISK, lower=_BY_NAME)
"""Parameters of a disk that is added."""
CHANGED_DISKS = replace(DISKS, lower=_BY_NAME)
"""Changes of an instance's disks, new ones among them."""
_RUN = "the program of that name would be run on the master's node"
ALLOCATOR = Reserved(_RUN, within=parameters.allocator)
"""Who chooses nodes."""
DEFAULT_ALLOCATOR = Reserved(_RUN, within=parameters.default_allocator)
"""Who chooses nodes for everybody."""
ALLOCATOR_WORDS = Reserved("programs of the master's node would get them")
ADOPTS = Reserved("any volume or device of a node can be named")
USERS = Reserved("guests would run as those users of the nodes")
ADDRESS = Reserved("root would give a node that address, which may be anybody's")
PLACE = Reserved("root works in that directory of the nodes")


@cache
def reserved(kind: type[Struct]) -> dict[str, Reserved]:
    """Return the fields of a request that not everybody may fill in, by name."""
    return {
        one.name: mark
        for one in fields(kind)
        for mark in getattr(one.type, "__metadata__", ())
        if isinstance(mark, Reserved)
    }


def check(request: Operation, caller: Caller) -> None:
    """Raise `Forbidden` if somebody asks for what he may not ask for."""
    if not caller.may(request.role):
        raise Forbidden(
            f"{caller} has the role {caller.role.word}: {request.summary()} takes "
            f"{request.role.word}",
            role=request.role.word,
        )
    for name, mark in _asked(request):
        if not caller.may(mark.takes(name)):
            raise Forbidden(
                f"{caller} may not set {name}: {mark.why}",
                role=mark.takes(name).word,
                field=name,
            )


def _asked(request: Operation) -> Iterator[tuple[str, Reserved]]:
    """Yield the reserved parameters that a request fills in, by name."""
    marks = reserved(type(request))
    for one in fields(request) if marks else ():
        mark, value = marks.get(one.name), getattr(request, one.name)
        if mark is None or value == _default(one):
            continue
        if mark.within is None:
            yield one.name, mark
        else:
            yield from ((name, mark) for name in mark.within(value))


def _default(one: FieldInfo) -> object:
    return one.default if one.default_factory is NODEFAULT else one.default_factory()
