# SPDX-License-Identifier: BSD-2-Clause
"""How the door is to run: its file of settings."""

from pathlib import Path

from msgspec import DecodeError, Struct, ValidationError, toml

from moorage.api.rapi.limits import Limits
from moorage.directories import DOOR, RAPI_USERS
from moorage.errors import BadInput
from moorage.model.misfit import misfit

SETTINGS = Path("/etc/moorage/rapi.toml")


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the door is to run.

    Attributes
    ----------
    address, port
        Where it listens; ``0.0.0.0`` is everywhere.
    socket
        The master's for doors.
    certificate
        A file with a key, its certificate, and those of who signed it. The one that is
        named here is the administrator's, unless ``moorage rapi certificate`` wrote it.
    users
        Ganeti's file of users.
    tokens
        What ``moorage rapi token`` writes.
    limits
        What one user, or one address, gets.
    """

    address: str = "0.0.0.0"  # noqa: S104
    port: int = 5080
    socket: str = DOOR
    certificate: str = "/var/lib/moorage-rapi/rapi.pem"
    users: str = RAPI_USERS
    tokens: str = "/var/lib/moorage-rapi/tokens"
    limits: Limits = Limits()


def read_settings(path: Path = SETTINGS) -> Settings:
    """Return the settings in a file; the defaults if there is none.

    Raises
    ------
    BadInput
        If the file holds something else.
    """
    try:
        return toml.decode(path.read_bytes(), type=Settings)
    except FileNotFoundError:
        return Settings()
    except (DecodeError, UnicodeError) as error:
        told = misfit(error) if isinstance(error, ValidationError) else error
        raise BadInput(f"{path} does not hold settings: {told}") from None
