# SPDX-License-Identifier: BSD-2-Clause
"""gnt-backup: instances and disks, taken out of the cluster and brought back."""

from functools import partial

from moorage.cli.command import Option, Program
from moorage.cli.listing import Listing
from moorage.cli.main import run

from . import export, keeping, restore

LISTING = Listing("export", ("node", "export"), ("export",))

_LIST, _FIELDS = LISTING.commands("gnt-backup", 'node == "node1"', "disks")
_NODE = Option(("-n", "--node"), "those on this node", "NODE", repeats=True)

PROGRAM = Program(
    "gnt-backup",
    "export instances and disks, and import them",
    (
        export.COMMAND,
        restore.COMMAND,
        _LIST._replace(options=(_NODE, *_LIST.options)),
        _FIELDS,
        *keeping.COMMANDS,
    ),
)

main = partial(run, PROGRAM)
