# SPDX-License-Identifier: BSD-2-Clause
"""gnt-backup: instances and disks, taken out of the cluster and brought back."""

from functools import partial

from moorage.cli.declaration import Program, Verb
from moorage.cli.main import run
from moorage.cli.verbs import listing

PROGRAM = Program(
    "gnt-backup",
    "export instances and disks, and import them",
    __name__,
    (
        Verb("export", "export", "Copy an instance's disks into a directory of a node"),
        Verb(
            "import",
            "restore",
            "Make an instance from an export: what is not said here, the export says",
        ),
        *listing("listed", "export"),
        Verb(
            "verify", "keeping", "Compare an export with the checksums of its manifest"
        ),
        Verb("remove", "keeping", "Delete an export, and what a half-made one left"),
    ),
)

main = partial(run, PROGRAM)
