# SPDX-License-Identifier: BSD-2-Clause
"""The request that is being answered, and logs that name it: JSON, an object a line.

Its id goes with whatever it begins: into the operation's row, and from there into the
reason of the cluster's job.
"""

import json
import logging
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from msgspec import Struct

_WELL_FORMED = re.compile(
    "req-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)


class Trace(Struct):
    """What is known of a request.

    Attributes
    ----------
    id
        ``req-`` and a uuid.
    global_id
        What the client calls all that it asks for with one end; empty for nothing.
    user, project
        Ids; empty while nobody knows.
    route
        The declared path, such as ``/volume/v3/volumes/{volume_id}``; empty for none.
    """

    id: str
    global_id: str = ""
    user: str = ""
    project: str = ""
    route: str = ""

    def told(self) -> dict[str, str]:
        """Return what a line of the log says of it."""
        found = {
            "request": self.id,
            "global_request": self.global_id,
            "user": self.user,
            "project": self.project,
            "route": self.route,
        }
        return {name: text for name, text in found.items() if text}


TRACE: ContextVar[Trace | None] = ContextVar("trace", default=None)


def new(told: str) -> Trace:
    """Return the trace of a new request.

    Parameters
    ----------
    told
        The client's own id; one that is not well-formed is left aside.
    """
    known = told if _WELL_FORMED.fullmatch(told) else ""
    return Trace(id=f"req-{uuid.uuid4()}", global_id=known)


@contextmanager
def resumed(request_id: str, global_id: str = "") -> Iterator[None]:
    """Go on with what an earlier request began: lines of the log name that."""
    before = TRACE.set(Trace(request_id, global_id) if request_id else None)
    try:
        yield
    finally:
        TRACE.reset(before)


def current() -> Trace:
    """Return the trace of what is being done; a new one where there is none."""
    return TRACE.get() or new("")


class JsonLines(logging.Formatter):
    """Writes a record as an object: what it tells besides its words has keys.

    A record says that with ``extra={"told": {...}}``.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        when = datetime.fromtimestamp(record.created, UTC)
        trace = TRACE.get()
        line: dict[str, object] = {
            "time": when.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **(trace.told() if trace else {}),
            **getattr(record, "told", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
