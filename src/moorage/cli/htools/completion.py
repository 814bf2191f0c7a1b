# SPDX-License-Identifier: BSD-2-Clause
"""What a shell may offer for each option (--help-completion), in Ganeti's words."""

from collections.abc import Iterator
from typing import Final

from moorage.cli.declaration import Option, Program

_BY_VALUE: Final = {
    "FILE": "file",
    "SOCKET": "file",
    "ADDRESS": "host",
    "NODE": "onenode",
    "NODE,...": "manynodes",
    "ID": "onegroup",
    "N": "integer",
    "EPSILON": "float",
    "DELTA": "float",
    "SCORE": "float",
    "RATIO": "float",
    "FACTOR": "float",
    "SPINDLES": "float",
    "INSTS": "manyinstances",
    "PATH": "dir",
    "CHOICE": "choices=yes,no",
    "FIELDS": "none",
    "REASON": "none",
    "SCRIPT": "none",
    "PREFIX": "none",
}
_ARGUMENTS: Final = {"hail": "file 1 1", "hscan": "host 0 none"}


def lines(program: Program) -> Iterator[str]:
    """Yield a line for each option, and one for arguments where there are any."""
    for option in program.commands[0].options:
        yield f"{','.join(option.flags)} {_kind(option)}"
    if program.name in _ARGUMENTS:
        yield _ARGUMENTS[program.name]


def _kind(option: Option) -> str:
    if option.choices:
        return "choices=" + ",".join(option.choices)
    return _BY_VALUE.get(option.metavar, "string") if option.metavar else "none"
