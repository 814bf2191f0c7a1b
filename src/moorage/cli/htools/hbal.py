# SPDX-License-Identifier: BSD-2-Clause
"""hbal: move instances until the cluster is well balanced."""

import sys
from functools import partial
from typing import Final

from moorage.cli.declaration import Option
from moorage.cli.htools import declared, start

PROGRAM: Final = start.program(
    "hbal",
    "move instances until the cluster is well balanced",
    (
        *declared.SOURCES,
        *declared.LEVELS,
        declared.PRINT_NODES,
        declared.PRINT_INSTANCES,
        declared.PRINT_COMMANDS,
        declared.SAVE,
        declared.GROUP,
        *declared.BALANCING,
        declared.RESTRICTED,
        declared.DYNU,
        declared.IGNORE_DYNU,
        declared.MOND,
        declared.MOND_DATA,
        declared.MOND_XEN,
        declared.MOND_EXIT,
        declared.EXECUTE,
        Option(
            ("--first-job-group",),
            "print and submit the first set of jobs only",
        ),
        Option(("--reason",), "why, for the trail of the jobs", "REASON"),
        Option(
            ("--priority",),
            "priority of the jobs: low, normal or high",
            "PRIO",
            choices=("low", "normal", "high"),
        ),
        declared.LOOKAHEAD,
        declared.COMPACT,
        declared.COST,
        declared.EXPLAIN,
        declared.HTML,
    ),
    {
        "hbal -L": "plan on the cluster whose master is here",
        "hbal -L -C": "and print the commands",
        "hbal -L -X": "and carry it out",
        "hbal -t cluster.data -l 5": "at most five steps, on a saved cluster",
    },
)
main: Final = partial(start.run, PROGRAM)

if __name__ == "__main__":
    sys.exit(main())
