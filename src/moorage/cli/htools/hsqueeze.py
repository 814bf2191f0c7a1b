# SPDX-License-Identifier: BSD-2-Clause
"""hsqueeze: say which nodes can be powered off, or must be powered on."""

import sys
from functools import partial
from typing import Final

from moorage.cli.declaration import Option
from moorage.cli.htools import declared, start
from moorage.cli.htools.values import number

_MOST: Final = 10**9
PROGRAM: Final = start.program(
    "hsqueeze",
    "say which nodes can be powered off, or must be powered on",
    (
        declared.TEXT,
        declared.LUXI,
        declared.KVM_MEMORY,
        declared.VERBOSE,
        declared.SAVE,
        declared.PRINT_COMMANDS,
        declared.EXECUTE,
        declared.NO_HEADERS,
        Option(
            ("--minimal-resources",),
            "switch nodes on when one has room for less, in standard instances",
            "FACTOR",
            number(0, _MOST),
            2.0,
        ),
        Option(
            ("--target-resources",),
            "leave every node room for so many, in standard instances",
            "FACTOR",
            number(0, _MOST),
            2.0,
        ),
    ),
    {
        "hsqueeze -L": "what the cluster whose master is here could do",
        "hsqueeze -L -X": "and do it",
    },
)
main: Final = partial(start.run, PROGRAM)

if __name__ == "__main__":
    sys.exit(main())
