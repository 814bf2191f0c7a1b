# SPDX-License-Identifier: BSD-2-Clause
"""gnt-job: what the cluster is doing, did and will do."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from moorage.api.luxi_messages import error_from_wire
from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.follow import Follower, follow
from moorage.cli.listing import Listing, chosen, print_query
from moorage.cli.option_syntax import span
from moorage.cli.options import ASKING, DEBUG, JSON, PRIORITIES, PRIORITY
from moorage.cli.table import moment
from moorage.cli.yamlish import Words, lines
from moorage.client import ENDED
from moorage.client.qfilter import Filter, of_words
from moorage.errors import BadInput, NotFound, WrongState
from moorage.units import counted

LISTING = Listing("job", ("id", "status", "summary"), ("id",))
STATES = {
    "pending": ("queued", "waiting"),
    "running": ("running",),
    "error": ("error",),
    "finished": ENDED,
}
_PER_OP = ("ops", "opstatus", "opresult", "oplog", "opstart", "opexec", "opend")
_INFO = ("id", "status", "received_ts", "start_ts", "end_ts", *_PER_OP, "tasks")


_RANGE = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12}))?")
_MOST = 10_000
"""Jobs that one command can name."""


def numbers(words: Sequence[str]) -> list[int]:
    """Return job numbers; ``3-5`` is three of them.

    Raises
    ------
    BadInput
        If a word is neither a number nor a range, or if they are too many.
    """
    found: list[int] = []
    for word in words:
        first, last = _range(word)
        if last - first >= _MOST - len(found):
            raise BadInput(f"'{word}' is too much: at most {_MOST} jobs can be named")
        found.extend(range(first, last + 1))
    return found


def _range(word: str) -> tuple[int, int]:
    found = _RANGE.fullmatch(word)
    if not found:
        raise BadInput(
            f"'{word[:40]}' is not a job's number, nor a range like 3-5",
            hint="gnt-job list",
        )
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise BadInput(f"'{word}' is no range: it ends before it begins")
    return first, last


def wanted_jobs(words: Sequence[str]) -> Filter | None:
    """Return the filter for numbers and ranges; None if that is not what they are."""
    if not all(map(_RANGE.fullmatch, words)) or not any("-" in word for word in words):
        return None
    parts: list[Filter] = []
    for word in words:
        first, last = _range(word)
        between: Filter = ["&", [">=", "id", first], ["<=", "id", last]]
        parts.append(between if "-" in word else ["==", "id", first])
    return ["|", *parts]


def list_jobs(call: Call) -> int:
    """Print a table of jobs."""
    fields = chosen(call.option("output"), LISTING.fields)
    if call.option("archived") and "archived" not in fields:
        fields.append("archived")
    forced = bool(call.option("filter"))
    wanted = None if forced else wanted_jobs(call.words)
    wanted = wanted or of_words(call.words, LISTING.key, forced=forced)
    states = [s for name, group in STATES.items() if call.option(name) for s in group]
    if states:
        parts: list[Filter] = [["==", "status", state] for state in states]
        chosen_states: Filter = ["|", *parts]
        wanted = ["&", chosen_states, wanted] if wanted else chosen_states
    return print_query(call, "job", fields, wanted)


def _info(call: Call) -> None:
    wanted = numbers(call.words)
    rows = call.client.jobs(wanted, _INFO)
    jobs = [dict(zip(_INFO, row, strict=True)) for row in rows if row is not None]
    if jobs:
        call.show(jobs, lines([_job(job) for job in jobs]))
    for number, row in zip(wanted, rows, strict=True):
        if row is None:
            raise NotFound(f"job {number} is not known", hint="gnt-job list")


def _job(job: Mapping[str, Any]) -> dict[str, Any]:
    received, start, end = job["received_ts"], job["start_ts"], job["end_ts"]
    whole = received and end and f"{_between(received, end):.6f} seconds"
    return {
        "Job ID": job["id"],
        "Status": job["status"],
        "Received": _since(received),
        "Processing start": _since(start, received),
        "Processing end": _since(end, start),
        "Total processing time": whole or "N/A",
        "Opcodes": list(_opcodes(job)),
    }


def _since(stamp: Any, before: Any = None) -> str:  # noqa: ANN401
    """Return a moment, and how long it was after the one before."""
    if stamp is None:
        return "unknown (None)"
    delta = f" (delta {_between(before, stamp):.6f}s)" if before else ""
    return f"{_exactly(stamp)}{delta}"


def _exactly(stamp: Any) -> str:  # noqa: ANN401
    """Return a moment to the microsecond."""
    return f"{moment(stamp)}.{stamp[1]:06d}" if stamp else "N/A"


def _between(first: Sequence[int], last: Sequence[int]) -> float:
    return last[0] - first[0] + (last[1] - first[1]) / 1_000_000


def _opcodes(job: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    columns = (job[key] or () for key in (*_PER_OP, "tasks"))
    for op, status, result, log, *times, tasks in zip(*columns, strict=True):
        start, execution, end = map(_exactly, times)
        yield {
            "Opcode": op.get("OP_ID", "?"),
            "Status": status,
            "Processing start": start,
            "Execution start": execution,
            "Processing end": end,
            "Input fields": _sorted(op),
            "Result": _sorted(result[:2] if status == "error" else result),
            **(_error(result) if status == "error" else {}),
            "Tasks": [_task(task) for task in tasks] or "(none)",
            "Execution log": [_logged(entry) for entry in log or ()],
        }


def _sorted(value: Any) -> Any:  # noqa: ANN401
    """Return maps in the order of their keys, whatever they are in."""
    if isinstance(value, list):
        return [_sorted(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return value


def _error(result: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return what Ganeti does not tell of an error."""
    error = error_from_wire(result)
    found: dict[str, Any] = {"Error": error.message, "Error code": error.code}
    if error.facts:
        found["Error facts"] = _sorted(error.facts)
    return {**found, "Hint": error.hint} if error.hint else found


def _task(task: Mapping[str, Any]) -> str:
    return f"{task['what']} [{task['node']}] ({task['state']})"


def _logged(entry: Sequence[Any]) -> dict[str, Any]:
    serial, stamp, kind, message = entry
    text = message if isinstance(message, str) else json.dumps(message)
    return {"Time": _exactly(stamp), "Content": Words([serial, kind, text])}


def _watch(call: Call) -> None:
    number, *others = numbers(call.words)
    if others:
        raise BadInput("one job can be watched", hint=f"gnt-job watch {number}")
    call.terminal.print(f"Output from job {number} follows")
    call.terminal.print("-" * 22)
    follow(call, number)


def _wait(call: Call) -> int:
    follower = Follower(call.client)
    ends = [follower.follow(number) for number in numbers(call.words)]
    return int(any(end != "success" for end in ends))


def _cancel(call: Call) -> int:
    wanted = _chosen_jobs(call)
    if call.option("kill") and not call.option("yes_do_it"):
        named = " ".join(map(str, wanted))
        raise BadInput(
            "the --kill option ends scripts in the middle: it must be confirmed",
            hint=f"gnt-job cancel --kill --yes-do-it {named}",
        )
    kill = bool(call.option("kill"))
    return _each(call, wanted, "Cancel", partial(call.client.cancel, kill=kill))


def _each(
    call: Call, jobs: Sequence[int], what: str, ask: Callable[[int], tuple[bool, str]]
) -> int:
    """Ask the master something for each job; return 1 if it refuses one."""
    if not call.words:
        call.ask(f"{what} {counted(len(jobs), 'job')}?")
    worst = 0
    for number in jobs:
        done, message = ask(number)
        (call.terminal.print if done else call.terminal.talk)(message)
        worst |= not done
    return int(worst)


def _chosen_jobs(call: Call) -> list[int]:
    """Return the jobs that are named, or those of the states that are."""
    names = [name for name in ("pending", *STATES["pending"]) if call.option(name)]
    if call.words and names:
        raise BadInput(f"numbers and --{names[0]} do not go together")
    if call.words:
        return numbers(call.words)
    if not names:
        hint = f"gnt-job {call.command.name} NUMBER, or --pending"
        raise BadInput("no job is named", hint=hint)
    states = [state for name in names for state in STATES.get(name, (name,))]
    wanted: Filter = ["|", *(["==", "status", state] for state in states)]
    return [row["id"] for row in call.rows("job", ["id"], wanted)]


def _archive(call: Call) -> int:
    wanted = numbers(call.words)
    failed = 0
    for number in wanted:
        try:
            _put_away(call, number)
        except (NotFound, WrongState) as error:
            if len(wanted) == 1:
                raise
            failed += 1
            call.terminal.talk(error.message)
    if failed:
        done = counted(len(wanted) - failed, "job")
        call.terminal.talk(f"Archived {done}, and {failed} not")
    return int(bool(failed))


def _put_away(call: Call, number: int) -> None:
    if not call.client.archive(number):
        raise WrongState(
            f"job {number} cannot be archived: it, or one that depends on it, has not "
            "ended"
        )


def _autoarchive(call: Call) -> None:
    (word,) = call.words
    age = -1 if word == "all" else span(word)
    done, left = call.client.archive_ended(age)
    told = f"Archived {counted(done, 'job')}"
    call.terminal.print(f"{told}, {left} are left" if left else told)


def _change_priority(call: Call) -> int:
    priority = PRIORITIES[call.option("priority") or "normal"]
    ask = partial(call.client.set_priority, priority=priority)
    return _each(call, _chosen_jobs(call), "Change the priority of", ask)


_JOB = (Operand("JOB"),)
_JOBS = (Operand("JOB", 1, None),)
_ANY = (Operand("JOB", 0, None),)
_LIST, _LIST_FIELDS = LISTING.commands("gnt-job", 'status == "error"', "priority")
_GROUPS = tuple(
    Option((f"--{name}",), f"those with status {' or '.join(states)}")
    for name, states in STATES.items()
)
_CHOICES = (
    Option(("--pending",), "every job that does not run yet"),
    Option(("--queued",), "every job that waits for its turn"),
    Option(("--waiting",), "every job that waits for locks or nodes"),
)
_ARCHIVED = Option(("--archived",), "those too that were put away, and say which")

COMMANDS = (
    _LIST._replace(handler=list_jobs, options=(*_LIST.options, *_GROUPS, _ARCHIVED)),
    _LIST_FIELDS,
    Command(
        "info",
        _info,
        _JOBS,
        (JSON, DEBUG),
        {"gnt-job info 12": "what job 12 did, or why it failed"},
    ),
    Command(
        "watch",
        _watch,
        _JOB,
        (DEBUG,),
        examples={"gnt-job watch 12": "come back to a job"},
    ),
    Command("wait", _wait, _JOBS, (DEBUG,)),
    Command(
        "cancel",
        _cancel,
        _ANY,
        (
            *_CHOICES,
            Option(("--kill",), "end the script that it runs on a node, too"),
            Option(("--ya-rly", "--yes-do-it"), "really kill"),
            *ASKING,
            DEBUG,
        ),
        examples={"gnt-job cancel 12": "cancel one"},
    ),
    Command("archive", _archive, _JOBS, (DEBUG,)),
    Command(
        "autoarchive",
        _autoarchive,
        (Operand("AGE"),),
        (DEBUG,),
        examples={"gnt-job autoarchive 1w": "those of last week go"},
    ),
    Command(
        "change-priority", _change_priority, _ANY, (*_CHOICES, *ASKING, PRIORITY, DEBUG)
    ),
)
