# SPDX-License-Identifier: BSD-2-Clause
"""One trial of an accelerator: run QEMU with it, and say what became of it."""

import asyncio
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from msgspec import DecodeError, json

from . import payload

PATIENCE = 60.0
"""Seconds for a kernel to reach its first program: a second where all is well."""
FIRMWARE_PATIENCE = 20.0
_POLL = 0.05
_ALIVE = frozenset({"", "running", "prelaunch"})
_MEMORY = "160M"
_ASK = b'{"execute": "query-status"}\n'


class Fate(Enum):
    """What became of a trial.

    ``WORKS``: the code ran. ``BROKEN``: QEMU crashed, or stopped the machine: the
    accelerator's fault. ``SILENT``: nothing was said in time, or QEMU ended by itself:
    the kernel may be to blame, too.
    """

    WORKS = "works"
    BROKEN = "broken"
    SILENT = "silent"


class Outcome(NamedTuple):
    """What became of a trial, and the reason in a sentence without a capital."""

    fate: Fate
    reason: str


async def boot(
    program: str, accel: str, kernel: str, patience: float = PATIENCE
) -> Outcome:
    """Boot a kernel with an accelerator, up to its first program.

    Parameters
    ----------
    program
        The QEMU to run.
    kernel
        Path of a Linux kernel that has a console on the first serial port.
    patience
        In seconds.
    """
    with TemporaryDirectory(prefix="moorage-trial-") as scratch:
        initrd, console = Path(scratch) / "initrd", Path(scratch) / "console"
        initrd.write_bytes(payload.initramfs())
        console.touch()
        argv = [
            *(program, *_machine(accel), "-m", _MEMORY, "-no-reboot"),
            *("-kernel", kernel, "-initrd", str(initrd)),
            *("-append", "console=ttyS0 earlyprintk=ttyS0 panic=-1 quiet"),
            *("-serial", f"file:{console}", "-qmp", "stdio"),
        ]
        began = time.monotonic()
        ran = await _run(argv, patience, console)
        if payload.WORD in ran.console:
            taken = time.monotonic() - began
            return Outcome(Fate.WORKS, f"it booted {kernel} in {taken:.1f} s")
        return _failure(ran, f"booting {kernel}", patience)


async def execute(program: str, accel: str) -> Outcome:
    """Run a few instructions with an accelerator: a weaker proof than a kernel."""
    with TemporaryDirectory(prefix="moorage-trial-") as scratch:
        image, console = Path(scratch) / "firmware", Path(scratch) / "console"
        image.write_bytes(payload.firmware())
        argv = [
            *(program, *_machine(accel), "-bios", str(image), "-qmp", "stdio"),
            *("-device", "isa-debug-exit,iobase=0x501"),
        ]
        ran = await _run(argv, FIRMWARE_PATIENCE, console)
    if ran.code == payload.FIRMWARE_STATUS:
        return Outcome(Fate.WORKS, "it ran a firmware; there was no kernel to boot")
    return _failure(ran, "running a firmware", FIRMWARE_PATIENCE)


def _machine(accel: str) -> Sequence[str]:
    cpu = "host" if accel == "kvm" else "max"
    machine = ("-machine", "q35", "-nodefaults", "-no-user-config", "-display", "none")
    return ("-accel", accel, "-cpu", cpu, *machine)


class _Ran(NamedTuple):
    """What was seen of a run: exit status (None: ended by us), QEMU's word, texts."""

    code: int | None
    status: str
    errors: str
    console: str


async def _run(argv: Sequence[str], patience: float, console: Path) -> _Ran:
    """Run QEMU until it ends, stops the machine, says the word, or time is up."""
    try:
        child = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        return _Ran(127, "", f"{argv[0]}: {error.strerror}", "")
    errors = asyncio.create_task(_text(child.stderr))
    talk = asyncio.create_task(_last_status(child, patience, console))
    try:
        status = await talk
        code = child.returncode
    finally:
        talk.cancel()
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    return _Ran(code, status, await errors, _read(console))


async def _last_status(
    child: asyncio.subprocess.Process, patience: float, console: Path
) -> str:
    """Ask QEMU for the machine's status again and again; return what it said last."""
    ended = asyncio.create_task(child.wait())
    told: list[str] = [""]
    reader = asyncio.create_task(_listen(child, told))
    clock = asyncio.get_running_loop().time
    end = clock() + patience
    try:
        _write(child, b'{"execute": "qmp_capabilities"}\n')
        while clock() < end and not ended.done():
            _write(child, _ASK)
            await asyncio.wait({ended}, timeout=_POLL)
            if told[0] not in _ALIVE or payload.WORD in _read(console):
                break
    finally:
        ended.cancel()
        reader.cancel()
    return told[0]


def _write(child: asyncio.subprocess.Process, line: bytes) -> None:
    if child.stdin and not child.stdin.is_closing():
        child.stdin.write(line)


async def _listen(child: asyncio.subprocess.Process, told: list[str]) -> None:
    while child.stdout and (line := await child.stdout.readline()):
        with suppress(DecodeError):
            match json.decode(line):
                case {"return": {"status": str(status)}}:
                    told[0] = status


async def _text(stream: asyncio.StreamReader | None) -> str:
    return (await stream.read()).decode(errors="replace") if stream else ""


def _read(console: Path) -> str:
    try:
        return console.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def _failure(ran: _Ran, doing: str, patience: float) -> Outcome:
    said = last_words(ran.errors) or last_words(ran.console)
    more = f": {said}" if said else ""
    if ran.status not in _ALIVE:
        words = f"QEMU stopped with {ran.status} while {doing}{more}"
        return Outcome(Fate.BROKEN, words)
    if ran.code is None:
        return Outcome(Fate.SILENT, f"{doing} did not end in {patience:g} s{more}")
    if ran.code < 0:
        name = signal.Signals(-ran.code).name
        return Outcome(Fate.BROKEN, f"QEMU ended with {name} while {doing}{more}")
    words = f"QEMU ended with status {ran.code} while {doing}{more}"
    return Outcome(Fate.SILENT, words)


def last_words(text: str, lines: int = 1) -> str:
    """Return the last lines of a text that say something, on one line."""
    told = [line.strip() for line in text.splitlines()]
    kept = [line for line in told if line and "warning:" not in line]
    return " / ".join("".join(filter(str.isprintable, line)) for line in kept[-lines:])
