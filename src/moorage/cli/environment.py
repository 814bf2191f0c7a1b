# SPDX-License-Identifier: BSD-2-Clause
"""What the surroundings tell a command: where the master is, which options to add."""

import shlex
from collections.abc import Mapping

from moorage.client import TIMEOUT, Client, Door, Socket, door
from moorage.directories import NODE_DIR, SOCKET
from moorage.errors import BadInput, NotSupported

_PATIENCE = 20.0
"""Seconds that a door may be away once it has answered."""


def place(environ: Mapping[str, str]) -> Door | Socket:
    """Return where the cluster is that commands ask.

    ``MOORAGE_URL`` is a door on the network. A token opens it (``MOORAGE_TOKEN``, or a
    file: ``MOORAGE_TOKEN_FILE``), or ``MOORAGE_USER`` and ``MOORAGE_PASSWORD``, which
    may stand in the URL. ``MOORAGE_CA`` is a file of certificates that are believed.

    Raises
    ------
    BadInput
        If the URL is none, nothing opens the door, or another cluster is named, too.
    """
    url = environ.get("MOORAGE_URL")
    if not url:
        return Socket(socket_path(environ), agent_socket(environ))
    if environ.get("MOORAGE_SOCKET"):
        raise BadInput(
            "MOORAGE_URL and MOORAGE_SOCKET each name a cluster",
            hint="unset MOORAGE_SOCKET",
        )
    return door(
        url,
        token=_token(environ),
        user=environ.get("MOORAGE_USER", ""),
        password=environ.get("MOORAGE_PASSWORD", ""),
        ca=environ.get("MOORAGE_CA", ""),
    )


def _token(environ: Mapping[str, str]) -> str:
    file = environ.get("MOORAGE_TOKEN_FILE")
    if environ.get("MOORAGE_TOKEN") or not file:
        return environ.get("MOORAGE_TOKEN", "")
    try:
        with open(file, encoding="utf-8") as opened:  # noqa: PTH123 - pathlib is slow to import
            return opened.read(4096).strip()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "it holds no text"
        raise BadInput(f"the token's file {file} cannot be read: {why}") from None


def connected(
    environ: Mapping[str, str], *, socket: str = "", timeout: float = TIMEOUT
) -> Client:
    """Return a client of the cluster that commands ask.

    Parameters
    ----------
    socket
        Of a master, instead of what the surroundings say.
    timeout
        Seconds after which an answer is given up.

    Raises
    ------
    MoorageError
        As :func:`place`; over the network, if nobody answers, or another kind of door.
    """
    at = Socket(socket) if socket else place(environ)
    client = Client(at, timeout=timeout, patience=0.0)
    if isinstance(at, Door):
        try:
            _check(client, at)
        except BaseException:
            client.close()
            raise
        client.patience = _PATIENCE
    return client


def _check(client: Client, at: Door) -> None:
    """Raise if nobody answers, or somebody who takes no commands of ours."""
    if "moorage-opcodes" not in client.features():
        raise NotSupported(
            f"what answers at {at.url} takes no jobs of these programs: it is "
            "Ganeti's, or older"
        )


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

    ``MOORAGE_TOKEN`` is one, unless it opens a door; ``MOORAGE_TOKENS`` is a
    directory that has the nodes' directories, as a scratch cluster's does.
    """
    own = None if environ.get("MOORAGE_URL") else environ.get("MOORAGE_TOKEN")
    if own or "MOORAGE_TOKENS" not in environ:
        return own
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
