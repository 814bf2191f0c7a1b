# SPDX-License-Identifier: BSD-2-Clause

"""What every field of every opcode is, as JSON: for programs that load no operation."""

import json
from pathlib import Path

from declared import Lines

from moorage.jobs import Operation
from moorage.jobs.fields import Field, fields
from moorage.jobs.unread import unread
from moorage.ops import MODES, OPERATIONS

PLACE = Path(__file__).resolve().parents[2] / "src/moorage/cli/opcodes.json"


def lines() -> Lines:
    """Yield a line a field, by opcode and name."""
    parts = [
        f"{json.dumps(op_id)}: {{\n{_fields(operation)}}}"
        for op_id, operation in sorted(OPERATIONS.items())
    ]
    yield "{\n" + ",\n".join(parts) + "\n}"


def _fields(operation: type[Operation]) -> str:
    """Return the fields of an opcode; those that one of its modes alone reads, too."""
    ways = (way for (op_id, _), way in MODES.items() if op_id == operation.op_id)
    found: dict[str, Field] = {one.name: one for one in fields(operation)}
    for one in (one for way in ways for one in fields(way)):
        if one.name not in found or one.name in unread(operation):
            found[one.name] = one
    told = {name: json.dumps(_told(one)) for name, one in found.items()}
    return ",\n".join(f"{json.dumps(name)}: {text}" for name, text in told.items())


def _told(one: Field) -> dict[str, object]:
    """Return what is said of a field; what is as usual is left out."""
    every, usual = one._asdict(), Field._field_defaults
    del every["name"]
    return {
        key: value
        for key, value in every.items()
        if key not in usual or value != usual[key]
    }
