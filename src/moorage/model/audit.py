# SPDX-License-Identifier: BSD-2-Clause
"""The audit log: who had what changed, each entry bound to the one before it.

An entry is a line of JSON, and has the SHA-256 of the line before. So whoever has noted
the checksum of one line knows whether any line before it is another one now.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import Struct, json
from msgspec.structs import asdict

from .caller import Caller
from .misfit import UNREADABLE, why

SUBMIT, END, CANCEL, PRIORITY, ARCHIVE = (
    "submit",
    "end",
    "cancel",
    "priority",
    "archive",
)
"""What is done with a job: it is queued, has ended, …"""
DRAIN, UNDRAIN = "drain", "undrain"
"""The queue takes no jobs any more, or takes them again."""
CONSOLE, SCREEN, TICKET = "console", "screen", "ticket"
"""A line to a guest is opened, or a ticket for one is drawn."""
LEAD = "lead"
"""A node takes the lead from another one."""
_OTHER = "which is not what the next one was written behind"


class Deed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that was done.

    Attributes
    ----------
    time
        In seconds.
    what
        One of the words above.
    user, door, origin, role
        Who did it, by which door, from where, and what that one may do.
    request
        What the door calls the request; its log has the same word.
    job
        Number of a job; 0 for none.
    status
        How a job has ended, or what its priority is.
    about
        What the job does, in words; or a guest, or a node.
    ops
        What was asked for, without secrets and reasons; where that is long, only what
        kinds of operations.
    digest
        SHA-256 of what was asked for, where it is not here.
    """

    time: float
    what: str
    user: str = ""
    door: str = ""
    origin: str = ""
    role: str = ""
    request: str = ""
    job: int = 0
    status: str = ""
    about: str = ""
    ops: tuple[dict[str, Any], ...] = ()
    digest: str = ""


class Entry(Deed, frozen=True, kw_only=True, omit_defaults=True):
    """A deed in its place.

    Attributes
    ----------
    number
        The first one has 1, the next one 2; so the number of the last says how many
        there were.
    term
        Of the master that wrote it.
    before
        Checksum of the line before; empty for the first one.
    """

    number: int
    term: int
    before: str = ""


def deed(caller: Caller, time: float, what: str, **more: Any) -> Deed:  # noqa: ANN401
    """Return what somebody did."""
    return Deed(
        time=time,
        what=what,
        user=caller.name,
        door=caller.door,
        origin=caller.detail,
        role=caller.role.word,
        request=caller.request,
        **more,
    )


def line(deed_: Deed, number: int, term: int, before: str) -> bytes:
    """Return the line of an entry, without an end."""
    entry = Entry(**asdict(deed_), number=number, term=term, before=before)
    return json.encode(entry)


def decoded(text: bytes | str) -> Entry:
    """Return the entry in a line.

    Raises
    ------
    ValueError
        If there is none.
    """
    return json.decode(text, type=Entry)


def checksum(text: bytes) -> str:
    """Return the checksum of a line, which the next one has."""
    return hashlib.sha256(text).hexdigest()


@dataclass(slots=True)
class Chain:
    """Lines that are read one after the other.

    Attributes
    ----------
    first, last
        Numbers of the first and the last one; 0 while there is none.
    head
        Checksum of the last one.
    lines
        How many there were.
    """

    first: int = 0
    last: int = 0
    head: str = ""
    lines: int = 0
    _term: int = 0

    def read(self, lines: Iterable[bytes]) -> Iterator[str]:
        """Read on; yield what does not fit, in words."""
        for text in lines:
            self.lines += 1
            try:
                entry = decoded(text)
            except UNREADABLE as error:
                yield f"line {self.lines} is no entry: {why(error)}"
                continue
            yield from self._faults(entry)
            self.first = self.first or entry.number
            self.last, self.head = entry.number, checksum(text)
            self._term = entry.term

    def _faults(self, entry: Entry) -> Iterator[str]:
        if not self.last:
            if entry.number == 1 and entry.before:
                yield "entry 1 was written behind one that is not there"
            return
        if entry.number != self.last + 1:
            yield f"entry {entry.number} stands behind entry {self.last}"
        elif entry.before != self.head:
            yield f"entry {self.last} is not what was written: {_OTHER}"
        if entry.term < self._term:
            yield f"entry {entry.number} is of an earlier master than the one before"
