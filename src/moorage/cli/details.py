# SPDX-License-Identifier: BSD-2-Clause
"""What every ``info`` command does: look objects up, show all about them."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .command import Call
from .qfilter import Filter
from .table import NORMAL
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
    _, rows = call.client.query(resource, fields, wanted)
    cells = ([value if status == NORMAL else None for status, value in r] for r in rows)
    return [dict(zip(fields, row, strict=True)) for row in cells]


def show(
    call: Call, found: Sequence[Object], shown: Callable[[Object], Mapping[str, Any]]
) -> int:
    """Print objects, as YAML for people or JSON for programs."""
    if call.option("json"):
        call.terminal.print(json.dumps(list(found), indent=2))
        return 0
    for line in lines([shown(one) for one in found]):
        call.terminal.print(line)
    return 0
