# SPDX-License-Identifier: BSD-2-Clause
"""What others could use up in a daemon: its log, and its descriptors."""

import asyncio
import json
import logging
import os
import resource
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from moorage.errors import BadInput

_LOG = logging.getLogger(__name__)
FORMAT = "MOORAGE_LOG_FORMAT"
"""Names how logs are written: ``text``, or ``json``."""
_FORM = "%(asctime)s %(levelname)s %(message)s"
_JOURNAL = "<%(priority)d>%(message)s"
"""The journal has the time, and shows what is urgent by syslog's numbers."""
_PRIORITIES = {logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}
_WINDOW = 60.0
"""Seconds in which one place in the source may write so many records."""
_RECORDS = 60
_DESCRIPTORS = 65536


def write_log() -> None:
    """Write a daemon's log to standard error, no faster than a person can want it.

    Where systemd's journal reads it, it is in the journal's form; as objects of JSON
    where that is asked for.

    Raises
    ------
    BadInput
        If another format is asked for.
    """
    handler = logging.StreamHandler()
    handler.addFilter(Calm())
    form = _FORM
    if "JOURNAL_STREAM" in os.environ:
        handler.addFilter(_prioritized)
        form = _JOURNAL
    handler.setFormatter(JsonLines() if as_json() else TextLines(form))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class TextLines(logging.Formatter):
    """Writes a record's message as one line: no word in it begins one of its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's
        """Return the line."""
        words = record.message
        if not words.isprintable():
            record.message = "".join(
                one if one.isprintable() else repr(one)[1:-1] for one in words
            )
        return super().formatMessage(record)


def as_json(given: str | None = None) -> bool:
    """Whether logs are to be lines of JSON: what was given counts, or the environment.

    Raises
    ------
    BadInput
        If they are to be something else than that, or text.
    """
    word = given or os.environ.get(FORMAT) or "text"
    if word not in ("text", "json"):
        raise BadInput(f"a log has the format text or json, not '{word}'")
    return word == "json"


def json_line(level: str, logger: str, message: str, **more: Any) -> str:  # noqa: ANN401
    """Return a line of a log as an object; `more` are further keys.

    What is no text in it is written out, so a line stays one.
    """
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    told = {"time": now, "level": level, "logger": logger, "message": message, **more}
    return json.dumps(told, default=str)


class JsonLines(logging.Formatter):
    """Writes a record as an object: what it tells besides its words has keys.

    A record says that with ``extra={"told": {...}}``; what is logged within a job has
    its number.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        more = {**_job(), **getattr(record, "told", {})}
        if record.exc_info:
            more["error"] = self.formatException(record.exc_info)
        return json_line(record.levelname, record.name, record.getMessage(), **more)


def _job() -> dict[str, int]:
    """Return the job whose task this is, if it is one's."""
    with suppress(RuntimeError, ValueError):  # there is no loop, or it is no job's
        task = asyncio.current_task()
        word, _, number = task.get_name().partition(" ") if task else ("", "", "")
        return {"job": int(number)} if word == "job" else {}
    return {}


def _prioritized(record: logging.LogRecord) -> bool:
    record.priority = _PRIORITIES.get(record.levelno, 6)
    return True


class Calm(logging.Filter):
    """Lets each place in the source write only so much in a minute.

    Whoever can make a daemon complain could fill its disk. What is critical is written
    all the same: it ends the daemon, and nobody outside can bring it about. So is who
    was at a guest: only they that may give orders bring that about, and a flood of it
    must not hide one. How many records were left out is told with the next one that is
    let through.

    Parameters
    ----------
    clock
        The time in seconds, from anywhere.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._until = 0.0
        self._written: Counter[tuple[str, int]] = Counter()
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is to be written."""
        if getattr(record, "always", False):
            return True
        now = self._clock()
        if now >= self._until:
            self._until = now + _WINDOW
            self._written.clear()
        place = record.pathname, record.lineno
        self._written[place] += 1
        if self._written[place] > _RECORDS and record.levelno < logging.CRITICAL:
            self._left_out += 1
            return False
        if self._left_out:
            record.msg = f"({self._left_out} messages were left out) {record.msg}"
            self._left_out = 0
        return True


def complain(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what the event loop complains of; of the network, in one line."""
    error = context.get("exception")
    if isinstance(error, OSError):
        _LOG.error("%s: %s", context["message"], error)
    else:
        loop.default_exception_handler(context)


def allow_descriptors() -> None:
    """Allow this process as many open files as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, _DESCRIPTORS) if hard != resource.RLIM_INFINITY else _DESCRIPTORS
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
