# SPDX-License-Identifier: BSD-2-Clause
"""hspace: say how many instances still fit."""

import sys
from functools import partial
from typing import Any, Final

from moorage.cli.declaration import Option
from moorage.cli.htools import declared, start
from moorage.cli.htools.values import whole
from moorage.htools.constants import SPELLINGS


def _size(text: str) -> Any:  # noqa: ANN401 - loaded late
    from moorage.cli.htools.work.hspace import size  # noqa: PLC0415 - start-up time

    return size(text)


PROGRAM: Final = start.program(
    "hspace",
    "say how many instances still fit",
    (
        *declared.SOURCES,
        declared.SIMULATE,
        *declared.LEVELS,
        declared.PRINT_NODES,
        declared.SAVE,
        declared.MACHINE,
        declared.OFFLINE,
        declared.MAX_CPU,
        declared.MAX_LENGTH,
        declared.MIN_DISK,
        declared.NO_CAPACITY_CHECKS,
        Option(
            ("--independent-groups",),
            "let a group that is in disorder not stop the others",
            dest="independent",
        ),
        Option(
            ("--accept-existing-errors",),
            "go on where a node cannot be lost already, but break nothing else",
            dest="accept_existing",
        ),
        Option(
            ("--disk-template",),
            "disk template of the new instances; usual is the policy's first",
            "TEMPLATE",
            choices=tuple(SPELLINGS),
        ),
        Option(
            ("--spindle-use",),
            "spindles that an instance uses, instead of what the policy says",
            "SPINDLES",
            whole(0, 2**31),
        ),
        Option(
            ("--standard-alloc",),
            "size of the standard instance: disk,memory,cpus[,spindles]",
            "STDSPEC",
            _size,
        ),
        Option(
            ("--tiered-alloc",),
            "largest size of the tiered instances: disk,memory,cpus[,spindles]",
            "TSPEC",
            _size,
        ),
        declared.EXPLAIN,
        declared.HTML,
    ),
    {
        "hspace -L": "room on the cluster whose master is here",
        "hspace --simulate p,20,1t,64g,16": "room on 20 nodes that you may buy",
    },
)
main: Final = partial(start.run, PROGRAM)

if __name__ == "__main__":
    sys.exit(main())
