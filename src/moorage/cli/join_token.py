# SPDX-License-Identifier: BSD-2-Clause
"""The token of a new node, from where other users of this machine do not see it."""

from moorage.directories import NODE_DIR
from moorage.errors import BadInput

from .command import Call, Option
from .environment import token_of

_LONGEST = 64 * 1024
OPTIONS = (
    Option(
        ("--token-file",),
        "the file join-token of the node's agent, or - for standard input",
        "FILE",
    ),
    Option(
        ("--token",),
        "what the node's agent printed; other users of this machine can see it",
        "TEXT",
    ),
)


def token(call: Call, node: str) -> str | None:
    """Return the token that was given for a node, if one was.

    Raises
    ------
    BadInput
        If it is given twice, or its file cannot be read.
    """
    text, file = call.option("token"), call.option("token_file")
    if text and file:
        raise BadInput("--token and --token-file do not go together")
    if file:
        return _read(call, file)
    if text:
        call.terminal.talk(
            "Warning: every user of this machine can see a token that is typed; "
            "--token-file - reads it from standard input"
        )
        return str(text)
    return token_of(node, call.terminal.environ)


def of_this_machine(call: Call) -> str | None:
    """Return the token of the agent on this machine, if one waits to be let in."""
    environ = call.terminal.environ
    directory = environ.get("MOORAGE_NODE_DIR") or NODE_DIR
    try:
        with open(f"{directory}/join-token", encoding="utf-8") as opened:  # noqa: PTH123
            return opened.read(_LONGEST).strip()
    except (OSError, UnicodeError):
        return None


def name_of_this_machine() -> str:
    """Return the name that this machine goes by among others, with its domain."""
    import socket  # noqa: PLC0415 - most commands do not ask

    found = socket.getfqdn().lower()
    return socket.gethostname().lower() if found.startswith("localhost") else found


def _read(call: Call, file: str) -> str:
    try:
        if file == "-":
            found = call.terminal.inp.read(_LONGEST)
        else:
            with open(file, encoding="utf-8") as opened:  # noqa: PTH123 - pathlib is slow to import
                found = opened.read(_LONGEST)
    except OSError as error:
        raise BadInput(
            f"the token's file {file} cannot be read: {error.strerror}"
        ) from None
    except UnicodeError:
        raise BadInput(f"the token's file {file} holds no text") from None
    if not found.strip():
        raise BadInput(f"there is no token in {file}")
    return found.strip()
