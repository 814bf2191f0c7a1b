# SPDX-License-Identifier: BSD-2-Clause
"""What happens in a cluster, told in order: an entry for each commit.

An entry has the number of its commit. Numbers only rise, over restarts and over other
masters, too; what a crash could take back has none yet.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from .change import KIND_OF, Change
from .config import Config
from .objects import Entity
from .story import NOTHING, Occasion

ADDED, CHANGED, REMOVED = "added", "changed", "removed"
JOB = "job"
"""The kind of an event of a job; all others are kinds of objects."""
_COMMITS = 2**32
"""Numbers of one term: commits are counted on over terms, so none has as many."""


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of an object or a job.

    Attributes
    ----------
    kind
        ``disk``, ``instance``, ``node``, … or ``job``.
    event
        ``added``, ``changed`` or ``removed``.
    uuid, name, serial_no, tags
        Of an object, as it is from now on, or was.
    job
        Number of a job.
    status, summary
        Of a job: its status from now on, and what it is about.
    """

    kind: str
    event: str
    uuid: str = ""
    name: str = ""
    serial_no: int = 0
    tags: tuple[str, ...] = ()
    job: int = 0
    status: str = ""
    summary: str = ""


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one commit did.

    Attributes
    ----------
    number
        See :func:`number`; later ones are higher.
    time
        In seconds.
    job
        Number of the job that did it; 0 for none.
    by
        Who asked for that, and by which door.
    """

    number: int
    time: float
    events: tuple[Event, ...]
    job: int = 0
    by: str = ""


def number(term: int, version: int) -> int:
    """Return the number of a commit.

    Parameters
    ----------
    term
        Of the master; each that leads counts on.
    version
        How many commits the store has had. A master that could not know of the last
        ones of another counts them again, in a term of its own.
    """
    return term * _COMMITS + version


def entry(
    at: int,
    before: Config,
    change: Change,
    jobs: Iterable[Event] = (),
    occasion: Occasion = NOTHING,
) -> Entry | None:
    """Return what a commit did; None if there is nothing to tell.

    Parameters
    ----------
    at
        Its number.
    jobs
        What became of jobs.
    """
    found = (*_objects(before, change), *jobs)
    if not found:
        return None
    time = occasion.time or max((one.mtime for one in change.put), default=0.0)
    return Entry(number=at, time=time, events=found, job=occasion.job, by=occasion.by)


def _objects(before: Config, change: Change) -> Iterator[Event]:
    for old in change.drop:
        yield _event(REMOVED, old)
    for new in change.put:
        yield _event(CHANGED if new.uuid in before.objects else ADDED, new)


def _event(what: str, entity: Entity) -> Event:
    return Event(
        kind=KIND_OF[type(entity)],
        event=what,
        uuid=entity.uuid,
        name=getattr(entity, "name", None) or "",
        serial_no=entity.serial_no,
        tags=tuple(getattr(entity, "tags", ())),
    )
