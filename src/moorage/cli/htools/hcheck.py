# SPDX-License-Identifier: BSD-2-Clause
"""hcheck: say what is wrong with a cluster, and what balancing would mend."""

import sys
from functools import partial
from typing import Final

from moorage.cli.declaration import Option
from moorage.cli.htools import declared, start

PROGRAM: Final = start.program(
    "hcheck",
    "say what is wrong with a cluster, and what balancing would mend",
    (
        *declared.SOURCES,
        *declared.LEVELS,
        *declared.BALANCING,
        declared.DYNU,
        declared.IGNORE_DYNU,
        declared.MACHINE,
        Option(
            ("--no-simulation",),
            "only say how things are: simulate no balancing",
        ),
        declared.SURVIVE,
        declared.HTML,
        declared.EXPLAIN,
    ),
    {
        "hcheck -L": "check the cluster whose master is here",
        "hcheck -L --survive": "who restarts where if a node is lost",
        "hcheck -L --survive --html p.html": "the same as a picture",
    },
)
main: Final = partial(start.run, PROGRAM)

if __name__ == "__main__":
    sys.exit(main())
