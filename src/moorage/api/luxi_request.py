# SPDX-License-Identifier: BSD-2-Clause
"""A request of LUXI's as data: what any of them is, and the one for a line to a guest.

A class is named after its method; its fields are the positional arguments.
"""

from typing import Any, ClassVar, TypeVar

from msgspec import Struct, ValidationError, convert

from moorage.errors import BadInput
from moorage.model.caller import Role
from moorage.model.misfit import misfit
from moorage.protocol.line import Kind

R = TypeVar("R", bound="Request")


class Request(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A request, its arguments checked."""

    role: ClassVar[Role] = Role.KNOWN
    """What its caller must be, or higher."""


class ConnectInstance(Request, frozen=True):
    """Connect to a guest's serial console, or to its screen, which speaks VNC.

    The answer names instance and node, and says whether the ticket is VNC's password:
    a guest may have one of its own. After it, the connection is the guest's.
    """

    role = Role.OPERATE
    instance: str
    kind: Kind = "serial"
    ticket: str = ""


def read(kind: type[R], args: list[Any]) -> R:
    """Return a request of a kind.

    Raises
    ------
    BadInput
        If its arguments are off.
    """
    name, most = kind.__name__, len(kind.__struct_fields__)
    if len(args) > most:
        raise BadInput(f"{name} takes at most {most} arguments, not {len(args)}")
    try:
        return convert(args, kind, strict=False)
    except ValidationError as error:
        raise BadInput(f"{name}: {misfit(error, 'the list of arguments')}") from None
