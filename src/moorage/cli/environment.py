# SPDX-License-Identifier: BSD-2-Clause
"""What the surroundings tell a command: where the master is, which options to add."""

import shlex
from collections.abc import Mapping

from moorage.directories import NODE_DIR, SOCKET
from moorage.errors import BadInput


def socket_path(environ: Mapping[str, str]) -> str:
    """Return the path of the master's socket.

    ``MOORAGE_SOCKET`` counts first, then a path in Ganeti's ``FORCE_LUXI_SOCKET``
    (its words ``master`` and ``query`` mean the default: there is one socket).

    >>> socket_path({"MOORAGE_SOCKET": "/tmp/a/luxi.sock"})
    '/tmp/a/luxi.sock'
    """
    forced = environ.get("FORCE_LUXI_SOCKET", "")
    if not forced.startswith("/"):
        forced = SOCKET
    return environ.get("MOORAGE_SOCKET") or forced


def agent_socket(environ: Mapping[str, str]) -> str:
    """Return where the agent of this machine says who is the master; empty for nowhere.

    ``MOORAGE_NODE_DIR`` is the agent's directory. Who names the master's socket means
    that one, and no other.
    """
    if environ.get("MOORAGE_SOCKET"):
        return ""
    return f"{environ.get('MOORAGE_NODE_DIR') or NODE_DIR}/luxi.sock"


def token_of(node: str, environ: Mapping[str, str]) -> str | None:
    """Return the token of a node that waits to be let in, if somebody laid it ready.

    ``MOORAGE_TOKEN`` is one; ``MOORAGE_TOKENS`` is a directory that has the nodes'
    directories, as a scratch cluster's does.
    """
    if environ.get("MOORAGE_TOKEN") or "MOORAGE_TOKENS" not in environ:
        return environ.get("MOORAGE_TOKEN")
    try:
        with open(f"{environ['MOORAGE_TOKENS']}/{node}/join-token") as file:  # noqa: PTH123 - pathlib is slow to import
            return file.read().strip()
    except OSError:
        return None


def default_arguments(
    program: str, command: str, environ: Mapping[str, str]
) -> list[str]:
    """Return the arguments that a person set for a command, once and for all.

    Raises
    ------
    BadInput
        If the variable's quotes do not match.

    >>> default_arguments("gnt-instance", "list", {"GNT_INSTANCE_LIST": "-o name"})
    ['-o', 'name']
    """
    name = f"{program} {command}".replace("-", "_").replace(" ", "_").upper()
    try:
        return shlex.split(environ.get(name, ""))
    except ValueError as error:
        raise BadInput(f"the variable {name} cannot be split: {error}") from error
