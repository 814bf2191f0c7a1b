# SPDX-License-Identifier: BSD-2-Clause
"""The commands of storage verbs on a real node: clean environment, logs, timeouts.

A script may leave a daemon behind that still holds its output (a storage daemon that
serves a volume): what counts as the end is the end of the script itself, so output goes
to files, never to pipes.
"""

import asyncio
import os
import signal
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TypeVar

from moorage.errors import CommandFailed, Failed
from moorage.storage import Command, Output

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TAIL = 20
"""Lines of output that an error shows."""
_ANSWER = 1024 * 1024
"""Bytes of standard output that a template gets to see."""
_UMASK = 0o077
"""Images and logs are nobody else's business."""

R = TypeVar("R")


async def drive(
    steps: Generator[Command, Output, R],
    run: Callable[[Command], Awaitable[Output]],
) -> R:
    """Run the commands that `steps` yield, and return what they return.

    A command that fails is thrown into `steps`, which may yield commands that clean
    up before they let the failure out.

    Raises
    ------
    MoorageError
        What the steps raise.
    """
    try:
        command = next(steps)
        while True:
            try:
                output = await run(command)
            except Failed as failure:
                command = steps.throw(failure)
            else:
                command = steps.send(output)
    except StopIteration as stop:
        result: R = stop.value
        return result
    finally:
        steps.close()


async def run(command: Command, *, log_dir: Path, timeout: float) -> Output:  # noqa: ASYNC109
    """Run one command and return its answer.

    Parameters
    ----------
    log_dir
        Where the output of commands with a `log` goes, as ``<log>-<time>.log``.
    timeout
        Seconds after which the command and its process group are killed.

    Raises
    ------
    CommandFailed
        If it cannot be started, takes too long, or exits with an error that the
        template did not ask to see.
    """
    if not command.log:
        with TemporaryFile() as out, TemporaryFile() as err:
            code = await _finish(command, out, err, timeout)
            answer = _start_of(out)
            lines = [*_tail_of(err), *_tail_of(out)][-_TAIL:]
    else:
        with _log_file(command.log, log_dir) as log:
            begin = log.tell()
            code = await _finish(command, log, log, timeout)
            answer = ""
            lines = _tail_of(log, begin)
    if code is None:
        raise _failure(command, f"did not end within {timeout:g} s", lines)
    if code and command.check:
        raise _failure(command, _ending(code), lines)
    return Output(stdout=answer, code=code)


async def _finish(
    command: Command,
    out: IO[bytes],
    err: IO[bytes],
    timeout: float,  # noqa: ASYNC109
) -> int | None:
    """Return the exit status, None for a command that took too long."""
    process = await _start(command, out, err)
    try:
        async with asyncio.timeout(timeout):
            return await process.wait()
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:  # too long, or nobody waits any more
            with suppress(ProcessLookupError):  # it ended this very moment
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _start(
    command: Command, out: IO[bytes], err: IO[bytes]
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *command.argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=command.cwd or "/",
            env={"PATH": PATH, "LC_ALL": "C", **command.env},
            start_new_session=True,
            umask=_UMASK,
        )
    except OSError as error:
        raise CommandFailed(
            f"{_title(command)} cannot be run: {error.strerror} ({error.filename})",
            argv=list(command.argv),
        ) from error


def _log_file(name: str, log_dir: Path) -> IO[bytes]:
    if not log_dir.is_dir():
        raise CommandFailed(f"Cannot find log directory: {log_dir}")
    try:
        return (log_dir / f"{name}-{int(time.time())}.log").open("a+b")
    except OSError as error:
        raise CommandFailed(
            f"cannot write a log in {log_dir}: {error.strerror}"
        ) from error


def _start_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_ANSWER).decode(errors="replace")


def _tail_of(file: IO[bytes], begin: int = 0) -> list[str]:
    file.seek(begin)
    last = deque(file, maxlen=_TAIL)
    return [line.decode(errors="replace").rstrip("\n") for line in last]


def _failure(command: Command, how: str, lines: list[str]) -> CommandFailed:
    return CommandFailed(
        f"{_title(command)} failed ({how}), last lines of output:\n" + "\n".join(lines),
        argv=list(command.argv),
    )


def _title(command: Command) -> str:
    return command.failure or " ".join(command.argv)


def _ending(code: int) -> str:
    if code < 0:
        return f"terminated by signal {-code}"
    return f"exited with exit code {code}"
