# SPDX-License-Identifier: BSD-2-Clause
"""The daemons' side of the house, which is slow to import: late, and no more than once.

Half of what an agent or a master computes until it serves, is to load its modules.
"""

import gc
import os
from importlib import import_module
from types import ModuleType

_AUTHORITIES = "SSL_CERT_FILE"


def daemons(name: str) -> ModuleType:
    """Return a module of the daemons."""
    return import_module(f"moorage.daemons.{name}")


def to_run(name: str) -> ModuleType:
    """Return the module that this very process is to run until it ends.

    What is loaded stays, and is never looked through for garbage: Python would do so
    140 times on the way. Nor are the system's authorities read, a tenth of the time:
    aiohttp keeps a context with them that nobody here uses, since daemons know each
    other by their own.
    """
    given = os.environ.get(_AUTHORITIES)
    os.environ[_AUTHORITIES] = os.devnull
    gc.disable()
    module = daemons(name)
    gc.freeze()
    gc.enable()
    del os.environ[_AUTHORITIES]
    if given is not None:
        os.environ[_AUTHORITIES] = given
    return module
