# SPDX-License-Identifier: BSD-2-Clause
"""What a shell may offer for each option (--help-completion), in Ganeti's words."""

from argparse import Action
from collections.abc import Iterable, Iterator
from typing import Final

from moorage.cli.htools.spelling import OPTIONAL

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
}
_NONE: Final = frozenset({"print_commands", "save"})
"""Options whose file is a new one."""
_ARGUMENTS: Final = {"hail": "file 1 1", "hscan": "host 0 none"}


def lines(program: str, actions: Iterable[Action]) -> Iterator[str]:
    """Yield a line for each option, and one for arguments where there are any."""
    short = {name: letter for letter, name in OPTIONAL.items()}
    for action in actions:
        if action.option_strings:
            names = [short[n] for n in action.option_strings if n in short]
            yield f"{','.join([*names, *action.option_strings])} {_kind(action)}"
    if program in _ARGUMENTS:
        yield _ARGUMENTS[program]


def _kind(action: Action) -> str:
    if action.choices:
        return "choices=" + ",".join(map(str, action.choices))
    if action.nargs == 0 or action.dest in _NONE:
        return "none"
    return _BY_VALUE.get(str(action.metavar), "string")
