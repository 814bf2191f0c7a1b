# SPDX-License-Identifier: BSD-2-Clause
"""What an administrator adds to the scripts of a provider on one node.

A file a provider: variables that its scripts see, and how long each may last. It is
read before each script, so a change needs no restart; it may hold passwords, so it
stays on the node. A file that cannot be taken makes the provider invalid here, and
``gnt-storage diagnose`` says why.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from msgspec import DecodeError, Meta, Struct, json

from moorage.errors import Failed
from moorage.node.machine.trust import distrust
from moorage.storage import Command
from moorage.storage.provider import OPTIONAL, SCRIPTS

ALL = "all"
"""In place of a script's name: every script that has no limit of its own."""
_LONGEST = 82800
"""Seconds: 23 hours, an hour less than a master waits for a verb on a disk."""
_OURS = ("VOL_", "EXTP_")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ProviderSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a provider's file.

    Attributes
    ----------
    env
        Variables of its scripts; PATH and LC_ALL may be among them.
    limits
        Seconds by name of a script, or ``all``.
    """

    env: dict[str, str] = {}
    limits: dict[str, Annotated[float, Meta(gt=0, le=_LONGEST)]] = {}

    def applied(self, command: Command) -> Command:
        """Return the command as this node is to run it."""
        script = Path(command.argv[0]).name
        ours = self.limits.get(script) or self.limits.get(ALL)
        limits = [one for one in (ours, command.limit) if one]
        return replace(
            command, env={**self.env, **command.env}, limit=min(limits, default=None)
        )


NOTHING = ProviderSettings()
"""Where there is no file."""


def read(directory: Path, provider: str) -> ProviderSettings:
    """Return the settings of a provider; nothing where it has no file.

    Raises
    ------
    Failed
        If somebody besides root could change the file, or it says what it cannot.
    """
    path = directory / f"{provider}.json"
    told = distrust(path)
    if told:
        raise Failed(f"File '{path}' is not trusted: {told}", path=str(path))
    try:
        found = json.decode(path.read_bytes(), type=ProviderSettings)
        _check(found)
    except FileNotFoundError:
        return NOTHING
    except (DecodeError, ValueError, OSError) as error:
        raise Failed(f"File '{path}' cannot be used: {error}", path=str(path)) from None
    return found


def _check(found: ProviderSettings) -> None:
    for name, value in found.env.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            raise ValueError(f"'{name}' cannot be a variable")
        if name.startswith(_OURS):
            raise ValueError(f"variable {name} is the cluster's to set")
    known = (ALL, *SCRIPTS, *OPTIONAL)
    unknown = sorted(found.limits.keys() - set(known))
    if unknown:
        raise ValueError(f"there is no script '{unknown[0]}': {', '.join(known)}")
