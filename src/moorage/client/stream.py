# SPDX-License-Identifier: BSD-2-Clause
"""What happens as a stream of server-sent events, line by line."""

import json
from typing import Final

from .told import Entry, entry

SILENCE: Final = 45.0
"""Seconds without a line after which a door is gone: it says that it lives each 15."""


class Stream:
    r"""Puts the lines of a stream together.

    >>> stream = Stream()
    >>> stream.feed(b"id: 7\n")
    >>> stream.feed(b"\n").number
    7
    """

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def feed(self, line: bytes) -> Entry | None:
        """Return the entry that a line ends.

        One without events says how far the feed is, where nothing was wanted of it.
        """
        text = line.decode().rstrip("\n")
        if text:
            name, _, value = text.partition(": ")
            self._fields[name] = value
            return None
        found, self._fields = self._fields, {}
        match found.get("event"):
            case "change":
                return entry(json.loads(found["data"]))
            case "start":
                return Entry(int(found["id"]), reset=True)
        return Entry(int(found["id"])) if "id" in found else None
