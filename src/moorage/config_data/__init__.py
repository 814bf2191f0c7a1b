# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's ``config.data``: read at each of its versions, brought up and down, written.

A document is the file's JSON as it is: what nobody here knows stays where it was.
"""

from .document import (
    KNOWN,
    NEWEST,
    OLDEST,
    Document,
    Version,
    known_version,
    read,
    version_of,
)
from .downgrade import downgrade
from .export import Exported, exported
from .ssconf import ssconf
from .upgrade import upgrade

__all__ = [
    "KNOWN",
    "NEWEST",
    "OLDEST",
    "Document",
    "Exported",
    "Version",
    "downgrade",
    "exported",
    "known_version",
    "read",
    "ssconf",
    "upgrade",
    "version_of",
]
