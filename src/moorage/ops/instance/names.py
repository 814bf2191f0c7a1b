# SPDX-License-Identifier: BSD-2-Clause
"""What instances may be called: names of hosts, which nobody resolves."""

import re

from moorage.errors import BadInput, Exists
from moorage.model import Config, Instance, Node

_LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"(?=.{{1,253}}$)(?!(.*\.)?[0-9]+$){_LABEL}(\.{_LABEL})*")
"""A host name whose last label is no number: else it would be an address."""


def check(config: Config, name: str) -> None:
    """Raise `BadInput` for no name of a host, `Exists` for that of another machine."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"'{name[:80]}' is not an instance name: labels of at most 63 letters, "
            "digits and dashes between dots, and not a number"
        )
    if config.knows(Instance, name):
        raise Exists(f"instance {name} exists already")
    if config.knows(Node, name):
        raise Exists(f"a node is called {name}: no instance can be")
