# SPDX-License-Identifier: BSD-2-Clause
"""What somebody should do about the place where the state is kept."""

from msgspec import Struct


class StoreTrouble(Struct, frozen=True, kw_only=True):
    """One thing that needs somebody.

    Attributes
    ----------
    said
        What it is: ``member https://node2:2379 gives no answer``.
    command
        To type.
    urgent
        Whether nothing can be written any more.
    """

    said: str
    command: str
    urgent: bool = False
