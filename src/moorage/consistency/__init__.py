# SPDX-License-Identifier: BSD-2-Clause
"""Whether a configuration is consistent: all that Ganeti's own check finds, and more.

The same checks look at a file of Ganeti's and at the objects of a store.
"""

from collections.abc import Mapping
from typing import Any

from . import checks
from .parts import Complaint, Complaints, parts_of

__all__ = ["Complaint", "complaints"]


def complaints(document: Mapping[str, Any]) -> Complaints:
    """Yield what is wrong with a configuration of 3.0 or later, object by object.

    Whatever JSON it is, it is told of: an object that cannot be read is named, and
    looked at no further.
    """
    wrong: list[Complaint] = []
    parts = parts_of(document, wrong)
    yield from wrong
    for check in (*checks.OF_FILES, *checks.OF_OBJECTS):
        yield from check(parts)
