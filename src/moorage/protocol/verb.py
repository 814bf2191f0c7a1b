# SPDX-License-Identifier: BSD-2-Clause
"""What a verb of the node agent is: a request with its arguments, and its answer."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import cache
from typing import Any, ClassVar, Generic, Self, TypeVar, get_args, get_origin

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from moorage.errors import MoorageError, Unreachable
from moorage.hypervisors import USUAL
from moorage.model import Disk
from moorage.storage import Holder

R_co = TypeVar("R_co", covariant=True)
Node = TypeVar("Node")

QUICK, SLOW, LONG = 15.0, 3600.0, 86400.0
"""Seconds that a verb may last: one that looks at what is there, most others, and one
on a disk: the node ends its programs, when an administrator says so."""
A_WEEK, A_MONTH = 7 * LONG, 30 * LONG
"""Seconds that data may be on its way, to an export or to another disk: nobody knows
how much it is. A node that gives no sign of life is noticed long before."""
_LINE, _LONG_LINE = 1 << 20, 16 << 20
"""Bytes of an answer, and of one that grows with what a node has."""
_NAME = "verb"
"""What the name of a verb is called, in a journal and on the wire."""

Report = Callable[[int, int, str, str], None]
"""Progress: done, total, unit, note. A note of the unit ``log`` is for the log."""


def silent(done: int, total: int, unit: str, note: str) -> None:
    """Take progress that nobody waits for."""
    del done, total, unit, note


class Verb(
    Struct,
    Generic[R_co],
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag_field=_NAME,
):
    """A request to the agent of a node; its type says what the answer is.

    A subclass with a tag is a verb, and the tag is its name. It is data: journals keep
    it, and it is compared and (if it reads) hashed by its arguments. Verbs that change
    something are idempotent.

    Attributes
    ----------
    reads
        Whether it changes nothing: it comes at any time, and overtakes nobody.
    limit
        Seconds that the answer may take.
    long
        Whether the answer grows with what a node has.
    breakable
        Whether it may be broken off at any moment, for undoing takes back whatever came
        of it: then a job that is cancelled does not wait for its end.
    heeds_term
        Whether it is refused when a later master has spoken.
    takes_term
        Whether a node agrees to it once in a term: a candidate claims the term by it.
    insists
        Whether an agent that is not there for a moment is waited for.
    repeatable
        Whether it may be done twice, where nobody knows whether it was done once.
    stays
        Whether nobody can take back what it did, as with a command of a person's.
    lapsed
        Whether the node's certificate may be over, if its key is the one that is known.
    fenced
        The fields with the disks whose epochs fence the step.
    """

    reads: ClassVar[bool] = False
    limit: ClassVar[float] = SLOW
    long: ClassVar[bool] = False
    breakable: ClassVar[bool] = False
    heeds_term: ClassVar[bool] = True
    takes_term: ClassVar[bool] = False
    insists: ClassVar[bool] = True
    repeatable: ClassVar[bool] = True
    stays: ClassVar[bool] = False
    lapsed: ClassVar[bool] = False
    fenced: ClassVar[tuple[str, ...]] = ()

    @property
    def verb(self) -> str:
        """The verb's name."""
        return name_of(type(self))

    @property
    def most(self) -> int:
        """Bytes of the longest line of an answer: more, it cannot mean."""
        return _LONG_LINE if self.long else _LINE

    def fencing(self) -> tuple[Disk, ...]:
        """Return the disks whose epochs fence the step."""
        return tuple(disk for name in self.fenced for disk in _disks(self, name))

    def volumes(self) -> tuple[Disk, ...]:
        """Return the disks whose volumes it works on."""
        return self.fencing()

    def touched(self) -> frozenset[str]:
        """Return the uuids of the disks and of the guest that it works on.

        Steps on one object wait for each other, and none overtakes another one.
        """
        return frozenset(disk.uuid for disk in self.fencing())

    def renewed(self, renew: Callable[[Disk], Disk]) -> Self:
        """Return the verb with other versions of the disks that fence it."""
        new: dict[str, Any] = {}
        for name in self.fenced:
            found = getattr(self, name)
            one = isinstance(found, Disk)
            new[name] = renew(found) if one else tuple(map(renew, found))
        return replace(self, **new)

    @classmethod
    def done_by(
        cls, work: Callable[[Node, Self, Report], Awaitable[R_co]]
    ) -> tuple[type["Verb[object]"], Callable[[Node, Any, Report], Awaitable[object]]]:
        """Return the verb with what does it on a node: an entry of the agent's table.

        A type checker sees here that arguments and answer are what is declared.
        """
        return cls, work


class Reading(Verb[R_co], Generic[R_co], frozen=True):
    """A verb that tells at once what there is."""

    reads = True
    limit = QUICK


class AtMaster(Verb[R_co], Generic[R_co], frozen=True):
    """A verb of the master's own: a node gets it, if at all, as another one."""


class OnDisk(Verb[R_co], Generic[R_co], frozen=True, kw_only=True):
    """A verb on one disk.

    Attributes
    ----------
    disk
        As the configuration has it; its epoch fences the step.
    hypervisor
        Of the guest that has it, or may have it.
    settings
        The fields of the cluster that the template needs, by their names.
    pool
        Name of the storage pool that it is in; empty for none.
    holders
        Of a mirrored disk, the nodes that keep it, in the order of its identity.
    """

    limit = LONG
    fenced: ClassVar[tuple[str, ...]] = ("disk",)

    disk: Disk
    hypervisor: str = USUAL
    settings: dict[str, str] = {}
    pool: str = ""
    holders: tuple[Holder, ...] = ()

    def __hash__(self) -> int:
        """Return the same for the same disk: questions are compared."""
        return hash((self.disk.uuid, self.disk.serial_no))


class OnGuest(Verb[R_co], Generic[R_co], frozen=True, kw_only=True):
    """A verb on one guest.

    Attributes
    ----------
    uuid, name
        Of the instance.
    """

    uuid: str
    name: str = ""
    hypervisor: str = USUAL

    def touched(self) -> frozenset[str]:
        """Return the guest, and the disks."""
        return Verb.touched(self) | {self.uuid}


class OnSlot(OnGuest[R_co], Generic[R_co], frozen=True, kw_only=True):
    """A verb on one disk of a guest.

    Attributes
    ----------
    disk
        It is attached on the node; its epoch fences the step.
    slot
        Its position in the guest.
    """

    fenced: ClassVar[tuple[str, ...]] = ("disk",)

    disk: Disk
    slot: int = 0


class WithDisks(OnGuest[R_co], Generic[R_co], frozen=True, kw_only=True):
    """A verb on a guest with its disks.

    Attributes
    ----------
    disks
        In the order of their slots; their epochs fence the step.
    """

    fenced: ClassVar[tuple[str, ...]] = ("disks",)

    disks: tuple[Disk, ...] = ()


def _disks(call: Verb[object], name: str) -> tuple[Disk, ...]:
    found: Disk | tuple[Disk, ...] = getattr(call, name)
    return (found,) if isinstance(found, Disk) else found


def disks_in(found: object) -> Iterator[Disk]:
    """Yield every disk that a verb, or a part of one, names."""
    if isinstance(found, Disk):
        yield found
    elif isinstance(found, Struct):
        for name in found.__struct_fields__:
            yield from disks_in(getattr(found, name))
    elif isinstance(found, tuple):
        for one in found:
            yield from disks_in(one)


def one_disk(call: Verb[object]) -> Disk | None:
    """Return the disk of a verb that is about one disk alone."""
    return call.disk if isinstance(call, OnDisk | OnSlot) else None


def name_of(kind: type[Verb[object]]) -> str:
    """Return the name of a verb."""
    return str(kind.__struct_config__.tag)


def declared(kind: type[Verb[object]] = Verb) -> tuple[type[Verb[object]], ...]:
    """Return every verb that is declared: each class that names one."""
    below = [one for child in kind.__subclasses__() for one in declared(child)]
    return tuple(below) if name_of(kind) == kind.__name__ else (kind, *below)


@cache
def answer_of(kind: type[Verb[object]]) -> Any:  # noqa: ANN401 - it may be a union
    """Return the type of a verb's answer, as its declaration has it."""
    for base in vars(kind)["__orig_bases__"]:
        found = get_args(base)
        if found and issubclass(get_origin(base), Verb):
            return found[0]
    raise TypeError(f"{kind.__name__} does not say what it answers")


def to_wire(call: Verb[object]) -> tuple[str, dict[str, Any]]:
    """Return the name of a verb and its arguments, as JSON values."""
    args = to_builtins(call)
    return args.pop(_NAME), args


def fitting(call: Verb[R_co], value: object) -> R_co:
    """Return the answer to a verb that JSON values are.

    Raises
    ------
    msgspec.ValidationError
        If they are of another shape.
    """
    found: R_co = convert(value, answer_of(type(call)))
    return found


async def one_by_one(
    do: Callable[[Verb[object]], Awaitable[object]], calls: Iterable[Verb[object]]
) -> list[object]:
    """Return what came of each call to one node; a `MoorageError` where it failed.

    A node that gave no answer is not asked again: that error stands for the rest.
    """
    found: list[object] = []
    gone: MoorageError | None = None
    for call in calls:
        try:
            found.append(gone or await do(call))
        except MoorageError as error:
            gone = error if isinstance(error, Unreachable) else None
            found.append(error)
    return found
