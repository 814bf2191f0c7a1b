# SPDX-License-Identifier: BSD-2-Clause
"""gnt-debug: looking behind the scenes."""

import json
import time
from itertools import zip_longest
from pathlib import Path
from typing import Any

from moorage.cli.command import Call, Command, Operand, Option
from moorage.cli.fields import fill, fills
from moorage.cli.follow import failures, follow_many, perform
from moorage.cli.listing import LOOK, OUTPUT, chosen, print_query
from moorage.cli.operation import Performs
from moorage.cli.option_syntax import number
from moorage.cli.options import DEBUG, JOB, JSON, moot, refused
from moorage.client.qfilter import of_words
from moorage.errors import BadInput, MoorageError
from moorage.units import parse_size

_TIMES = number("a number from 1 to 1000", 1, 1000)
_LOCKS = ("name", "mode", "owner", "pending")


def _locks(call: Call) -> int:
    fields = chosen(call.option("output"), _LOCKS)
    return print_query(call, "lock", fields, of_words(call.words, ("name",)))


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise BadInput(f"'{text}' is not a number of seconds") from error


def submit(call: Call) -> int:
    """Submit jobs from files that hold lists of opcodes, as JSON."""
    began = time.monotonic()
    ops, rounds = call.option("op_repeat"), call.option("job_repeat")
    jobs = {name: [op for op in _ops(name) for _ in range(ops)] for name in call.words}
    names = {
        name if rounds == 1 else f"{name} #{n + 1}": jobs[name]
        for name in jobs
        for n in range(rounds)
    }
    submitted = _submitted(call, list(names.values()))
    taken = time.monotonic() - began
    status = follow_many(call, dict(zip(names, submitted, strict=True)))
    if call.option("timing_stats"):
        call.terminal.print(f"C:op     {ops * sum(map(len, jobs.values()))}")
        call.terminal.print(f"C:job    {len(names)}")
        call.terminal.print(f"T:submit {taken:.4f}")
        call.terminal.print(f"T:total  {time.monotonic() - began:.4f}")
    return status


def _submitted(
    call: Call, jobs: list[list[dict[str, Any]]]
) -> list[int | MoorageError]:
    if not call.option("each"):
        return call.client.submit_many(jobs)
    return [one for job in jobs for one in call.client.submit_many([job])]


def _test_queue(call: Call) -> int:
    delay = {"OP_ID": "OP_TEST_DELAY", "duration": 0.0, "on_master": True}
    first = [delay]
    after = [delay | {"depends": [[-1, ["success"]]], "priority": -10}]
    slow = [delay | {"duration": 60.0, "depends": [[-1, ["success"]]]}]
    answers = call.client.submit_many([first, after, slow])
    names = ("a job", "a job after another", "a job that is cancelled")
    last = answers[-1]
    if isinstance(last, int):
        call.client.cancel(last)
    ended = failures(call, dict(zip(names, answers, strict=True)))
    for name in names:
        should_fail = name == names[-1]
        right = (name in ended) == should_fail
        call.terminal.print(f"{name}: {'as it should be' if right else 'WRONG'}")
    return int(set(ended) != {names[-1]})


def _iallocator(call: Call) -> None:
    fields = dict(call.fields)
    fields["name"], fields["instances"] = call.words[0], list(call.words)
    call.terminal.print(perform(call, **fields))


def _sizes(text: str) -> list[dict[str, Any]]:
    return [{"size": parse_size(one), "mode": "rw"} for one in text.split(",") if one]


def _cards(text: str) -> list[dict[str, Any]]:
    given = [[word or None for word in one.split("/")] for one in text.split(",")]
    names = ("mac", "ip", "bridge")
    return [dict(zip_longest(names, one[: len(names)])) for one in given]


def _words(text: str) -> list[str]:
    return [one for one in text.split(",") if one]


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


COMMANDS = (
    Command(
        "locks",
        _locks,
        (Operand("LOCK", 0, None),),
        (
            OUTPUT,
            *LOOK,
            refused("--interval", "watch repeats a command", "SECONDS"),
            JSON,
            DEBUG,
        ),
        examples={"gnt-debug locks": "who holds what"},
    ),
    Command(
        "delay",
        Performs(),
        (Operand("SECONDS", field="duration", convert=_seconds),),
        (
            fill("--no-master=on_master", help="not on the master", value=False),
            fill("-n/--node=on_nodes", repeats=True),
            *fills("-r/--repeat -l/--no-locks -i/--interruptible"),
            *JOB,
        ),
        operation="OP_TEST_DELAY",
    ),
    Command(
        "iallocator",
        _iallocator,
        (Operand("INSTANCE", 1, None),),
        (
            fill("--dir=direction", choices=("in", "out")),
            fill("-m/--mode"),
            fill("--memory", convert=parse_size, metavar="SIZE"),
            fill("--disks", convert=_sizes, metavar="SIZE,..."),
            fill("--nics", convert=_cards, metavar="MAC/IP/BRIDGE,..."),
            fill("--tags", convert=_words, metavar="TAG,..."),
            fill("--target-groups", repeats=True),
            *fills("-I/--iallocator -t/--disk-template -o/--os-type=os"),
            *fills(
                "-p/--vcpus --evac-mode --spindle-use --count -g/--group=group_name"
            ),
            *JOB,
        ),
        operation="OP_TEST_ALLOCATOR",
        examples={
            "gnt-debug iallocator -m allocate --disks 10G -t drbd web1": "a message",
            "gnt-debug iallocator -m node-evacuate --dir out -I mine web1 web2": (
                "an answer"
            ),
        },
    ),
    Command(
        "submit-job",
        submit,
        (Operand("FILE", 1, None),),
        (
            Option(("--op-repeat",), "each opcode so many times", "N", _TIMES, 1),
            Option(("--job-repeat",), "each job so many times", "N", _TIMES, 1),
            Option(("--each",), "submit jobs one by one, not all at once"),
            Option(("--timing-stats",), "say how long it took"),
            moot("--verbose", "jobs are followed in any case", short="-v"),
            *JOB,
        ),
    ),
    Command(
        "test-jobqueue",
        _test_queue,
        (),
        (moot("--priority", "it tries several", "PRIORITY"), DEBUG),
    ),
)
