# SPDX-License-Identifier: BSD-2-Clause
"""moorage backup and restore: the cluster's state and keys in one file."""

from importlib import import_module
from pathlib import Path
from typing import Any

from moorage.errors import Failed

from .command import Call, Command, Operand, Option

_FILE = Operand("FILE")
_DIR = Option(("--dir",), "the master's directory (/var/lib/moorage)", "DIR")


def places(call: Call) -> Any:  # noqa: ANN401 - imported late
    """Return where the master keeps its files."""
    paths = import_module("moorage.daemons.paths")
    given = call.option("dir")
    return paths.MasterPlaces(Path(given)) if given else paths.master_places()


def _backup(call: Call) -> None:
    target = Path(call.words[0])
    try:
        made = import_module("moorage.daemons.backup").backup(places(call), target)
    except OSError as error:
        raise Failed(f"{error.filename or target}: {error.strerror}") from error
    call.terminal.print(f"{target} has {made.told}")


def _restore(call: Call) -> None:
    source = Path(call.words[0])
    node = import_module("moorage.daemons.paths").node_places()
    force = bool(call.option("force"))
    module = import_module("moorage.daemons.backup")
    try:
        made, told = module.restore(places(call), node, source, force=force)
    except OSError as error:
        raise Failed(f"{error.filename or source}: {error.strerror}") from error
    for line in told:
        call.terminal.talk(f"WARNING: {line}")
    call.terminal.print(f"Put back {made.told}: what was done later is not in it")
    call.terminal.print("Next: moorage master start; gnt-cluster verify")


COMMANDS = (
    Command(
        "backup",
        _backup,
        "write the cluster's state and keys into a file",
        (_FILE,),
        (_DIR,),
        examples={"moorage backup /root/cluster.backup": "while it runs"},
    ),
    Command(
        "restore",
        _restore,
        "put the state and keys of a backup back",
        (_FILE,),
        (
            _DIR,
            Option(("--force",), "though nodes hear a master, or none answers"),
        ),
        examples={"moorage restore /root/cluster.backup": "where none is"},
    ),
)
