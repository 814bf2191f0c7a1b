# SPDX-License-Identifier: BSD-2-Clause
"""Resources that make a job: one opcode, filled in from path, arguments and body."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moorage.jobs import COMMON
from moorage.jobs.words import about
from moorage.ops import OPERATIONS

from .refusals import HttpError
from .roles import Role
from .route import Arg, Asked, Handler, Kind, Route

Opcode = dict[str, Any]
COMMON_FIELDS = COMMON - {"OP_ID", "reason"}
"""Fields that the body of whatever makes a job may have."""
DRY_RUN = Arg("dry-run", Kind.FLAG, "say what would be done", field="dry_run")
FORCE = Arg("force", Kind.FLAG, "do it all the same", field="force")


def _alone(opcode: Opcode, _asked: Asked) -> list[Opcode]:
    return [opcode]


@dataclass(frozen=True, slots=True)
class Make(Handler):
    """Make a job of an opcode.

    Attributes
    ----------
    op
        Its ``OP_ID``.
    args
        Arguments that fill in a field.
    renames
        Fields of the opcode by other names that the body may have for them.
    fixed
        Fields that no request can set.
    body
        Whether the body is read at all.
    shape
        Makes the job's opcodes of the one that was filled in.
    extra
        Fields of the body that `shape` reads, each with what it means.
    takes
        The type of a body that holds no fields, and that `shape` reads.
    """

    op: str
    args: tuple[Arg, ...] = ()
    renames: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    body: bool = True
    shape: Callable[[Opcode, Asked], list[Opcode]] = _alone
    extra: Mapping[str, str] = field(default_factory=dict)
    takes: object = None

    answer = int

    @property
    def role(self) -> Role:
        """Who may ask: whom the operation is for."""
        return OPERATIONS[self.op].role

    def fields(self, path: str) -> list[str]:
        """Return the names of the fields that a body may have, sorted."""
        if not self.body:
            return []
        own = set(OPERATIONS[self.op].__struct_fields__) | COMMON_FIELDS
        own -= self.fixed.keys() | {"dry_run"}
        own = {one for one in own if f"{{{one}}}" not in path}
        return sorted(own | self.renames.keys() | self.extra.keys())

    async def __call__(self, asked: Asked) -> int:
        """Make it; return its number."""
        given = renamed(asked.fields(), self.renames) if self.body else {}
        static = {**self.fixed, **asked.path, **self._from_args(asked)}
        clash = sorted(given.keys() & static.keys())
        if clash:
            raise HttpError(
                400, f"Can't overwrite static parameters {', '.join(map(repr, clash))}"
            )
        return await asked.submit(
            *self.shape({"OP_ID": self.op, **given, **static}, asked)
        )

    def _from_args(self, asked: Asked) -> Opcode:
        return {
            arg.field: asked.args[arg.name]
            for arg in self.args
            if arg.field and arg.name in asked.args
        }


def renamed(given: Opcode, names: Mapping[str, str]) -> Opcode:
    """Return fields by the names that an opcode has for them.

    Raises
    ------
    HttpError
        If one is given by both names, or is none of a body's.
    """
    found = dict(given)
    for word in ("OP_ID", "reason"):
        if word in found:
            raise HttpError(400, f"Invalid body parameters: {word}")
    for other, name in names.items():
        if other not in found:
            continue
        if name in found:
            raise HttpError(
                400, f"Parameter '{name}' can't be used together with '{other}'"
            )
        found[name] = found.pop(other)
    return found


def make(
    method: str,
    path: str,
    op: str,
    *args: Arg,
    does: str = "",
    **more: Any,  # noqa: ANN401 - the fields of Make
) -> Route:
    """Return a route that makes a job; its words and its role are the operation's."""
    every = (*args, DRY_RUN)
    serve = Make(op, every, **more)
    told = does or about(OPERATIONS[op])
    return Route(method, path, told, serve, serve.role, every)
