# SPDX-License-Identifier: BSD-2-Clause
"""Whether KVM really runs a guest here; else QEMU emulates (TCG).

A device that can be opened proves little: in nested virtual machines it often stops
QEMU at its first register, or never runs an instruction. So the proof is a firmware of
seven bytes that says a number and ends.
"""

import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory

_DEVICE = Path("/dev/kvm")
_CODE = bytes((0xBA, 0x01, 0x05, 0xB0, 0x10, 0xEE, 0xF4))
"""mov dx, 0x501; mov al, 0x10; out dx, al; hlt"""
_SIZE, _RESET = 0x10000, 16
_SAID = (0x10 << 1) | 1
_PATIENCE = 5.0
_SMALLEST, _LARGEST = 32, 512


def firmware() -> bytes:
    """Return a firmware that starts at the reset vector and ends QEMU at once."""
    image = bytearray(b"\xf4" * _SIZE)
    image[-_RESET : -_RESET + len(_CODE)] = _CODE
    return bytes(image)


def emulated(memory: int) -> str:
    """Return the accelerator that always works, for a guest of `memory` MiB.

    Its cache of translated code would take up to 1 GiB if nobody limited it.
    """
    cache = min(max(memory // 4, _SMALLEST), _LARGEST)
    return f"tcg,tb-size={cache},thread=multi"


async def runs(program: str, accel: str) -> bool:
    """Whether `program` executes guest code with an accelerator."""
    with TemporaryDirectory() as scratch:
        image = Path(scratch) / "firmware"
        image.write_bytes(firmware())
        child = await asyncio.create_subprocess_exec(
            *(program, "-accel", accel, "-machine", "q35", "-nodefaults"),
            *("-cpu", "host" if accel == "kvm" else "max", "-display", "none"),
            *("-bios", str(image), "-device", "isa-debug-exit,iobase=0x501"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        return await _answer(child) == _SAID


async def _answer(child: asyncio.subprocess.Process) -> int | None:
    try:
        return await asyncio.wait_for(child.wait(), _PATIENCE)
    except TimeoutError:
        return None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def kvm_works(program: str) -> bool:
    """Whether KVM runs guests on this node."""
    return os.access(_DEVICE, os.R_OK | os.W_OK) and await runs(program, "kvm")
