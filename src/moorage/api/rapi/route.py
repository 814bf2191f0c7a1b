# SPDX-License-Identifier: BSD-2-Clause
"""What a resource is, declared: its path, its method, and what answers it."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from moorage.api.luxi_async import AsyncLuxi
from moorage.units import is_whole

from .limits import Gate
from .refusals import HttpError
from .roles import Role, User
from .survival import Survival


class Kind(Enum):
    """What an argument behind the question mark may be."""

    FLAG = "0 or 1"
    TEXT = "text"
    TEXTS = "text; may be repeated"
    WORDS = "words with commas between"

    def read(self, name: str, texts: Sequence[str]) -> Any:  # noqa: ANN401
        """Return the value of an argument that was given.

        Raises
        ------
        HttpError
            If it is none.
        """
        match self:
            case Kind.FLAG:
                return _flag(name, texts[0])
            case Kind.TEXTS:
                return list(texts)
            case Kind.WORDS:
                return [word for part in texts[0].split(",") if (word := part.strip())]
            case _:
                return texts[0]


def _flag(name: str, text: str) -> bool:
    if not is_whole(text):
        raise HttpError(400, f"Invalid value for the argument '{name}': {text!r}")
    return int(text) != 0


@dataclass(frozen=True, slots=True)
class Arg:
    """An argument behind the question mark.

    Attributes
    ----------
    field
        The opcode's field that it fills in; empty where the resource itself reads it.
    aliases
        Other names of it.
    """

    name: str
    kind: Kind
    does: str
    field: str = ""
    required: bool = False
    aliases: tuple[str, ...] = ()


@dataclass(slots=True)
class Asked:
    """A request, as a resource sees it.

    Attributes
    ----------
    path
        The parts of the path that vary, by their names.
    args
        The arguments behind the question mark that were given.
    body
        What came as JSON; None if nothing did.
    resource
        Its name in the trail of reasons: ``instances_name_startup``.
    made
        Numbers of the jobs that it made.
    key
        Names the request, if it may come twice: a repeated one makes no other job.
    gate, survival
        What the door counts, and what it knows of the loss of nodes.
    """

    luxi: AsyncLuxi
    path: Mapping[str, str]
    args: Mapping[str, Any]
    body: Any
    resource: str
    made: list[int] = field(default_factory=list)
    key: str = ""
    gate: Gate | None = None
    survival: Survival | None = None

    def flag(self, name: str) -> bool:
        """Whether an argument is there, and not 0."""
        return bool(self.args.get(name))

    def fields(self) -> dict[str, Any]:
        """Return the body, which must be an object; nothing is an empty one.

        Raises
        ------
        HttpError
            If it is something else.
        """
        if self.body is None:
            return {}
        if not isinstance(self.body, dict):
            raise HttpError(400, "Invalid body parameters: not an object")
        return dict(self.body)

    async def submit(self, *opcodes: Mapping[str, Any]) -> int:
        """Make a job; return its number.

        The reasons that an opcode has already come first in its trail.
        """
        trail = self._trail()
        ops = [
            {**one, "reason": [*(one.get("reason") or ()), *trail]} for one in opcodes
        ]
        asked = ("SubmitJobOnce", self.key) if self.key else ("SubmitJob",)
        number = int(await self.luxi.call(*asked, ops))
        self.made.append(number)
        return number

    def _trail(self) -> list[list[Any]]:
        now = time.time_ns()
        source = [f"gnt:library:rlib2:{self.resource}", "", now]
        said = self.args.get("reason")
        return [["gnt:user", said, now], source] if said else [source]


class Handler(ABC):
    """What answers the requests for a resource.

    Attributes
    ----------
    answer
        The type of the answer.
    media
        How it is written.
    """

    answer: object = Any
    media: ClassVar[str] = "application/json"

    @abstractmethod
    async def __call__(self, asked: Asked) -> Any:  # noqa: ANN401
        """Return the answer as JSON values.

        Raises
        ------
        HttpError
            If the request is off.
        MoorageError
            What the master says.
        """


REASON = Arg("reason", Kind.TEXT, "why: the first entry of the trail of reasons")


@dataclass(frozen=True, slots=True)
class Route:
    """A method of a resource.

    Attributes
    ----------
    path
        With a name in braces for each part that varies.
    does
        What it does, in one line.
    serve
        Answers it.
    role
        Who may ask.
    args
        What may stand behind the question mark, besides ``reason``.
    """

    method: str
    path: str
    does: str
    serve: Handler
    role: Role
    args: tuple[Arg, ...] = ()

    @property
    def resource(self) -> str:
        """Its name in the trail of reasons."""
        parts = self.path.removeprefix("/2").strip("/").split("/")
        return "_".join("name" if one.startswith("{") else one for one in parts)

    def check(self, user: User) -> None:
        """Raise `HttpError` if somebody may not ask."""
        if user.role < self.role:
            raise HttpError(
                403,
                f"{user.name} has the role {user.role.word}: this takes "
                f"{self.role.word}",
            )

    def read(self, query: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Return the arguments among those of a request.

        Raises
        ------
        HttpError
            If one is missing or off.
        """
        found: dict[str, Any] = {}
        for arg in (*self.args, REASON):
            names = (one for one in (arg.name, *arg.aliases) if one in query)
            given = next(names, None)
            if given is not None:
                found[arg.name] = arg.kind.read(given, query[given])
            elif arg.required:
                raise HttpError(400, f"Missing the required '{arg.name}' parameter")
        return found
