# SPDX-License-Identifier: BSD-2-Clause
"""moorage rapi: the door for other machines, and who may come in."""

import os
import sys
import time
from getpass import getpass
from importlib import import_module
from pathlib import Path
from typing import Any

from moorage.errors import BadInput

from .command import Call, Command, Operand, Option
from .daemons_side import daemons, to_run
from .log_format import LOG_FORMAT, choose
from .state_backup import places

_SETTINGS = Option(("--settings",), "its settings (/etc/moorage/rapi.toml)", "FILE")
_NAME = Operand("NAME")


def _settings(call: Call) -> Any:  # noqa: ANN401 - imported late
    module = daemons("rapi_settings")
    given = call.option("settings")
    if given and not Path(given).exists():
        raise BadInput(f"there is no file {given}")
    return module.read_settings(Path(given) if given else module.SETTINGS)


def _run(call: Call) -> None:
    choose(call)
    module = to_run("rapi")
    module.run(_settings(call))


def _certificate(call: Call) -> None:
    path = Path(_settings(call).certificate)
    name = call.words[0] if call.words else os.uname().nodename
    made = daemons("rapi_keys").renew(places(call), path, name)
    told = f"has a new certificate for {name}" if made else "has one that lasts"
    call.terminal.print(f"{path} {told}")


def _password(call: Call) -> None:
    """Print a line for the file of users."""
    (name,) = call.words
    role = import_module("moorage.api.rapi.roles").Role.named(call.option("role"))
    given = _typed() if sys.stdin.isatty() else call.terminal.inp.readline().rstrip()
    if not given:
        raise BadInput("an empty password is none")
    kept = import_module("moorage.api.rapi.passwords").scrypt(given)
    call.terminal.print(f"{name} {kept} {role.word}")


def _typed() -> str:
    found = getpass("Password: ")
    if getpass("Once more: ") != found:
        raise BadInput("that is not the same password")
    return found


def _add_token(call: Call) -> None:
    (name,) = call.words
    role = import_module("moorage.api.rapi.roles").Role.named(call.option("role"))
    settings, days = _settings(call), call.option("days")
    files = Path(settings.tokens), Path(settings.users)
    token = daemons("rapi_keys").add_token(files[0], name, role, days, files[1])
    call.terminal.print(token)
    call.terminal.talk("It is shown this once")


def _list_tokens(call: Call) -> None:
    now = time.time()
    for user in daemons("rapi_keys").tokens(Path(_settings(call).tokens)):
        until = time.strftime("%Y-%m-%d", time.gmtime(user.until))
        over = ", over" if user.until is not None and user.until <= now else ""
        call.terminal.print(f"{user.name} {user.role.word} until {until}{over}")


def _remove_token(call: Call) -> None:
    (name,) = call.words
    daemons("rapi_keys").remove_token(Path(_settings(call).tokens), name)


_ROLE = Option(
    ("--role",),
    "what it may do: known, read, operate, write or root",
    "ROLE",
    default="read",
)
_TOKENS = "tokens are in a file of the door's machine"
COMMANDS = (
    Command("rapi run", _run, options=(_SETTINGS, LOG_FORMAT)),
    Command(
        "rapi certificate",
        _certificate,
        (Operand("NAME", least=0),),
        (
            _SETTINGS,
            Option(("--dir",), "the master's directory (/var/lib/moorage)", "DIR"),
        ),
        examples={
            "moorage rapi certificate cluster.example.org": "for what clients call it",
        },
    ),
    Command(
        "rapi password",
        _password,
        (_NAME,),
        (_ROLE,),
        examples={
            "moorage rapi password anna --role write >> /etc/moorage/rapi.users": (
                "let somebody in"
            ),
        },
    ),
    Command(
        "rapi add-token",
        _add_token,
        (_NAME,),
        (
            _SETTINGS,
            _ROLE,
            Option(("--days",), "how long it lasts (90)", "DAYS", int, default=90),
        ),
        examples={"moorage rapi add-token exporter --days 365": "it may only look"},
        here=_TOKENS,
    ),
    Command("rapi list-tokens", _list_tokens, options=(_SETTINGS,), here=_TOKENS),
    Command("rapi remove-token", _remove_token, (_NAME,), (_SETTINGS,), here=_TOKENS),
)
