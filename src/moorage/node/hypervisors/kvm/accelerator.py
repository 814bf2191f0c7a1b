# SPDX-License-Identifier: BSD-2-Clause
"""Which accelerator guests get on this node, and how that is known.

A device that can be opened proves little: in nested virtual machines it often stops
QEMU at its first register, or runs a few instructions and boots no kernel. So the proof
is what it is used for: a kernel is booted, up to its first program, once for each
kernel on this machine and with this QEMU. The verdict is kept with its reason, until
somebody asks for another look.
"""

import asyncio
import logging
import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from msgspec import DecodeError, Struct, ValidationError, field, json

from moorage.model import Accelerator

from . import trial
from .trial import Fate, Outcome

DEVICE = Path("/dev/kvm")
KVM, TCG = "kvm", "tcg"
_LOG = logging.getLogger(__name__)
_OWN_KERNELS = ("/boot/vmlinuz-{release}", "/vmlinuz", "/boot/vmlinuz")
_SMALLEST, _LARGEST = 32, 512


def emulated(memory: int) -> str:
    """Return the accelerator that always works, for a guest of `memory` MiB.

    Its cache of translated code would take up to 1 GiB if nobody limited it.
    """
    cache = min(max(memory // 4, _SMALLEST), _LARGEST)
    return f"tcg,tb-size={cache},thread=multi"


class _Record(Struct):
    """What is kept of the trials.

    Attributes
    ----------
    machine
        The machine and the QEMU that the verdicts are about.
    verdicts
        By kernel (its path, size and time); the newest is the last one. The empty one
        is about the machine without a kernel.
    """

    machine: str
    verdicts: dict[str, Accelerator] = field(default_factory=dict)


class Accelerators:
    """The verdicts of one node.

    Parameters
    ----------
    file
        Keeps them.
    program
        The QEMU that guests get.
    device
        What KVM is reached through.
    patience
        Seconds for a kernel to reach its first program.
    """

    def __init__(
        self,
        file: Path,
        program: str,
        device: Path = DEVICE,
        patience: float = trial.PATIENCE,
    ) -> None:
        self._file = file
        self._program = program
        self._device = device
        self._patience = patience
        self._turn = asyncio.Lock()

    def machine(self) -> str:
        """Return what names this machine, its kernel and its QEMU."""
        return _machine(self._program)

    def known(self) -> Accelerator | None:
        """Return the newest verdict; None where nobody has looked yet."""
        absent = self._absent()
        verdicts = list(self._record().verdicts.values())
        return absent or (verdicts[-1] if verdicts else None)

    async def verdict(self, kernel: str = "") -> Accelerator:
        """Return the verdict for a kernel, trying it if nobody has yet.

        Parameters
        ----------
        kernel
            The one that a guest is to boot; without one, the node's own stands for
            what is on the guest's disk, or else the one that was tried last.
        """
        async with self._turn:
            absent = self._absent()
            if absent:
                return absent
            record = self._record()
            key = next(_keys([kernel] if kernel else []), "") or _own_key()
            if not key and record.verdicts:
                return list(record.verdicts.values())[-1]
            if key not in record.verdicts:
                self._keep(record, key, await self._tried(key))
            return record.verdicts[key]

    async def look_again(self) -> Accelerator:
        """Forget all verdicts, try the kernels that they were about, return the last.

        One that says no counts more than one that says yes.
        """
        async with self._turn:
            paths = [_path(key) for key in self._record().verdicts if key]
            self._file.unlink(missing_ok=True)
        found = [await self.verdict(path) for path in dict.fromkeys([*paths, ""])]
        refused = [one for one in found if one.name != KVM]
        return (refused or found)[-1]

    def watched(self, kernel: str, cause: str) -> None:
        """Note what became of the first guest after a weak proof.

        Parameters
        ----------
        cause
            Why QEMU stopped it; empty if it did not.
        """
        reason = "a guest that was watched ran on it; there was no kernel to try"
        verdict = Accelerator(name=KVM, reason=reason, proof="guest")
        if cause:
            reason = f"QEMU stopped the first guest with {cause}"
            verdict = Accelerator(name=TCG, reason=reason, proof="guest")
        record = self._record()
        self._keep(record, next(_keys([kernel]), "") or _own_key(), verdict)

    def _absent(self) -> Accelerator | None:
        if os.access(self._device, os.R_OK | os.W_OK):
            return None
        there = "cannot be opened" if self._device.exists() else "is not there"
        return Accelerator(name=TCG, reason=f"{self._device} {there}")

    async def _tried(self, key: str) -> Accelerator:
        for kernel in dict.fromkeys((_path(key), _path(_own_key()))):
            if not kernel:
                continue
            _LOG.info("trying whether KVM boots %s", kernel)
            outcome = await trial.boot(self._program, KVM, kernel, self._patience)
            if outcome.fate is not Fate.SILENT or await self._is_bootable(kernel):
                return _judged(outcome, "kernel")
        return _judged(await trial.execute(self._program, KVM), "firmware")

    async def _is_bootable(self, kernel: str) -> bool:
        """Whether a kernel boots when it is emulated; if not, it is no witness."""
        emulation = emulated(160)
        found = await trial.boot(self._program, emulation, kernel, 3 * self._patience)
        return found.fate is Fate.WORKS

    def _record(self) -> _Record:
        machine = _machine(self._program)
        try:
            record = json.decode(self._file.read_bytes(), type=_Record)
        except (OSError, DecodeError, ValidationError):  # a lost one costs a trial
            return _Record(machine)
        return record if record.machine == machine else _Record(machine)

    def _keep(self, record: _Record, key: str, verdict: Accelerator) -> None:
        record.verdicts.pop(key, None)
        record.verdicts[key] = verdict
        _LOG.info("guests run with %s: %s", verdict.name, verdict.reason)
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        scratch = self._file.with_suffix(".part")
        scratch.write_bytes(json.format(json.encode(record)))
        scratch.rename(self._file)


def _judged(outcome: Outcome, proof: str) -> Accelerator:
    works = outcome.fate is Fate.WORKS
    reason = outcome.reason if works else f"KVM does not work: {outcome.reason}"
    return Accelerator(name=KVM if works else TCG, reason=reason, proof=proof)


def _machine(program: str) -> str:
    """Return what names this machine's processor and kernel, and its QEMU."""
    cpu = next((line for line in _cpuinfo() if line.startswith("model name")), "")
    at = shutil.which(program) or program
    return " | ".join((cpu.partition(": ")[2], platform.version(), _stamp(at)))


def _cpuinfo() -> list[str]:
    return Path("/proc/cpuinfo").read_text(errors="replace").splitlines()


def _stamp(path: str) -> str:
    """Return a file's path with its size and time; empty if it is not there."""
    try:
        about = os.stat(path)  # noqa: PTH116 - links followed, and no object made
    except OSError:
        return ""
    return f"{path}|{about.st_size}|{about.st_mtime_ns}"


def _path(key: str) -> str:
    return key.partition("|")[0]


def _keys(kernels: list[str]) -> Iterator[str]:
    return (key for key in map(_stamp, kernels) if key)


def _own_key() -> str:
    """Return the key of the node's own kernel; empty where it cannot be read."""
    release = platform.release()
    return next(_keys([one.format(release=release) for one in _OWN_KERNELS]), "")
