# SPDX-License-Identifier: BSD-2-Clause
"""The commands of storage verbs on a real node: clean environment, logs, timeouts.

A script may leave a daemon behind that still holds its output (a storage daemon that
serves a volume): what counts as the end is the end of the script itself, so output goes
to files, never to pipes. A script that prints without end is ended: the file would fill
the disk.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from moorage.errors import CommandFailed, Failed
from moorage.node.text import clean
from moorage.protocol import Report, silent
from moorage.storage import Command, Output

from .images import NOTHING, Handed
from .progress import Watch, watched, without_percentages
from .scripts import Note, Scripts

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TAIL = 20
"""Lines of output that an error shows."""
_LONGEST = 500
"""Characters of a line that an error shows."""
_END = 64 * 1024
"""Bytes at the end of an output in which its last lines are looked for."""
_ANSWER = 1024 * 1024
"""Bytes of standard output that a template gets to see, and that stay in a log that
grew too large."""
_MOST = 64 * 1024 * 1024
"""Bytes that a command may print."""
_LOOK = 0.25
"""Seconds between two looks at how much it printed."""
_LOGS, _LOG_AGE = 1000, 30 * 86400.0
"""How many logs are kept in a directory, and for how many seconds."""
_UMASK = 0o077
"""Images and logs are nobody else's business."""


async def run(
    command: Command,
    *,
    timeout: float,  # noqa: ASYNC109
    log_dir: Path | None = None,
    scripts: Scripts | None = None,
    handed: Handed = NOTHING,
    report: Report = silent,
) -> Output:
    """Run one command and return its answer.

    Parameters
    ----------
    timeout
        Seconds after which the command is killed, and what it started.
    log_dir
        Where the output of commands with a `log` goes, as ``<log>-<time>.log``.
    scripts
        Where the command is noted while it runs.
    handed
        What it gets instead of the paths of image files.
    report
        Gets the progress of one that tells it.

    Raises
    ------
    CommandFailed
        If it cannot be started, or exits with an error that the template did not ask
        to see; with the fact ``killed`` if it was ended from outside, so that nobody
        knows how far it came.
    """
    run = _Run(command, timeout, scripts, handed, report)
    if not command.log:
        with TemporaryFile() as out, TemporaryFile() as err:
            code = await run.finish(out, err)
            answer = _start_of(out, _MOST if command.whole else _ANSWER)
            counted = bool(command.progress and not command.progress.variable)
            lines = [*tail_of(err), *tail_of(out, counted=counted)][-_TAIL:]
    else:
        with _log_file(command.log, log_dir) as log:
            begin = os.fstat(log.fileno()).st_size
            code = await run.finish(log, log)
            answer = ""
            lines = tail_of(log, begin)
            size = os.fstat(log.fileno()).st_size
            if run.broken:
                os.ftruncate(log.fileno(), min(size, begin + _ANSWER))
    lines = [handed.with_paths(line) for line in lines]
    if run.broken or code < 0:
        raise _failure(command, run.broken or _ending(code), lines, killed=True)
    if code and command.check:
        raise _failure(command, _ending(code), lines)
    return Output(stdout=answer, code=code)


class _Run:
    """One run of a command.

    Attributes
    ----------
    broken
        Why it was ended before it ended itself; empty if it was not.
    """

    def __init__(
        self,
        command: Command,
        timeout: float,
        scripts: Scripts | None,
        handed: Handed,
        report: Report,
    ) -> None:
        self._command = command
        self._timeout = timeout
        self._scripts = scripts
        self._handed = handed
        self._report = report
        self.broken = ""

    async def finish(self, out: IO[bytes], err: IO[bytes]) -> int:
        """Return the exit status."""
        noted = self._scripts.noted() if self._scripts else nullcontext()
        told = watched(self._command.progress, out, self._report)
        with noted as note, told as watch:
            enter = note.write if note else None
            more = watch.env if watch else {}
            process = await _start(self._command, self._handed, out, err, enter, more)
            try:
                self.broken = await self._watch(process, watch, out, err)
            finally:
                if process.returncode is None:  # or nobody waits any more
                    with suppress(ProcessLookupError):  # it ended this very moment
                        os.killpg(process.pid, signal.SIGKILL)
                    if note:
                        await note.end()
                code = await process.wait()
        return code

    async def _watch(
        self,
        process: asyncio.subprocess.Process,
        watch: Watch | None,
        *printed: IO[bytes],
    ) -> str:
        """Wait for the end, and return why it must not be waited for any longer."""
        outputs = (*printed, watch.file) if watch else printed
        ended = asyncio.ensure_future(process.wait())
        begin = [os.fstat(one.fileno()).st_size for one in outputs]
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        try:
            while not ended.done():
                left = deadline - loop.time()
                if left <= 0:
                    return f"did not end within {self._timeout:g} s"
                now = [os.fstat(one.fileno()).st_size for one in outputs]
                if any(b - a > _MOST for a, b in zip(begin, now, strict=True)):
                    return f"printed more than {_MOST >> 20} MiB and was ended"
                await asyncio.wait({ended}, timeout=min(left, _LOOK))
                if watch:
                    watch.look()
            return ""
        finally:
            ended.cancel()


async def _start(
    command: Command,
    handed: Handed,
    out: IO[bytes],
    err: IO[bytes],
    note: Callable[[], None] | None,
    more: Mapping[str, str],
) -> asyncio.subprocess.Process:
    try:
        with _piped(command, handed, out) as (source, target):
            return await asyncio.create_subprocess_exec(
                *handed.argv(command.argv),
                stdin=source,
                stdout=target,
                stderr=err,
                cwd=command.cwd or "/",
                env={
                    "PATH": PATH,
                    "LC_ALL": "C",
                    **_handed(command.env, handed),
                    **more,
                },
                start_new_session=True,
                pass_fds=handed.descriptors,
                umask=_UMASK,
                preexec_fn=note,
            )
    except OSError as error:
        raise CommandFailed(
            f"{command.title} cannot be run: {error.strerror} ({error.filename})",
            argv=command.words,
        ) from error


async def start_daemon(
    words: Sequence[str], descriptors: Sequence[int], log: IO[bytes], note: Note | None
) -> asyncio.subprocess.Process:
    """Start a program that serves until it is ended; what it says goes to `log`.

    Raises
    ------
    Failed
        If it cannot be started.
    """
    try:
        return await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={"PATH": PATH, "LC_ALL": "C"},
            start_new_session=True,
            pass_fds=descriptors,
            preexec_fn=note.write if note else None,
        )
    except OSError as error:
        raise Failed(f"{words[0]} cannot be run: {error.strerror}") from error


@contextmanager
def _piped(
    command: Command, handed: Handed, out: IO[bytes]
) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open what a command reads and writes by its standard input and output."""
    with ExitStack() as stack:
        source = handed.word(command.stdin) if command.stdin else os.devnull
        read = stack.enter_context(open(source, "rb"))  # noqa: PTH123
        if not command.stdout:
            yield read, out
            return
        target = handed.word(command.stdout)
        yield read, stack.enter_context(open(target, "wb"))  # noqa: PTH123


def _handed(env: Mapping[str, str], handed: Handed) -> dict[str, str]:
    return {name: handed.word(value) for name, value in env.items()}


def _log_file(name: str, log_dir: Path | None) -> IO[bytes]:
    if log_dir is None or not log_dir.is_dir():
        raise CommandFailed(f"Cannot find log directory: {log_dir}")
    try:
        return (log_dir / f"{name}-{int(time.time())}.log").open("a+b")
    except OSError as error:
        raise CommandFailed(
            f"cannot write a log in {log_dir}: {error.strerror}"
        ) from error


def _start_of(file: IO[bytes], most: int) -> str:
    file.seek(0)
    return file.read(most).decode(errors="replace")


def tail_of(file: IO[bytes], begin: int = 0, *, counted: bool = False) -> list[str]:
    """Return the last lines, with nothing in them that a terminal would obey.

    Parameters
    ----------
    counted
        Whether it may tell how far its program was, which says nothing of a failure.
    """
    size = os.fstat(file.fileno()).st_size
    file.seek(max(begin, size - _END))
    lines = file.read(_END).decode(errors="replace").split("\n")
    if not lines[-1]:
        lines.pop()
    if counted:
        lines = [line for line in map(without_percentages, lines) if line]
    return [clean(line)[:_LONGEST] for line in lines[-_TAIL:]]


def prune(log_dir: Path) -> None:
    """Remove logs that are too old, and the oldest of too many."""
    found = [(path.stat().st_mtime, path) for path in log_dir.glob("*.log")]
    found.sort(reverse=True)
    oldest = time.time() - _LOG_AGE
    for number, (written, path) in enumerate(found):
        if number >= _LOGS or written < oldest:
            path.unlink(missing_ok=True)


def _failure(
    command: Command, how: str, lines: list[str], *, killed: bool = False
) -> CommandFailed:
    said = command.readable("\n".join(lines))
    return CommandFailed(
        f"{command.title} failed ({how}), last lines of output:\n{said}",
        argv=command.words,
        killed=killed,
    )


def _ending(code: int) -> str:
    if code < 0:
        return f"terminated by signal {-code}"
    return f"exited with exit code {code}"
