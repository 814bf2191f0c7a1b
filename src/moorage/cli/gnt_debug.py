# SPDX-License-Identifier: BSD-2-Clause
"""gnt-debug: looking behind the scenes."""

import json
from pathlib import Path
from typing import Any

from moorage.errors import BadInput

from .command import Call, Command, Example, Operand, Option, Program
from .follow import follow_many, perform
from .listing import LOOK, OPTIONS, chosen, print_query
from .main import run
from .options import DEBUG, JOB, JSON
from .qfilter import of_words

_LOCKS = ("name", "mode", "owner", "pending")


def locks(call: Call) -> int:
    """List what jobs hold and wait for."""
    fields = chosen(call.option("output"), _LOCKS)
    return print_query(call, "lock", fields, of_words(call.words, ("name",)))


def delay(call: Call) -> int:
    """Submit a job that does nothing for a while."""
    (text,) = call.words
    try:
        seconds = float(text)
    except ValueError as error:
        raise BadInput(f"'{text}' is not a number of seconds") from error
    nodes = call.option("node")
    perform(
        call,
        "OP_TEST_DELAY",
        duration=seconds,
        on_master=not call.option("no_master"),
        on_nodes=nodes,
        **_asked(call),
    )
    return 0


def _asked(call: Call) -> dict[str, Any]:
    """Return the fields of the options that were given."""
    found: dict[str, Any] = {
        name: True for name in ("interruptible", "no_locks") if call.option(name)
    }
    times = call.option("repeat")
    if times and not times.isdecimal():
        raise BadInput(f"'{times}' is not a number of times")
    return found | ({"repeat": int(times)} if times else {})


def submit(call: Call) -> int:
    """Submit jobs from files that hold lists of opcodes, as JSON."""
    jobs = {name: _ops(name) for name in call.words}
    answers = call.client.submit_many_jobs(list(jobs.values()))
    return follow_many(call, dict(zip(jobs, answers, strict=True)))


def _ops(name: str) -> list[dict[str, Any]]:
    try:
        ops = json.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"the file {name} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the file {name} is not JSON: {error}") from error
    if not isinstance(ops, list) or not all(isinstance(op, dict) for op in ops):
        raise BadInput(
            f"the file {name} is not a list of opcodes",
            hint='[{"OP_ID": "OP_TEST_DELAY", "duration": 1}]',
        )
    return ops


PROGRAM = Program(
    "gnt-debug",
    "look behind the scenes",
    (
        Command(
            "locks",
            locks,
            "List what jobs hold and wait for",
            (Operand("LOCK", 0, None),),
            (OPTIONS[0], *LOOK, JSON, DEBUG),
            examples=(Example("gnt-debug locks", "who holds what"),),
        ),
        Command(
            "delay",
            delay,
            "Submit a job that does nothing for a while",
            (Operand("SECONDS"),),
            (
                Option(("--no-master",), "not on the master"),
                Option(("-n", "--node"), "on this node", "NODE", repeats=True),
                Option(("-r", "--repeat"), "so many times", "N"),
                Option(("-l", "--no-locks"), "without locks of the nodes"),
                Option(("-i", "--interruptible"), "as every delay is, by a cancel"),
                *JOB,
            ),
        ),
        Command(
            "submit-job",
            submit,
            "Submit jobs from files of opcodes",
            (Operand("FILE", 1, None),),
            JOB,
        ),
    ),
)


def main() -> int:
    """Run gnt-debug."""
    return run(PROGRAM)
