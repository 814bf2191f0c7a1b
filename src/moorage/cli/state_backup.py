# SPDX-License-Identifier: BSD-2-Clause
"""moorage backup and restore: the cluster's state and keys in one file."""

import sys
from getpass import getpass
from pathlib import Path
from typing import Any

from moorage.errors import BadInput, Failed

from .command import Call, Command, Operand, Option
from .daemons_side import daemons

_FILE = Operand("FILE")
_DIR = Option(("--dir",), "the master's directory (/var/lib/moorage)", "DIR")
_SECRET = Option(
    ("--passphrase-file",), "open its keys with the passphrase in a file", "FILE"
)


def places(call: Call) -> Any:  # noqa: ANN401 - imported late
    """Return where the master keeps its files."""
    paths = daemons("paths")
    given = call.option("dir")
    return paths.MasterPlaces(Path(given)) if given else paths.master_places()


def _passphrase(call: Call) -> bytes:
    """Return the passphrase in a file that is named; empty for none."""
    given = call.option("passphrase_file")
    if not given:
        return b""
    try:
        found = Path(given).read_bytes().removesuffix(b"\n")
    except OSError as error:
        raise BadInput(f"{given}: {error.strerror}") from error
    if not found:
        raise BadInput(f"{given} is empty: it is to hold the passphrase")
    return found


def _asked(*, again: bool) -> bytes:
    """Return a passphrase that is typed; `again` for one that is new."""
    if not sys.stdin.isatty():
        return b""
    found = getpass("Passphrase of the keys: ")
    if again and (not found or getpass("Once more: ") != found):
        raise BadInput("that is no passphrase, or not the same one")
    return found.encode()


def _backup(call: Call) -> None:
    target = Path(call.words[0])
    secret = _passphrase(call)
    if call.option("ask_passphrase"):
        secret = _asked(again=True)
        if not secret:
            raise BadInput(
                "nobody can be asked for a passphrase: this is no terminal",
                hint=f"moorage backup --passphrase-file SECRET {target}",
            )
    module = daemons("backup")
    try:
        made = module.backup(places(call), target, secret)
    except OSError as error:
        raise Failed(f"{error.filename or target}: {error.strerror}") from error
    call.terminal.print(f"{target} has {made.told}")
    if not secret:
        call.terminal.talk(
            "Its keys are in clear: whoever reads it can give orders to all nodes "
            "(--passphrase-file seals them)"
        )


def _restore(call: Call) -> None:
    source = Path(call.words[0])
    node = daemons("paths").node_places()
    force = bool(call.option("force"))
    module = daemons("backup")
    secret = _passphrase(call)
    try:
        if not secret and module.sealed(source):
            secret = _asked(again=False)
        made, told = module.restore(
            places(call), node, source, force=force, passphrase=secret
        )
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
        (_FILE,),
        (
            _DIR,
            _SECRET._replace(help="seal its keys with the passphrase in a file"),
            Option(("--ask-passphrase",), "seal its keys with one that is typed"),
        ),
        examples={
            "moorage backup /root/cluster.backup": "while it runs",
            "moorage backup --passphrase-file /root/secret /root/sealed.backup": (
                "for a place that others can read"
            ),
        },
        here="it reads the master's files",
    ),
    Command(
        "restore",
        _restore,
        (_FILE,),
        (
            _DIR,
            _SECRET,
            Option(("--force",), "though nodes hear a master, or none answers"),
        ),
        examples={"moorage restore /root/cluster.backup": "where none is"},
        here="it writes the master's files",
    ),
)
