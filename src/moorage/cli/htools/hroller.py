# SPDX-License-Identifier: BSD-2-Clause
"""hroller: say which nodes can be rebooted at the same time."""

import sys
from functools import partial
from typing import Final

from moorage.cli.declaration import Option
from moorage.cli.htools import declared, start

_SWITCHES: Final = (
    Option(("--offline-maintenance",), "shut everybody down: nobody fails over"),
    declared.NO_HEADERS,
    Option(("--print-moves",), "say where instances without a secondary go meanwhile"),
    Option(("--full-evacuation",), "move everybody off a node before its reboot"),
    Option(
        ("--skip-non-redundant",),
        "leave out nodes that run instances without a secondary",
    ),
    Option(("--ignore-non-redundant",), "let instances without a secondary go down"),
    Option(("--one-step-only",), "print the first group of nodes only"),
)
PROGRAM: Final = start.program(
    "hroller",
    "say which nodes can be rebooted at the same time",
    (
        *declared.SOURCES,
        *declared.LEVELS,
        declared.OFFLINE,
        declared.SAVE,
        declared.GROUP,
        *_SWITCHES,
        Option(("--node-tags",), "only nodes with one of these tags", "TAG,..."),
        Option(("-f", "--force"), "go on without a master node"),
    ),
    {
        "hroller -L": "all nodes, in groups",
        "hroller -L --node-tags kernel": "those that carry a tag",
    },
)
main: Final = partial(start.run, PROGRAM)

if __name__ == "__main__":
    sys.exit(main())
