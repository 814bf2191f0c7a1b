# SPDX-License-Identifier: BSD-2-Clause
"""``moorage master check``: whether a store can be believed; nothing is changed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import json

from moorage.consistency import Complaint, complaints_of_objects
from moorage.copies import replication
from moorage.errors import Failed, MoorageError
from moorage.jobs import archive, journal, repeats
from moorage.jobs.job import BEGUN, Job
from moorage.jobs.job import decode as decode_job
from moorage.model import KINDS, Cluster
from moorage.model.apply import assembled, headless
from moorage.model.audit import Chain
from moorage.model.change import decode
from moorage.model.misfit import UNREADABLE, why
from moorage.model.objects import Entity
from moorage.model.story import REMOVED, Event
from moorage.store import audit, feed, inspect, stories, whole
from moorage.units import counted

from . import master, master_process, process, standby
from .paths import MasterPlaces

_OTHERS = frozenset(
    {
        *("config", "queue", journal.JOB, journal.TASKS),
        *(stories.KIND, feed.KIND, audit.KIND, repeats.KIND, replication.KIND),
        archive.KIND,
        standby.KIND,
    }
)
"""Kinds of records that are no objects of the configuration."""

_Records = Mapping[str, Mapping[str, bytes]]


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found.

    Attributes
    ----------
    faults
        What is wrong; about the cluster is what is wrong with the store.
    summary
        How much was looked at.
    """

    faults: list[Complaint]
    summary: str


class _Part(NamedTuple):
    """What was found in some of the records: the same, in words."""

    faults: list[str]
    summary: str


def check(places: MasterPlaces) -> Checked:
    """Look at a master's store: structure, checksums, references, jobs, keys.

    Raises
    ------
    MoorageError
        If there is none, or it cannot be read.
    """
    master_process.check_cluster(places)
    live = process.holder(places.lock) is not None
    try:
        found = inspect(places.store, live=live)
    except OSError as error:
        raise Failed(f"{places.store} cannot be read: {error.strerror}") from error
    records = _by_kind(found.records)
    faults = [*found.faults, *_unknown(records)]
    entities = list(_entities(records, faults))
    config, broken = assembled(entities)
    faults += [error.message for error in broken]
    if why_not := headless(config):
        faults.append(why_not)
    jobs, told = _jobs(records), _stories(records)
    faults += [*jobs.faults, *told.faults, *_feed(records), *_audit(records)]
    faults += _keys(places)
    complaints = [Complaint("cluster", "", one) for one in faults]
    if config.count(Cluster) == 1:
        complaints += complaints_of_objects(entities)
    objects = f"{len(entities)} objects"
    state = f"version {found.version}, term {found.term}"
    return Checked(complaints, f"{objects}, {jobs.summary}, {told.summary}, {state}")


def _by_kind(records: Mapping[tuple[str, str], bytes]) -> _Records:
    found: dict[str, dict[str, bytes]] = {}
    for (kind, name), value in records.items():
        found.setdefault(kind, {})[name] = value
    return found


def _unknown(records: _Records) -> Iterator[str]:
    for kind in sorted(records.keys() - KINDS.keys() - _OTHERS):
        yield f"there are records of kind '{kind}', which nobody knows"
    serial = records.get("config", {}).get("serial_no", b"0")
    try:
        whole(serial)
    except ValueError as error:
        yield f"the configuration's serial number: {error}"


def _entities(records: _Records, faults: list[str]) -> Iterator[Entity]:
    """Yield the objects of the configuration; note which ones cannot be read."""
    for kind in KINDS:
        for name, value in records.get(kind, {}).items():
            try:
                yield _object(kind, name, value)
            except UNREADABLE as error:
                faults.append(f"the record of {kind} {name}: {why(error)}")


def _object(kind: str, name: str, value: bytes) -> Entity:
    found = decode(kind, json.decode(value))
    if found.uuid != name:
        raise ValueError(f"it is that of {found.uuid}")
    return found


def _jobs(records: _Records) -> _Part:
    """Decode the jobs, and look whether a master could carry them on."""
    faults: list[str] = []
    jobs: list[Job] = []
    apart = records.get(journal.TASKS, {})
    for name, value in records.get("job", {}).items():
        try:
            job = decode_job(value)
        except UNREADABLE as error:
            faults.append(f"the record of job {name}: {why(error)}")
            continue
        try:
            journal.lay(job, apart)
        except UNREADABLE as error:
            faults.append(f"job {name}: {why(error)}")
        jobs.append(job)
        faults += [f"job {name}: {fault}" for fault in _wrong(job, name)]
    known = {name for job in jobs for name in journal.names(job)}
    strays = sorted(apart.keys() - known)
    faults += [f"the tasks {name} are those of no job" for name in strays]
    faults += _archived(records)
    begun = [job for job in jobs if job.current.status in BEGUN]
    faults += _shared_locks(begun)
    for name, value in records.get(repeats.KIND, {}).items():
        try:
            repeats.decoded(value)
        except UNREADABLE as error:
            faults.append(f"key {name} of requests: {why(error)}")
    last = records.get("queue", {}).get("last", b"0")
    try:
        highest = max((job.id for job in jobs), default=0)
        if whole(last) < highest:
            faults.append(f"the last job's number is {last!r}, and there is {highest}")
    except ValueError as error:
        faults.append(f"the last job's number: {error}")
    return _Part(faults, f"{counted(len(jobs), 'job')} ({len(begun)} under way)")


def _stories(records: _Records) -> _Part:
    """Decode what is told of disks, and look whether it ends where they do."""
    faults: list[str] = []
    last: dict[str, Event] = {}
    found = records.get(stories.KIND, {})
    for name in sorted(found):
        try:
            uuid, _ = stories.parsed(name)
            last[uuid] = stories.decoded(found[name])
        except UNREADABLE as error:
            faults.append(f"the event of a disk, {name}: {why(error)}")
    for uuid, event in last.items():
        if (event.kind == REMOVED) == (uuid in records.get("disk", {})):
            there = "is gone" if event.kind == REMOVED else "goes on"
            faults.append(f"by its story, disk {uuid} {there}: by its record, not so")
    return _Part(
        faults, f"{counted(len(found), 'event')} of {counted(len(last), 'disk')}"
    )


def _feed(records: _Records) -> Iterator[str]:
    for name, value in records.get(feed.KIND, {}).items():
        try:
            feed.decoded(value)
        except UNREADABLE as error:
            yield f"entry {name} of the feed: {why(error)}"


def _audit(records: _Records) -> Iterator[str]:
    """Yield what does not fit in the audit log."""
    found = records.get(audit.KIND, {})
    told = Chain().read(found[name] for name in sorted(found))
    yield from (f"the audit log: {fault}" for fault in told)


def _archived(records: _Records) -> Iterator[str]:
    """Say which archived jobs could not be shown."""
    for name, value in records.get(archive.KIND, {}).items():
        try:
            number, job = archive.parsed(name)[0], archive.unpacked(value)
        except UNREADABLE as error:
            yield f"archived job {name}: {why(error)}"
            continue
        if job.id != number:
            yield f"archived job {name}: it is that of job {job.id}"


def _wrong(job: Job, name: str) -> Iterator[str]:
    if str(job.id) != name:
        yield f"it is that of job {job.id}"
    for op in job.ops:
        if not op.undoing and len(op.results) != op.cursor:
            yield f"it has {len(op.results)} results of {op.cursor} tasks"


def _shared_locks(jobs: list[Job]) -> Iterator[str]:
    """Say which jobs hold one lock that nobody may share."""
    holders: dict[str, int] = {}
    for job in sorted(jobs, key=lambda job: job.id):
        for lock in job.current.locks:
            if lock.shared:
                continue
            other = holders.setdefault(f"{lock.level} {lock.name}", job.id)
            if other != job.id:
                what = f"{lock.level} {lock.name}"
                yield f"jobs {other} and {job.id} both hold the lock of {what}"


def _keys(places: MasterPlaces) -> Iterator[str]:
    try:
        master.authority(places)
    except MoorageError as error:
        yield error.message
