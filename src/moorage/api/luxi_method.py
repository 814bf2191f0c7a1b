# SPDX-License-Identifier: BSD-2-Clause
"""What a method of LUXI is: a request with an answer."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from .luxi_request import Request
from .query import Sources

Fields = Annotated[list[str], Meta(max_length=500)]
"""Names of fields; each costs a value of every object."""
Opcodes = Annotated[list[dict[str, Any]], Meta(max_length=1000)]
Numbers = Annotated[list[int], Meta(max_length=100_000)]


class Method(Request, frozen=True):
    """A request that the master answers."""

    waits: ClassVar[bool] = False
    """Whether it only waits: it is dropped when its client goes away."""

    @abstractmethod
    async def answer(self, at: Sources) -> Any:  # noqa: ANN401
        """Do what was asked, and return the result as JSON values."""
