# SPDX-License-Identifier: BSD-2-Clause
"""What can be done with the master's queue, whatever door the request came by.

A deed checks what it is given; doors turn their words into arguments, and what comes of
it into theirs.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

from msgspec import ValidationError, convert

from moorage.errors import BadInput, MoorageError, WrongState, from_json
from moorage.jobs import Engine, Job, repeats
from moorage.jobs.job import Opcodes
from moorage.model.caller import MASTER, Caller, Role
from moorage.model.misfit import misfit

from . import job_kill
from .ganeti_opcodes import plain
from .query import Sources

PRIORITIES = range(-20, 20)
"""From first to last."""
MOST_JOBS = 1000
"""Jobs of one user of a door that have not ended."""
CALLED = "moorage:caller"
"""The source of the entry of a reason trail that says who asked."""


async def submit(
    at: Sources, ops: Opcodes, caller: Caller, *, although_drained: bool = False
) -> int:
    """Queue one job; return its number.

    Raises
    ------
    BadInput
        If an opcode is not known, or a field of one is off; nothing is queued.
    WrongState
        If the queue is drained, or the master stops.
    """
    return await _queued(at, ops, caller, [], although_drained=although_drained)


async def submit_once(at: Sources, ops: Opcodes, caller: Caller, key: str) -> int:
    """Queue one job; return its number, or that of the job that it made before.

    Parameters
    ----------
    key
        The caller's name for the request; it is known for a day.

    Raises
    ------
    Conflict
        If the key was another request's.
    WrongState
        If the caller has too many keys that are known.
    MoorageError
        As :func:`submit`.
    """
    known, name = at.engine.queue.repeats, repeats.named(str(caller), key)
    async with known.turn(name):
        number = known.job(name, ops)
        if number is None:
            known.check(str(caller))
            number = await _queued(at, ops, caller, [], key=name)
        return number


async def submit_many(
    at: Sources, jobs: list[Opcodes], caller: Caller
) -> list[int | MoorageError]:
    """Queue jobs, one after the other; a refusal does not hold the others up.

    A dependency on -1 is one on the job before it in the list, and so on.
    """
    answers: list[int | MoorageError] = []
    for ops in jobs:
        earlier = [one if isinstance(one, int) else None for one in answers]
        try:
            answers.append(await _queued(at, ops, caller, earlier))
        except MoorageError as error:
            answers.append(error)
    return answers


async def _queued(
    at: Sources,
    ops: Opcodes,
    caller: Caller,
    earlier: list[int | None],
    *,
    although_drained: bool = False,
    key: str = "",
) -> int:
    _check_opcodes(at.engine, ops, earlier)
    _check_few(at, caller)
    said = [CALLED, str(caller), time.time_ns()]
    for op in ops:
        trail = op.get("reason")
        kept = trail if isinstance(trail, list) else []
        op["reason"] = [*(one for one in kept if not _is_said(one)), said]
    drained = although_drained
    return await at.engine.submit(ops, caller, although_drained=drained, key=key)


def _is_said(entry: object) -> bool:
    """Whether an entry of a trail says who asked, as nobody may do for himself."""
    return isinstance(entry, list) and entry[:1] == [CALLED]


def _check_few(at: Sources, caller: Caller) -> None:
    """Raise `WrongState` if a user of a door has too many jobs that have not ended."""
    if caller.may(Role.ROOT):
        return
    working = at.engine.queue.working.values()
    if sum(str(one.caller) == str(caller) for one in working) >= MOST_JOBS:
        raise WrongState(f"{caller} has {MOST_JOBS} jobs that have not ended")


async def changed(at: Sources, number: int, patience: float) -> bool:
    """Wait until anything about a job changes; False after `patience` seconds."""
    return await at.engine.queue.changed(number, patience)


async def cancel(
    at: Sources, number: int, caller: Caller, *, kill: bool = False
) -> tuple[bool, str]:
    """Cancel a job, and end the script that it waits for if asked to.

    Returns whether it will end, and a sentence.

    Raises
    ------
    NotFound
        If there is no such job.
    """
    done, text = await at.engine.cancel(number, caller)
    job = at.engine.queue.working.get(number)
    ends = job and (kill or job_kill.breakable(job))
    if job and ends and (done or job.current.undoing):
        ended = await job_kill.kill(at, job)
        if ended and not done:
            return True, f"{text}; the script that it waited for is ended"
    return done, text


async def change_priority(
    at: Sources, number: int, priority: int, caller: Caller
) -> tuple[bool, str]:
    """Change when a job gets its slot, and the locks that it does not wait for yet.

    Returns whether it has not ended, and a sentence.

    Raises
    ------
    BadInput
        If there is no such priority.
    NotFound
        If there is no such job.
    """
    if priority not in PRIORITIES:
        raise BadInput(f"a priority is a number from -20 to 19, not {priority}")
    if not await at.engine.change_priority(number, priority, caller):
        return False, f"Job {number} has ended"
    return True, f"Job {number} has priority {priority} now"


async def archive(at: Sources, number: int, caller: Caller = MASTER) -> bool:
    """Put a job away; return False if it, or one that depends on it, has not ended.

    Raises
    ------
    NotFound
        If there is no such job.
    """
    if at.engine.job(number).finished:
        await at.engine.finished(number)  # its end is stored: else it would come back
    return await at.engine.queue.archive(number, caller)


async def archive_old(
    at: Sources, age: float, patience: float = 30.0, caller: Caller = MASTER
) -> tuple[int, int]:
    """Put away the jobs that ended more than `age` seconds ago, all if it is negative.

    Returns how many, and how many are left after `patience` seconds.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + patience
    old = list(_ended_before(at, age))
    done = 0
    for number in old:
        if loop.time() >= end:
            break
        if number in at.engine.jobs:  # nobody else was faster
            done += await at.engine.queue.archive(number, caller)
    return done, len(old) - done


def _ended_before(at: Sources, age: float) -> Iterator[int]:
    limit = at.clock() - age
    for job in list(at.engine.jobs.values()):
        ended = job.end_timestamp
        if ended and (age < 0 or ended[0] < limit):
            yield job.id


async def drain(at: Sources, caller: Caller, *, draining: bool) -> None:
    """Refuse new jobs from now on, or take them again."""
    await at.engine.queue.drain(draining=draining, caller=caller)


async def done(at: Sources, ops: Opcodes, caller: Caller = MASTER) -> Job:
    """Run a job to its end, even if the queue is drained, and return it.

    Raises
    ------
    MoorageError
        If its first operation failed.
    """
    number = await submit(at, ops, caller, although_drained=True)
    await at.engine.finished(number)
    job = at.engine.job(number)
    error = job.ops[0].error
    if error is not None:
        raise from_json(error)
    return job


def _check_opcodes(
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
