# SPDX-License-Identifier: BSD-2-Clause
"""The sockets of a master beside its own: each of a door, whose word is taken."""

import os
import pwd
from pathlib import Path

from moorage.api.luxi_caller import Believed
from moorage.directories import DOOR, DOOR_USER
from moorage.model.caller import Role

from .paths import MasterPlaces

MOST = "MOORAGE_DOOR_ROLE"
"""Names the highest role that anybody can have who comes by a door."""


def of(places: MasterPlaces) -> dict[Path, Believed]:
    """Return the socket of the door for other machines, if it has a place.

    Installed, the door is a user of its own, who reaches nothing else of the master.

    Raises
    ------
    BadInput
        If `MOST` names no role.
    """
    installed = places.door == Path(DOOR)
    if installed and not places.door.parent.is_dir():
        return {}
    try:
        uid = pwd.getpwnam(DOOR_USER).pw_uid if installed else os.geteuid()
    except KeyError:
        return {}
    most = Role.named(os.environ.get(MOST, Role.WRITE.word))
    return {places.door: Believed(uid, most=most)}
