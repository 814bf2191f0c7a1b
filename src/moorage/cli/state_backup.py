# SPDX-License-Identifier: BSD-2-Clause
"""moorage backup and restore: the cluster's state and keys in one file."""

from importlib import import_module
from pathlib import Path
from typing import Any

from moorage.errors import Failed

from .command import Call, Command, Example, Operand, Option

_FILE = Operand("FILE")
_DIR = Option(("--dir",), "the master's directory (/var/lib/moorage)", "DIR")


def _places(call: Call) -> Any:  # noqa: ANN401 - imported late
    paths = import_module("moorage.daemons.paths")
    given = call.option("dir")
    return paths.MasterPlaces(Path(given)) if given else paths.master_places()


def backup(call: Call) -> int:
    """Write the cluster's state and keys into a file."""
    target = Path(call.words[0])
    try:
        made = import_module("moorage.daemons.backup").backup(_places(call), target)
    except OSError as error:
        raise Failed(f"{error.filename or target}: {error.strerror}") from error
    call.terminal.print(f"{target} has {made.told}")
    return 0


def restore(call: Call) -> int:
    """Put a cluster's state and keys back."""
    source = Path(call.words[0])
    node = import_module("moorage.daemons.paths").node_places()
    force = bool(call.option("force"))
    module = import_module("moorage.daemons.backup")
    try:
        made, told = module.restore(_places(call), node, source, force=force)
    except OSError as error:
        raise Failed(f"{error.filename or source}: {error.strerror}") from error
    for line in told:
        call.terminal.talk(f"WARNING: {line}")
    call.terminal.print(f"Put back {made.told}: what was done later is not in it")
    call.terminal.print("Next: moorage master start; gnt-cluster verify")
    return 0


COMMANDS = (
    Command(
        "backup",
        backup,
        "write the cluster's state and keys into a file",
        (_FILE,),
        (_DIR,),
        examples=(Example("moorage backup /root/cluster.backup", "while it runs"),),
    ),
    Command(
        "restore",
        restore,
        "put the state and keys of a backup back",
        (_FILE,),
        (
            _DIR,
            Option(("--force",), "though nodes hear a master, or none answers"),
        ),
        examples=(Example("moorage restore /root/cluster.backup", "where none is"),),
    ),
)
