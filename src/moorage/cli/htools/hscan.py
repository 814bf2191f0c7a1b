# SPDX-License-Identifier: BSD-2-Clause
"""hscan: write clusters to files that the other programs read."""

import sys
from functools import partial
from typing import Final

from moorage.cli.declaration import Operand, Option
from moorage.cli.htools import declared, start

PROGRAM: Final = start.program(
    "hscan",
    "write clusters to files that the other programs read",
    (
        declared.PRINT_NODES,
        declared.LUXI,
        declared.KVM_MEMORY,
        declared.VERBOSE,
        Option(
            ("-d", "--output-dir"),
            "where to write NAME.data",
            "PATH",
            default=".",
        ),
        declared.NO_HEADERS,
    ),
    {
        "hscan -d /tmp": "the cluster whose master is here, to /tmp/LOCAL.data",
        "hscan cluster.example.com": "one that answers over RAPI",
    },
    operands=(Operand("CLUSTER", 0, None),),
)
main: Final = partial(start.run, PROGRAM)

if __name__ == "__main__":
    sys.exit(main())
