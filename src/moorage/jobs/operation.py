# SPDX-License-Identifier: BSD-2-Clause
"""What an operation is: the request as data, then pure questions about a frozen view.

The engine owns everything else: locks, facts, journal, progress, retries, undo.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, cast

from msgspec import Struct

from moorage.errors import MoorageError, Unreachable
from moorage.model import Change, Claim, Config, Entity, Node, successor
from moorage.model.caller import Role
from moorage.model.change import to_json
from moorage.model.objects import LogicalId
from moorage.protocol import Verb

from .locks import Lock
from .task import Commit, Task

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Ask(Struct, Generic[T_co], frozen=True):
    """A fact that an operation must know: a reading verb of a node's agent.

    Attributes
    ----------
    node
        Uuid of the node.
    even_offline
        Ask the node even if it is marked offline.
    """

    node: str
    call: Verb[T_co]
    even_offline: bool = False


@dataclass(frozen=True, slots=True)
class Sought:
    """A guest of which must be known whether other nodes have it.

    Attributes
    ----------
    guest
        Uuid of its instance; the operation holds its lock.
    home
        Uuid of the node that may have it.
    nodes
        All that might; :class:`Config` gives the same tuple as long as none changes.
    """

    guest: str
    home: str
    nodes: tuple[Node, ...]


Question = Ask[object]
"""A question of whatever kind."""

Answers = dict[Question, Any]
"""What the nodes said; a `MoorageError` where one failed to say."""

Strays = dict[str, dict[str, str]]
"""The states of guests by instance and node, both by uuid."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What operations see that compare storage with the configuration.

    Storage was asked between two moments; what changed between them proves nothing.

    Attributes
    ----------
    earlier
        The configuration before the nodes were asked.
    busy
        The volumes that jobs under way may have made or removed meanwhile.
    disks
        Uuids of the disks that they work on.
    former
        Returns the uuid of the disk that a volume is or was of; empty for none.
    called
        Returns the name, or else the uuid, of a disk that is gone.
    known_as
        Returns what storage scripts knew it as; empty for nothing.
    """

    earlier: Config
    busy: frozenset[LogicalId]
    disks: frozenset[str]
    former: Callable[[LogicalId], str]
    called: Callable[[str], str]
    known_as: Callable[[str], str]


class Kept:
    """What the decisions of a master leave for later ones, each kind of it once."""

    def __init__(self) -> None:
        self._parts: dict[type, Any] = {}

    def of(self, kind: type[T]) -> T:
        """Return what there is of a kind, which is made empty at first."""
        return cast("T", self._parts.setdefault(kind, kind()))


R = TypeVar("R")
R_co = TypeVar("R_co", bound="Operation", covariant=True)


class Case(Generic[R_co]):
    """What a request comes to on one view: what it names, and what it chooses.

    Subclasses answer with cached properties, so each question is answered once,
    whoever asks it again: locks, questions, check, claims, tasks and result.

    Attributes
    ----------
    request, view
        What was asked for, and when.
    """

    def __init__(self, request: R_co, view: "View") -> None:
        self.request = request
        self.view = view


@dataclass(frozen=True, slots=True)
class View:
    """What an operation reasons on; nothing in it changes while it does.

    Attributes
    ----------
    now
        The time, in seconds.
    fresh
        Returns a new uuid at each call.
    job
        Number of the job, for the notes that a change leaves.
    claims
        What other jobs have chosen and not recorded yet.
    sight
        What operations see that survey storage; None for others.
    kept
        What earlier decisions of this master left for later ones. Who takes it makes
        sure that it still holds.
    strays
        Of guests that were sought, the nodes that have them, and in which state.
    advice
        What an allocator printed that was asked; None where none was.
    """

    config: Config
    answers: Answers = field(default_factory=dict)
    now: float = 0.0
    fresh: Callable[[], str] = lambda: ""
    job: int = 0
    claims: tuple[Claim, ...] = ()
    sight: Sight | None = None
    kept: Kept = field(default_factory=Kept, compare=False)
    strays: Strays = field(default_factory=dict)
    advice: str | None = None
    _known: dict[tuple[object, int], tuple[object, Any]] = field(
        default_factory=dict, init=False, compare=False
    )

    def once(self, decide: Callable[[R, "View"], T], request: R) -> T:
        """Return what a request comes to on this view; that is decided once.

        Parameters
        ----------
        decide
            A kind of :class:`Case`, or a function that returns a single choice.
        """
        key = decide, id(request)
        if key not in self._known:
            # With the request, or another one could get its number meanwhile.
            self._known[key] = request, decide(request, self)
        return cast("T", self._known[key][1])

    def answer(self, question: Ask[T]) -> T | None:
        """Return what a node said; None if it was not asked.

        Raises
        ------
        MoorageError
            What came instead of an answer.
        """
        found = self.answers.get(question)
        if isinstance(found, MoorageError):
            raise found
        return cast("T | None", found)

    def told(self, question: Ask[T]) -> T | None:
        """Return what a node said; None if it was not asked, or gave no answer."""
        found = self.answers.get(question)
        return None if isinstance(found, MoorageError) else cast("T | None", found)

    def reached(self, question: Question) -> bool:
        """Whether the node said something, were it only that it failed."""
        return not isinstance(self.answers.get(question), Unreachable)

    def record(
        self,
        what: str,
        *put: Entity,
        drop: tuple[Entity, ...] = (),
        final: bool = False,
    ) -> Commit:
        """Return the task that records objects as they are to be, and drops others."""
        change = Change(put, drop)
        back = change.back(self.config.before(change))
        return Commit(
            what=what, change=to_json(change), back=to_json(back), final=final
        )

    def change(
        self,
        what: str,
        old: Entity,
        *,
        final: bool = False,
        **fields: Any,  # noqa: ANN401
    ) -> Commit:
        """Return the task that gives an object other values in some fields."""
        return self.record(what, successor(old, self.now, **fields), final=final)


def once(decide: Callable[[R, View], T]) -> Callable[[R, View], T]:
    """Have a method of a request decide once a view, whoever asks it again.

    What costs much, or what check, tasks and result must agree on.
    """

    @wraps(decide)
    def decided(request: R, view: View) -> T:
        return view.once(decide, request)

    return decided


class FailedHook(NamedTuple):
    """A hook after an operation that failed.

    Attributes
    ----------
    node
        Its name.
    script
        Its directory and name.
    problem
        How it ended, with what it said.
    """

    node: str
    script: str
    problem: str


class Operation(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True
):
    """A request. Subclasses are named after it and hold its parameters as fields.

    Five questions make most of them: :meth:`locks`, :meth:`questions`, :meth:`check`,
    :meth:`tasks` and :meth:`result`. Those that plan have more: `Planner`.

    What its words say without a view, a cached property of it may hold. None depends
    on fields that name nodes that may be chosen: see :meth:`Planner.naming`.
    """

    op_id: ClassVar[str]
    role: ClassVar[Role] = Role.WRITE
    """What its caller must be, or higher."""

    def summary(self) -> str:
        """Return what job lists show: the opcode and what it is about."""
        target = next((getattr(self, name) for name in self.__struct_fields__), "")
        word = self.op_id.removeprefix("OP_")
        return f"{word}({target})" if isinstance(target, str) and target else word

    def locks(self, _view: View) -> Iterable[Lock]:
        """Say what to hold while the operation runs; one that only looks, nothing."""
        return iter(())

    def questions(self, _view: View) -> Iterable[Question]:
        """Say which facts the nodes must tell before :meth:`check`."""
        return iter(())

    def check(self, view: View) -> None:
        """Raise `Refused`, or approve in silence."""

    def tasks(self, _view: View) -> Iterable[Task]:
        """Say what to do, in order. Pure: nothing has happened yet."""
        return iter(())

    def result(self, _view: View, _results: Sequence[Any]) -> object:
        """Return what the job reports, given the results of its tasks; here nothing.

        `view` is the one that the tasks were made from. The return type says what
        clients get, as JSON.
        """
        return None

    def seeks(self, _view: View) -> Iterator[Sought]:
        """Say which guests no other node may have; all jobs share what is asked."""
        return iter(())

    def warnings(self, _view: View) -> Iterator[str]:
        """Say what was asked for and will not happen; the job's log tells it."""
        return iter(())

    def jobs(self, _view: View) -> list[list[dict[str, Any]]]:
        """Return jobs to submit when this one has succeeded, as lists of opcodes."""
        return []
