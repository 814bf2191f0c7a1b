# SPDX-License-Identifier: BSD-2-Clause
"""Operations: one file each, data and pure questions about a frozen view."""

from difflib import get_close_matches
from typing import Any

from msgspec import ValidationError, convert

from moorage.errors import BadInput
from moorage.jobs import COMMON, Operation
from moorage.jobs.unread import check_unread
from moorage.model.misfit import misfit

from . import backup, cluster, disk, group, instance, network, node, pool, storage, tags

FLOORS = (backup, cluster, disk, group, instance, network, node, pool, storage, tags)
OPERATIONS: dict[str, type[Operation]] = {
    operation.op_id: operation for floor in FLOORS for operation in floor.OPERATIONS
}
"""Every operation by its opcode."""
MODES = backup.MODES | instance.MODES
"""What an opcode stands for in a mode of its own, by opcode and mode."""


def parse(opcode: dict[str, Any]) -> Operation:
    """Return the operation that answers an opcode.

    Raises
    ------
    BadInput
        If there is none, or a field is off.
    NotSupported
        If a field asks for what the operation does not do.
    """
    name = str(opcode.get("OP_ID"))
    if name not in OPERATIONS:
        close = get_close_matches(name, OPERATIONS, n=1)
        hint = f"did you mean {close[0]}?" if close else ""
        raise BadInput(f"there is no operation '{name}'", hint=hint)
    own = {key: value for key, value in opcode.items() if key not in COMMON}
    kind = MODES.get((name, str(own.get("mode"))), OPERATIONS[name])
    try:
        operation = convert(own, kind)
    except ValidationError as error:
        raise BadInput(f"{name}: {misfit(error, 'the opcode', kind)}") from None
    check_unread(operation)
    return operation
