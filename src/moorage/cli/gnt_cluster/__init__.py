# SPDX-License-Identifier: BSD-2-Clause
"""gnt-cluster: the cluster as a whole."""

from functools import partial

from moorage.cli import tags
from moorage.cli.command import Program
from moorage.cli.main import run

from . import (
    failover,
    info,
    life,
    renew_crypto,
    settings,
    upgrade,
    upkeep,
    verify,
)

PROGRAM = Program(
    "gnt-cluster",
    "make, look at, check and change the cluster",
    (
        life.INIT,
        info.INFO,
        *verify.COMMANDS,
        settings.MODIFY,
        renew_crypto.COMMAND,
        *tags.commands("gnt-cluster"),
        *info.COMMANDS,
        *failover.COMMANDS,
        upgrade.COMMAND,
        *upkeep.COMMANDS,
        life.DESTROY,
    ),
    absent={
        **upkeep.ABSENT,
        "activate-master-ip": "the master has no address of its own to take along",
        "deactivate-master-ip": "the master has no address of its own to take along",
    },
)

main = partial(run, PROGRAM)
