# SPDX-License-Identifier: BSD-2-Clause
"""moorage watcher: brings back what should run, now and then, as a timer wants it.

It is a client as any other: what it decides becomes jobs, and what is safe is for their
operations to say. Instances are started "if wanted": one that somebody shut down in the
meantime stays down.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import DecodeError, ValidationError, json
from msgspec.structs import replace

from moorage import durable
from moorage.cli.command import Call, Command, Option
from moorage.cli.errors import show
from moorage.cli.log_format import LOG_FORMAT, choose
from moorage.cli.option_syntax import seconds
from moorage.cli.options import DEBUG, moot
from moorage.directories import MASTER_DIR
from moorage.errors import Failed, NoMaster, NotMaster, WrongState
from moorage.model import nice

from . import jobs
from .rules import Guest, Memory, Plan, plan

NOT_MASTER = 11
"""Exit status where there is no master on this machine, as in Ganeti."""
_OLD = 6 * 3600
"""Seconds after which a job that ended is put away, as in Ganeti."""
_FIELDS = (
    *("name", "status", "admin_state", "pnode", "snodes"),
    *("disks_active", "disk.holders"),
)


def watch(call: Call) -> int:
    """Look once at all instances, and do what is to be done."""
    choose(call)
    try:
        until = call.client.watcher_pause()
    except (NoMaster, NotMaster) as error:
        show(error, call.terminal)
        return NOT_MASTER
    file = _place(call)
    _as_the_timer(file.parent)
    with _alone(file):
        if until and until > time.time() and not call.option("ignore_pause"):
            told = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(until))
            call.terminal.talk(f"The watcher is paused until {told}")
            if not call.option("dry_run"):
                _keep(file, _remembered(file))  # it has looked, to see that
            return 0
        call.client.archive_ended(call.option("job_age"))
        return _watched(call, file)


def _watched(call: Call, file: Path) -> int:
    before = _remembered(file)
    busy = jobs.unfinished(call, before.jobs)
    found = plan(_guests(call), _boots(call), replace(before, jobs=busy), time.time())
    for sentence in found.warnings:
        call.terminal.print(f"Warning: {sentence}")
    ops = _opcodes(found)
    if call.option("dry_run"):
        for name, (op_id, _) in ops.items():
            call.terminal.print(f"Would do {op_id} for {name}")
        return 0
    failed, under_way = jobs.carried_out(call, ops)
    lost = failed & {*found.activations}
    boots = before.boots if lost else found.memory.boots  # to be tried again
    _keep(file, Memory(found.memory.tries, boots, busy | under_way))
    return int(bool(failed))


def _opcodes(found: Plan) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return opcodes and their fields by instance: each appears in one list only."""
    kinds: tuple[tuple[tuple[str, ...], str, dict[str, Any]], ...] = (
        (found.ended, "OP_INSTANCE_SHUTDOWN", _ENDED),
        (found.starts, "OP_INSTANCE_STARTUP", {"if_wanted": True}),
        (found.activations, "OP_INSTANCE_ACTIVATE_DISKS", {}),
    )
    return {
        name: (op_id, {"instance_name": name, **more})
        for names, op_id, more in kinds
        for name in names
    }


_ENDED = {"admin_state_source": "user", "if_ended": True}


def _guests(call: Call) -> list[Guest]:
    found = []
    for row in call.rows("instance", _FIELDS):
        name, status, admin, pnode, snodes, active, holders = row.values()
        nodes = (pnode, tuple(snodes or ()))
        had_by = tuple(holders or ())
        found.append(Guest(name, status, admin, *nodes, bool(active), had_by))
    return sorted(found, key=lambda one: nice(one.name))


def _boots(call: Call) -> dict[str, str]:
    rows = call.rows("node", ("name", "bootid"))
    return {row["name"]: row["bootid"] for row in rows if row["bootid"]}


def _place(call: Call) -> Path:
    from moorage.daemons.paths import MasterPlaces  # noqa: PLC0415 - the daemons' side

    preset = call.terminal.environ.get("MOORAGE_DIR") or MASTER_DIR
    return MasterPlaces(Path(call.option("dir") or preset)).watcher


def _as_the_timer(directory: Path) -> None:
    """Become the master's user where root typed this: the timer's next run is its."""
    if not os.geteuid():
        from moorage.daemons import state_directory  # noqa: PLC0415 - as above

        state_directory.become_owner(directory)


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Hold the lock beside the watcher's memory: one watcher looks at a time."""
    held = _opened(file.with_suffix(".lock"))
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise WrongState("another watcher is at work") from None
    finally:
        os.close(held)


def _opened(lock: Path) -> int:
    """Open the lock; one that root left in the master's directory gives way."""
    how = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    try:
        with suppress(PermissionError):
            return os.open(lock, how, 0o600)
        lock.unlink()
        return os.open(lock, how, 0o600)
    except OSError as error:
        raise _unkept(lock, error) from error


def _remembered(file: Path) -> Memory:
    """Return what was kept; what root left there, and nobody can read, is lost."""
    try:
        return json.decode(file.read_bytes(), type=Memory)
    except (FileNotFoundError, PermissionError, DecodeError, ValidationError):
        return Memory()


def _keep(file: Path, memory: Memory) -> None:
    try:
        durable.write(file, json.encode(memory))
    except OSError as error:
        raise _unkept(file, error) from error


def _unkept(file: Path, error: OSError) -> Failed:
    return Failed(
        f"the watcher cannot keep {file}: {error.strerror}",
        hint=f"namei -l {file}; df -h {file.parent}",
    )


COMMANDS = (
    Command(
        "watcher",
        watch,
        (),
        (
            Option(("--dir",), "the master's directory (/var/lib/moorage)", "DIR"),
            Option(("--dry-run",), "say what would be done; change nothing"),
            Option(("--ignore-pause",), "work although the watcher is paused"),
            LOG_FORMAT,
            Option(
                ("-A", "--job-age"),
                "put away jobs that ended so many seconds ago (21600)",
                "SECONDS",
                seconds,
                default=_OLD,
            ),
            moot("--no-wait-children", "there is one process for all node groups"),
            moot("--wait-children", "there is one process for all node groups"),
            moot("--no-verify-disks", "disks are attached again where a node booted"),
            moot("--no-strict", "a guest is started by a job, which looks again"),
            DEBUG,
        ),
        examples={
            "moorage watcher": "once, by hand",
            "moorage watcher --dry-run": "what would it do?",
            "gnt-cluster watcher pause 2h": "leave everything alone for a while",
        },
        here="what it has seen is in the master's directory",
    ),
)
