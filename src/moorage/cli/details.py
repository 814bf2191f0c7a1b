# SPDX-License-Identifier: BSD-2-Clause
"""What every ``info`` command does: look objects up, show all about them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .command import Call
from .qfilter import Filter
from .yamlish import lines

Object = dict[str, Any]


def look_up(
    call: Call, resource: str, fields: Sequence[str], keys: Sequence[str] = ("name",)
) -> list[Object]:
    """Return the objects that the operands name, or all; missing values are None.

    The master raises `NotFound` for an operand that names none.
    """
    parts = [["==", key, word] for word in call.words for key in keys]
    wanted: Filter | None = ["|", *parts] if parts else None
    return call.rows(resource, fields, wanted)


def show(
    call: Call, found: Sequence[Object], shown: Callable[[Object], Mapping[str, Any]]
) -> None:
    """Print objects, as YAML for people or JSON for programs."""
    call.show(found, lines([shown(one) for one in found]))
