# SPDX-License-Identifier: BSD-2-Clause
"""What a method of LUXI is: its arguments as data, and an answer.

A class is named after its method; its fields are the positional arguments.
"""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from moorage.model.caller import Role

from .query import Sources

Fields = Annotated[list[str], Meta(max_length=500)]
"""Names of fields; each costs a value of every object."""
Opcodes = Annotated[list[dict[str, Any]], Meta(max_length=1000)]
Numbers = Annotated[list[int], Meta(max_length=100_000)]


class Method(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A request, its arguments checked."""

    waits: ClassVar[bool] = False
    """Whether it only waits: it is dropped when its client goes away."""
    role: ClassVar[Role] = Role.KNOWN
    """What its caller must be, or higher."""

    @abstractmethod
    async def answer(self, at: Sources) -> Any:  # noqa: ANN401
        """Do what was asked, and return the result as JSON values."""
