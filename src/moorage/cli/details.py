# SPDX-License-Identifier: BSD-2-Clause
"""What every ``info`` command does: look objects up, show all about them."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moorage.errors import NotFound

from .command import Call
from .qfilter import Filter
from .table import NORMAL
from .yamlish import lines

Object = dict[str, Any]


def look_up(
    call: Call, resource: str, fields: Sequence[str], keys: Sequence[str] = ("name",)
) -> list[Object]:
    """Return the objects that the operands name, or all; missing values are None.

    Raises
    ------
    NotFound
        If an operand names none.
    """
    parts = [["==", key, word] for word in call.words for key in keys]
    wanted: Filter | None = ["|", *parts] if parts else None
    _, rows = call.client.query(resource, fields, wanted)
    cells = ([value if status == NORMAL else None for status, value in r] for r in rows)
    found = [dict(zip(fields, row, strict=True)) for row in cells]
    known = {one[key] for one in found for key in keys}
    for word in call.words:
        if word not in known:
            hint = f"{call.prefix} list"
            raise NotFound(f"{resource} '{word}' is not known", hint=hint)
    return found


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
