# SPDX-License-Identifier: BSD-2-Clause
"""Following jobs: submit, show what they say, return what came of them."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from moorage.api.luxi_messages import error_from_wire
from moorage.client import ENDED, LONGEST_WAIT, Change, Client
from moorage.errors import MoorageError, NoMaster, Unreachable

from .command import Call, Finished
from .dry_run import plan_lines
from .options import PRIORITIES

FIELDS = ("status", "progress")
_PATIENCE = 60.0
"""Seconds that a master may be away while its job is followed."""
_SOON = 2.0
"""Seconds after which a job that does not move is worth a line."""
_QUIET = {
    "queued": "Job {} is waiting in queue",
    "waiting": "Job {} is trying to acquire all necessary locks",
}


class Bar(Protocol):
    """Something that shows progress."""

    def show(self, progress: Mapping[str, Any] | None) -> None:
        """Show how far the running task is; None when nothing is known of it."""

    def close(self) -> None:
        """Leave the screen."""


def _ignore(_: str) -> None:
    """Take a line, for nobody."""


class Follower:
    """Follows one job to its end, in silence unless somebody takes what it says.

    Parameters
    ----------
    client
        Connection to the master.
    log
        Takes each line of the job's log.
    talk
        Takes what is said besides.
    bar
        Shows progress, where somebody looks.
    pause
        Waits some seconds while the master is away.
    """

    def __init__(
        self,
        client: Client,
        *,
        log: Callable[[str], None] = _ignore,
        talk: Callable[[str], None] = _ignore,
        bar: Bar | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._log = log
        self._talk = talk
        self._bar = bar
        self._pause = pause
        self._fields = FIELDS if bar else FIELDS[:1]
        self._quiet = ""

    def follow(self, job: int) -> str:
        """Show a job until it ends; return its last status.

        Raises
        ------
        NotFound
            If there is no such job.
        Unreachable, NoMaster
            If the master stays away.
        """
        seen: Sequence[Any] | None = None
        serial: int | None = None
        status = ""
        try:
            while status not in ENDED:
                change = self._change(job, seen, serial)
                if change is None:
                    self._still(job, status)
                    continue
                seen = change.values
                status, serial = str(seen[0]), self._tell(change.log, serial)
                self._redraw(seen)
        finally:
            if self._bar:
                self._bar.close()
        return status

    def _change(
        self, job: int, seen: Sequence[Any] | None, serial: int | None
    ) -> Change | None:
        """Wait for a change; a master that is away for a while is waited for too."""
        told = seen is None or seen[0] not in _QUIET or seen[0] == self._quiet
        timeout = LONGEST_WAIT if told else _SOON
        waited = 0.0
        while True:
            try:
                return self._client.change(job, self._fields, seen, serial, timeout)
            except (NoMaster, Unreachable):
                if waited >= _PATIENCE:
                    raise
                if not waited:
                    self._talk(f"The master went away; waiting for it (job {job})")
                self._pause(0.5)
                waited += 0.5

    def _still(self, job: int, status: str) -> None:
        """Say once what a job that does not move waits for."""
        if status in _QUIET and status != self._quiet:
            self._talk(_QUIET[status].format(job))
        self._quiet = status

    def _tell(self, entries: Sequence[Any] | None, serial: int | None) -> int | None:
        if entries and self._bar:
            self._bar.close()  # it comes back below the lines
        for number, (seconds, _), kind, message in entries or ():
            if serial is None or number > serial:
                serial = number
                self._log(f"{time.ctime(seconds)} {_message(kind, message)}")
        return serial

    def _redraw(self, seen: Sequence[Any]) -> None:
        if self._bar:
            self._bar.show(seen[1] if len(seen) > 1 else None)


def _message(kind: str, message: Any) -> str:  # noqa: ANN401
    if kind == "message-list" and isinstance(message, list):
        return "\n".join(str(line) for line in message)
    return str(message)


def opcode(call: Call, op_id: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an opcode with what the common options add to it."""
    op = {"OP_ID": op_id or call.command.operation, **fields}
    if call.option("dry_run"):
        op["dry_run"] = True
    if call.option("priority"):
        op["priority"] = PRIORITIES[call.option("priority")]
    now = time.time_ns()
    source = [f"gnt:client:{call.program.name}", call.command.name, now]
    reason = call.option("reason")
    op["reason"] = [["gnt:user", reason, now], source] if reason else [source]
    return op


def fetch(call: Call, op_id: str = "", /, **fields: Any) -> Any:  # noqa: ANN401
    """Carry out an operation as a job and return its result, for the caller to show.

    It is the command's own, where none is named.

    Raises
    ------
    Finished
        If the caller has nothing left to do: only submitted, or only planned.
    MoorageError
        If the job failed.
    """
    return _carried_out(call, op_id, fields)[1]


def perform(call: Call, op_id: str = "", /, **fields: Any) -> Any:  # noqa: ANN401
    """Carry out an operation as :func:`fetch` does; with ``--json``, tell the result.

    Raises
    ------
    Finished
        If the caller has nothing left to do: only submitted, only planned, or told.
    MoorageError
        If the job failed.
    """
    job, result = _carried_out(call, op_id, fields)
    if call.option("json"):
        call.show({"job": job, "status": "success", "result": result}, ())
        raise Finished
    return result


def _carried_out(call: Call, op_id: str, fields: Mapping[str, Any]) -> tuple[int, Any]:
    job = call.client.submit(opcode(call, op_id, fields))
    _announce(call, [job])
    result = follow(call, job)[0]
    if call.option("dry_run"):
        call.show({"plan": result}, plan_lines(result or ()))
        raise Finished
    return job, result


def perform_all(call: Call, each: Mapping[str, Mapping[str, Any]]) -> int:
    """Carry out the operation in a job a name; return the exit status: 1 if any failed.

    Parameters
    ----------
    each
        Fields of the opcode, by the name of what it is about.
    """
    if len(each) == 1:
        (fields,) = each.values()
        perform(call, **fields)
    if len(each) <= 1:
        return 0
    jobs = [[opcode(call, "", fields)] for fields in each.values()]
    answers = call.client.submit_many(jobs)
    return follow_many(call, dict(zip(each, answers, strict=True)))


Answers = Mapping[str, int | MoorageError]
"""Jobs by what to call them: the number of each, or why there is none."""


def submitted(result: Mapping[str, Any]) -> Answers:
    """Return the jobs that an operation has submitted, by what each is for."""
    jobs = zip(result["names"], result["jobs"], strict=True)
    return {
        name: int(what) if taken else error_from_wire(what)
        for name, (taken, what) in jobs
    }


def follow_many(call: Call, answers: Answers) -> int:
    """Follow jobs as :func:`failures` does; return the exit status."""
    failed = failures(call, answers)
    if not call.option("dry_run"):
        call.show(ends(answers, failed), ())
    return int(bool(failed))


def ends(answers: Answers, failed: Mapping[str, MoorageError]) -> list[dict[str, Any]]:
    """Return what ``--json`` tells of several jobs: what each is for, and its end."""
    return [
        {
            "name": name,
            "job": answer if isinstance(answer, int) else None,
            "status": "error" if name in failed else "success",
            "error": failed[name].message if name in failed else "",
        }
        for name, answer in answers.items()
    ]


def failures(call: Call, answers: Answers) -> dict[str, MoorageError]:
    """Follow jobs one by one; return what went wrong, by name."""
    from .errors import show  # noqa: PLC0415 - on failure only

    _announce(call, [one for one in answers.values() if isinstance(one, int)])
    failed = {}
    for name, answer in answers.items():
        try:
            if not isinstance(answer, int):
                raise answer
            say = call.terminal.talk if call.option("json") else call.terminal.print
            say(f"Waiting for job {answer} for {name} ...")
            results = follow(call, answer)
            for result in results if call.option("dry_run") else ():
                call.show({"plan": result}, plan_lines(result or ()))
            for job in _followers(results):
                follow(call, job)
        except MoorageError as error:
            show(error, call.terminal)
            failed[name] = error
    return failed


def _announce(call: Call, jobs: Sequence[int]) -> None:
    """Print the numbers of new jobs, where they are asked for."""
    if call.option("submit") or call.option("print_jobid"):
        for job in jobs:
            call.terminal.talk(f"JobID: {job}")
    if call.option("submit"):
        raise Finished


def _followers(results: Sequence[Any]) -> list[int]:
    """Return the jobs that the operations of a job have submitted."""
    told = [one["jobs"] for one in results if isinstance(one, dict) and "jobs" in one]
    return [int(job) for jobs in told for taken, job in jobs if taken]


def follow(call: Call, job: int) -> Sequence[Any]:
    """Follow a job to its end and return the results of its operations.

    An interrupt only stops the following.

    Raises
    ------
    MoorageError
        If the job failed.
    """
    terminal = call.terminal
    data = call.option("json") and call.program.name != "gnt-job"
    log = terminal.talk if data else terminal.print
    follower = Follower(call.client, log=log, talk=terminal.talk, bar=_bar(call))
    try:
        follower.follow(job)
    except KeyboardInterrupt:
        terminal.talk(f"\nJob {job} goes on; come back to it with: gnt-job watch {job}")
        raise Finished(130) from None
    return call.client.job(job).outcome()


def _bar(call: Call) -> Bar | None:
    if not call.terminal.lively:
        return None
    from .progress import ProgressBar  # noqa: PLC0415 - rich is slow to import

    return ProgressBar(call.terminal.err)
