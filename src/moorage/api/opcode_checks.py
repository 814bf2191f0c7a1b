# SPDX-License-Identifier: BSD-2-Clause
"""What is done with opcodes before the engine gets them."""

from typing import Any

from msgspec import ValidationError, convert

from moorage.errors import BadInput
from moorage.jobs import Engine
from moorage.model.misfit import misfit

from .ganeti_opcodes import plain

PRIORITIES = range(-20, 20)
"""From first to last."""


def check_opcodes(
    engine: Engine, ops: list[dict[str, Any]], earlier: list[int | None]
) -> None:
    """Take what asks for nothing out of opcodes, which are changed.

    Raise `BadInput` if a field that every opcode may have is off.

    Parameters
    ----------
    earlier
        Numbers of the jobs before, which negative dependencies refer to; those that
        were resolved replace them.
    """
    ops[:] = map(plain, ops)
    for op in ops:
        priority = op.get("priority")
        if priority is not None and priority not in PRIORITIES:
            raise BadInput(f"a priority is a number from -20 to 19, not '{priority}'")
        if op.get("depends"):
            pairs = _dependencies(op["depends"])
            op["depends"] = [[_job(engine, n, earlier), on] for n, on in pairs]


def _dependencies(value: object) -> list[tuple[int, list[str]]]:
    try:
        return convert(value, list[tuple[int, list[str]]], strict=False)
    except ValidationError as error:
        raise BadInput(
            "'depends' is a list of pairs [job, [status, …]]: "
            f"{misfit(error, 'the list')}"
        ) from None


def _job(engine: Engine, number: int, earlier: list[int | None]) -> int:
    found: int | None = number if number in engine.jobs else None
    if number < 0:
        found = earlier[number] if -number <= len(earlier) else None
    if found is None:
        raise BadInput(f"the job depends on job {number}, which there is not")
    return found
