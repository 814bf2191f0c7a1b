# SPDX-License-Identifier: BSD-2-Clause
"""Jobs: listed, told, followed and cancelled."""

from typing import Any

from moorage.api.luxi import NOCHANGE
from moorage.api.luxi_messages import error_from_wire
from moorage.api.rapi.looking import BULK, Do, Listed, get
from moorage.api.rapi.refusals import HttpError
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Arg, Asked, Kind, Route
from moorage.ops import OPERATIONS

_BULK = (
    *("id", "ops", "status", "summary", "opstatus"),
    *("received_ts", "start_ts", "end_ts"),
)
_WHOLE = (*_BULK, "oplog", "opresult")
_WAIT = 10.0
"""Seconds that a job gets to change, as in Ganeti."""
_ENDS = ("success", "error", "canceled")


async def result_of(asked: Asked, number: int) -> Any:  # noqa: ANN401
    """Wait for a job of one opcode; return its result.

    Raises
    ------
    MoorageError
        What it ended with.
    """
    seen: list[Any] | None = None
    while not seen or seen[0] not in _ENDS:
        fields = ["status", "opresult"]
        told = await asked.luxi.call(
            "WaitForJobChange", number, fields, seen, None, _WAIT
        )
        if told is None:
            raise HttpError(404, f"job {number} is not known")
        if told != NOCHANGE:
            seen = told[0]
    status, (result,) = seen
    if status != "success":
        raise error_from_wire(result)
    return result


def _number(asked: Asked) -> int:
    return _whole(asked.path["job"])


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > 15:
        raise HttpError(404, f"job {text} is not known")
    return int(text)


_LISTED = Listed("job", _BULK, "/2/jobs", "id")


async def _listed(asked: Asked) -> list[Any]:
    fields, numbers = asked.args.get("fields"), asked.args.get("id")
    if fields is None and numbers is None:
        return await _LISTED(asked)
    wanted = None if numbers is None else [_whole(one) for one in numbers]
    if wanted == []:  # which means all jobs to the master, as in Ganeti
        return []
    found: list[Any]
    found = await asked.luxi.call("QueryJobs", wanted, fields or list(_BULK))
    return found


async def _told(asked: Asked) -> dict[str, Any]:
    number = _number(asked)
    (row,) = await asked.luxi.call("QueryJobs", [number], list(_WHOLE))
    if row is None:
        raise HttpError(404, f"job {number} is not known")
    found = dict(zip(_WHOLE, row, strict=True))
    found["opresult"] = [
        _two(result) if status == "error" else result
        for result, status in zip(found["opresult"], found["opstatus"], strict=True)
    ]
    return found


def _two(result: Any) -> Any:  # noqa: ANN401
    """Return an error as Ganeti's clients take it apart: a class, and arguments."""
    return result[:2] if isinstance(result, list) else result


async def _cancelled(asked: Asked) -> list[Any]:
    found: list[Any]
    found = await asked.luxi.call("CancelJob", _number(asked), asked.flag("kill"))
    return found


async def _hastened(asked: Asked) -> list[Any]:
    priority = asked.fields().get("priority")
    if not isinstance(priority, int) or isinstance(priority, bool):
        raise HttpError(400, "The 'priority' parameter should be a number")
    found: list[Any]
    found = await asked.luxi.call("ChangeJobPriority", _number(asked), priority)
    return found


async def _archived(asked: Asked) -> bool:
    return bool(await asked.luxi.call("ArchiveJob", _number(asked)))


async def _archived_old(asked: Asked) -> list[int]:
    age = asked.fields().get("age")
    if not isinstance(age, int | float) or isinstance(age, bool):
        raise HttpError(400, "The 'age' parameter should be a number of seconds")
    found: list[int] = await asked.luxi.call("AutoArchiveJobs", age)
    return found


async def _queue(asked: Asked) -> dict[str, bool]:
    (drained,) = await asked.luxi.call("QueryConfigValues", ["drain_flag"])
    return {"drained": drained}


async def _drained(asked: Asked) -> dict[str, bool]:
    drained = asked.fields().get("drained")
    if not isinstance(drained, bool):
        raise HttpError(400, "The 'drained' parameter should be true or false")
    await asked.luxi.call("SetDrainFlag", drained)
    return {"drained": drained}


async def _changed(asked: Asked) -> dict[str, Any] | None:
    body = asked.fields()
    fields = body.get("fields")
    seen, serial = body.get("previous_job_info"), body.get("previous_log_serial")
    if not isinstance(fields, list):
        raise HttpError(400, "The 'fields' parameter should be a list")
    if not isinstance(seen, list | None):
        raise HttpError(400, "The 'previous_job_info' parameter should be a list")
    if not isinstance(serial, int | None) or isinstance(serial, bool):
        raise HttpError(400, "The 'previous_log_serial' parameter should be a number")
    timeout = body.get("timeout", _WAIT)
    if not isinstance(timeout, int | float) or isinstance(timeout, bool):
        raise HttpError(400, "The 'timeout' parameter should be a number of seconds")
    wait = max(0.0, min(timeout, _WAIT))
    told = await asked.luxi.call(
        "WaitForJobChange", _number(asked), fields, seen, serial, wait
    )
    if told is None:
        raise HttpError(404, f"job {_number(asked)} is not known")
    if told == NOCHANGE:
        return None
    return {"job_info": told[0], "log_entries": told[1]}


async def _submitted(asked: Asked) -> int:
    """Make a job of opcodes as they are; who may, the master says for each."""
    ops = asked.fields().get("ops")
    if not isinstance(ops, list) or not all(map(_is_opcode, ops)):
        raise HttpError(400, "The 'ops' parameter should be a list of opcodes")
    return await asked.submit(*ops)


def _is_opcode(one: object) -> bool:
    return isinstance(one, dict) and isinstance(one.get("reason") or [], list)


_JOB = "/2/jobs/{job}"
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/2/jobs",
        "List the jobs",
        Do(_listed, list[Any]),
        Role.KNOWN,
        (
            BULK,
            Arg("fields", Kind.WORDS, "values of these fields alone, a list a job"),
            Arg("id", Kind.WORDS, "of these jobs alone; null for one that is unknown"),
        ),
    ),
    Route(
        "POST",
        "/2/jobs",
        "Make a job of any opcodes; each asks for the role of its operation",
        Do(_submitted, int, {"ops": "opcodes, as the reference has them; required"}),
        min(one.role for one in OPERATIONS.values()),
    ),
    Route("GET", _JOB, "Tell about a job", Do(_told, dict[str, Any]), Role.KNOWN),
    Route(
        "DELETE",
        _JOB,
        "Cancel a job; say whether, and a sentence",
        Do(_cancelled, tuple[bool, str]),
        Role.OPERATE,
        (Arg("kill", Kind.FLAG, "end the script that it runs on a node, too"),),
    ),
    Route(
        "PUT",
        f"{_JOB}/priority",
        "Change when a job gets its turn; say whether, and a sentence",
        Do(_hastened, tuple[bool, str], {"priority": "from -20 to 19; required"}),
        Role.OPERATE,
    ),
    Route(
        "POST",
        f"{_JOB}/archive",
        "Put a job away; false if it, or one that depends on it, has not ended",
        Do(_archived, bool),
        Role.OPERATE,
    ),
    Route(
        "POST",
        "/2/jobs/archive",
        "Put old jobs away; say how many, and how many are left",
        Do(
            _archived_old,
            tuple[int, int],
            {"age": "seconds since they ended, -1 for all; required"},
        ),
        Role.OPERATE,
    ),
    get(
        "/2/queue", "Tell whether new jobs are refused", _queue, answer=dict[str, bool]
    ),
    Route(
        "PUT",
        "/2/queue",
        "Refuse new jobs from now on, or take them again",
        Do(_drained, dict[str, bool], {"drained": "whether; required"}),
        Role.WRITE,
    ),
    Route(
        "GET",
        f"{_JOB}/wait",
        "Wait ten seconds for a change of a job; null if there was none",
        Do(
            _changed,
            dict[str, Any] | None,
            {
                "fields": "names of fields of the job: what to look at, required",
                "previous_job_info": "the values that were seen before",
                "previous_log_serial": "number of the last entry that was seen",
                "timeout": "seconds to wait, at most ten, which it is by default",
            },
        ),
        Role.READ,
    ),
)
