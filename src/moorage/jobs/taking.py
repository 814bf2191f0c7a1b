# SPDX-License-Identifier: BSD-2-Clause
"""How a job is taken: its opcodes are parsed, and asked whether their caller may."""

from collections.abc import Callable

from moorage.errors import BadInput
from moorage.model.caller import Caller, Role

from . import rights
from .job import Job, Op, Opcodes, stamp
from .operation import Operation


def taken(
    number: Callable[[], int],
    opcodes: Opcodes,
    caller: Caller,
    parse: Callable[[dict[str, object]], Operation],
    now: float,
) -> Job:
    """Return a new job.

    Parameters
    ----------
    number
        Returns the next job's number; none is used up by a refusal.

    Raises
    ------
    BadInput
        If there is no opcode, or one is not known or has a field that is off.
    Forbidden
        If the caller may not ask for that.
    """
    if not opcodes:
        raise BadInput("a job needs at least one operation")
    asked = [parse(opcode) for opcode in opcodes]
    for one in asked:
        rights.check(one, caller)
    both = zip(opcodes, asked, strict=True)
    return Job(
        id=number(),
        ops=[Op(input=opcode, summary=one.summary()) for opcode, one in both],
        caller=caller,
        priority=min(int(opcode.get("priority") or 0) for opcode in opcodes),
        received_timestamp=stamp(now),
        looks=all(one.role <= Role.READ for one in asked),
    )
