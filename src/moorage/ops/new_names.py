# SPDX-License-Identifier: BSD-2-Clause
"""Names of objects that are to be made or renamed."""

import re

from moorage.errors import Exists
from moorage.model import KIND_OF, Config, Entity
from moorage.model.config import LISTED_BY, WORDS
from moorage.storage.validation import check_name

_MACHINE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def is_machine_name(name: str) -> bool:
    """Whether a node or a cluster can be called so."""
    return _MACHINE.fullmatch(name) is not None


def check_new_name(config: Config, cls: type[Entity], name: str) -> None:
    """Raise `Refused` unless a new object of a class can be called `name`."""
    kind = KIND_OF[cls]
    what = WORDS.get(kind, kind)
    check_name(what, name)
    if config.knows(cls, name):
        hint = f"{LISTED_BY[kind].removesuffix('list')}info {name}"
        raise Exists(f"there is a {what} '{name}' already", hint=hint)
