# SPDX-License-Identifier: BSD-2-Clause
"""gnt-instance: virtual machines, from making them to removing them."""

from functools import partial

from moorage.cli import tags
from moorage.cli.command import Program
from moorage.cli.listing import Listing
from moorage.cli.main import run

from . import (
    add,
    console,
    disks,
    info,
    modify,
    power,
    renewal,
    travel,
)

LISTING = Listing(
    "instance", ("name", "hypervisor", "os", "pnode", "status", "oper_ram")
)


PROGRAM = Program(
    "gnt-instance",
    "make, run, move and change virtual machines",
    (
        add.COMMAND,
        *LISTING.commands("gnt-instance", 'status == "running"'),
        info.COMMAND,
        modify.COMMAND,
        *power.COMMANDS,
        *renewal.COMMANDS,
        *travel.COMMANDS,
        *disks.COMMANDS,
        console.COMMAND,
        *tags.commands("gnt-instance"),
    ),
)

main = partial(run, PROGRAM)
