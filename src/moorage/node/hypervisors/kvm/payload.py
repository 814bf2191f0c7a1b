# SPDX-License-Identifier: BSD-2-Clause
"""What a trial of an accelerator runs: some bytes of code, and where they report. Pure.

A kernel gets an initramfs whose only program says a word on the console and reboots.
Where there is no kernel, a firmware says a number on a port and halts.
"""

import gzip
import struct

from . import cpio

WORD = "moorage: the kernel runs programs"
"""What the first program says."""
FIRMWARE_STATUS = (0x10 << 1) | 1
"""QEMU's exit status when the firmware has run."""

_FIRMWARE = bytes((0xBA, 0x01, 0x05, 0xB0, 0x10, 0xEE, 0xF4))
"""mov dx, 0x501; mov al, 0x10; out dx, al; hlt"""
_SIZE, _RESET = 0x10000, 16

_BASE = 0x400000
_HEADERS = 120
_WRITE, _REBOOT = 1, 169
_MAGIC = (0xFEE1DEAD, 0x28121969, 0x01234567)
"""Arguments of the system call reboot, as its manual has them: restart."""


def firmware() -> bytes:
    """Return a firmware that starts at the reset vector and ends QEMU at once."""
    image = bytearray(b"\xf4" * _SIZE)
    image[-_RESET : -_RESET + len(_FIRMWARE)] = _FIRMWARE
    return bytes(image)


def initramfs() -> bytes:
    """Return an initramfs whose ``/init`` says :data:`WORD` and reboots."""
    entries = [cpio.directory("dev"), cpio.console(), cpio.program("init", program())]
    return gzip.compress(cpio.archive(entries), mtime=0)


def program() -> bytes:
    """Return a Linux program for x86-64: a header, some instructions, and the word."""
    word = f"{WORD}\n".encode()
    begin = b"\xb8" + _word(_WRITE) + b"\xbf" + _word(1)  # mov eax; mov edi
    end = b"\xba" + _word(len(word)) + b"\x0f\x05"  # mov edx; syscall
    end += b"\xb8" + _word(_REBOOT)
    for register, value in zip(b"\xbf\xbe\xba", _MAGIC, strict=True):
        end += bytes((register,)) + _word(value)
    end += b"\x0f\x05\xeb\xfe"  # syscall; jump to itself
    code = begin + b"\x48\x8d\x35" + _word(len(end)) + end  # lea rsi, [rip + …]
    return _elf(code + word)


def _word(value: int) -> bytes:
    return struct.pack("<I", value)


def _elf(body: bytes) -> bytes:
    size = _HEADERS + len(body)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    kind, machine, version = 2, 62, 1  # a program, for x86-64
    header = ident + struct.pack(
        *("<HHIQQQIHHHHHH", kind, machine, version, _BASE + _HEADERS, 64, 0, 0),
        *(64, 56, 1, 0, 0, 0),
    )
    load, readable_and_executable = 1, 5
    segment = struct.pack(
        *("<IIQQQQQQ", load, readable_and_executable, 0, _BASE, _BASE, size, size),
        0x1000,
    )
    return header + segment + body
