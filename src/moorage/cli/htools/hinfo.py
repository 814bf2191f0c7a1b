# SPDX-License-Identifier: BSD-2-Clause
"""hinfo: say what a cluster looks like."""

import sys
from functools import partial
from typing import Final

from moorage.cli.htools import declared, start

PROGRAM: Final = start.program(
    "hinfo",
    "say what a cluster looks like",
    (
        *declared.SOURCES,
        *declared.LEVELS,
        declared.PRINT_NODES,
        declared.PRINT_INSTANCES,
        declared.OFFLINE,
        declared.IGNORE_DYNU,
        declared.MOND,
        declared.MOND_DATA,
    ),
    {
        "hinfo -L": "the cluster whose master is here",
        "hinfo -t cluster.data -p": "a saved one, with its nodes",
    },
)
main: Final = partial(start.run, PROGRAM)

if __name__ == "__main__":
    sys.exit(main())
