# SPDX-License-Identifier: BSD-2-Clause
"""hail: say where an instance goes, as an allocator of the cluster."""

import sys
from functools import partial
from typing import Final

from moorage.cli.declaration import Operand, Option
from moorage.cli.htools import declared, start

PROGRAM: Final = start.program(
    "hail",
    "say where an instance goes, as an allocator of the cluster",
    (
        declared.PRINT_NODES,
        declared.SAVE,
        declared.TEXT,
        declared.SIMULATE,
        declared.VERBOSE,
        declared.IGNORE_DYNU,
        declared.IGNORE_SOFT_ERRORS,
        declared.NO_CAPACITY_CHECKS,
        declared.KVM_MEMORY,
        declared.MOND,
        declared.MOND_XEN,
        Option(
            ("--restrict-allocation-to",),
            "allocate on these nodes only",
            "NODE,...",
            dest="restrict",
        ),
        declared.EXPLAIN,
    ),
    {
        "hail request.json": "answer a request of the cluster",
        "hail --explain request.json": "and say why not elsewhere",
    },
    operands=(Operand("FILE"),),
)
main: Final = partial(start.run, PROGRAM)

if __name__ == "__main__":
    sys.exit(main())
