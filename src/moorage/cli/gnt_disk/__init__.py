# SPDX-License-Identifier: BSD-2-Clause
"""gnt-disk: disks as citizens of their own, with or without an instance."""

from functools import partial

from moorage.cli.declaration import Program, Verb
from moorage.cli.main import run
from moorage.cli.verbs import listing, tagging

PROGRAM = Program(
    "gnt-disk",
    "make, attach, move, grow and remove disks",
    __name__,
    (
        Verb("add", "add", "Make a disk that belongs to no instance yet"),
        Verb(
            "adopt", "add", "Make a disk, with its data, of a volume that no disk is in"
        ),
        *listing("info", "disk"),
        Verb("info", "info", "Show all about disks", ("show",)),
        Verb(
            "story",
            "story",
            "Show everything that ever happened to a disk, gone or not",
        ),
        Verb("attach", "change", "Attach a disk to an instance, running or not"),
        Verb("detach", "change", "Detach a disk from its instance; its data stays"),
        Verb("grow", "change", "Make a disk larger; a running guest sees it"),
        Verb("rename", "change", "Give a disk another name; none takes it away"),
        Verb(
            "snapshot", "change", "Make a new, detached disk of what a disk holds now"
        ),
        Verb("modify", "change", "Change a disk's mode, name or parameters"),
        Verb(
            "convert",
            "convert",
            "Bring a disk's data to other storage, also while its instance runs",
        ),
        Verb(
            "move",
            "convert",
            "Bring a disk's data to another storage pool, also while its instance runs",
        ),
        Verb(
            "clone",
            "convert",
            "Make a new, detached disk with what a disk holds now, in any storage",
        ),
        Verb("remove", "change", "Remove a detached disk and all its data"),
        Verb(
            "forget",
            "change",
            "Drop the record of a disk that is lost; nothing is done to its storage",
        ),
        *tagging("disk"),
    ),
)

main = partial(run, PROGRAM)
