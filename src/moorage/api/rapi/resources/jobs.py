# SPDX-License-Identifier: BSD-2-Clause
"""Jobs: listed, told, followed and cancelled."""

from typing import Any

from moorage.api.luxi import NOCHANGE
from moorage.api.luxi_messages import error_from_wire
from moorage.api.rapi.looking import BULK, Do, Listed
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
    found: list[Any] = await asked.luxi.call("CancelJob", _number(asked))
    return found


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
    told = await asked.luxi.call(
        "WaitForJobChange", _number(asked), fields, seen, serial, _WAIT
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
    return isinstance(one, dict) and isinstance(one.get("reason", []), list)


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
            },
        ),
        Role.OPERATE,
    ),
)
