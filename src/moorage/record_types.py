# SPDX-License-Identifier: BSD-2-Clause
"""The types of records, looked at before there are threads.

msgspec looks at a type when it is used for the first time, and keeps what it found. Two
threads that use one type for the first time at the same moment crash the process: the
second takes what the first has not finished (seen with msgspec 0.22.0).
"""

from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct, json


def look_at_types() -> None:
    """Let msgspec look at all types of records that there are so far.

    It is for processes with threads, when all that they need is imported and no thread
    of theirs has begun; it takes some hundredths of a second.
    """
    for kind in set(_kinds(Struct)):
        with suppress(TypeError):  # that are only written
            json.Decoder(kind)


def _kinds(kind: type[Struct]) -> Iterator[type[Struct]]:
    below: list[type[Struct]] = kind.__subclasses__()
    for one in below:
        yield one
        yield from _kinds(one)
