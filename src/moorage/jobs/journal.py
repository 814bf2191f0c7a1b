# SPDX-License-Identifier: BSD-2-Clause
"""The journal: how jobs lie in the store.

A job's record is written at every step. Nine tenths of a job are its tasks, which no
step changes: those of each operation lie in a record of their own, written once.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from functools import partial

from msgspec.structs import replace

from moorage.model.commits import Key, Write
from moorage.store import believed

from .job import BEGUN, Job, decode, decode_tasks, encode, encode_tasks
from .task import Task

JOB, TASKS = "job", "tasks"
"""The kinds of the records."""

Records = Mapping[str, Mapping[str, bytes]]
"""The store's records that are no configuration, by kind and name."""


def names(job: Job) -> list[str]:
    """Return the names of the records in which the tasks of its operations may lie."""
    return [f"{job.id}.{place}" for place in range(len(job.ops))]


def read(records: Records) -> list[Job]:
    """Return the jobs in a store, in the order of their numbers.

    Raises
    ------
    Damaged
        If a record is none of ours.
    """
    found = [
        believed(f"the record of job {name}", partial(decode, one))
        for name, one in records.get(JOB, {}).items()
    ]
    apart = records.get(TASKS, {})
    for job in found:
        believed(f"the record of job {job.id}'s tasks", partial(lay, job, apart))
    return sorted(found, key=lambda job: job.id)


def lay(job: Job, apart: Mapping[str, bytes]) -> None:
    """Give the operations of a job the tasks that lie apart from it.

    A former version left all in the job's own record.

    Raises
    ------
    ValueError
        If they are none, or lack those that were done: the operation would be taken
        for one at its end.
    """
    for name, op in zip(names(job), job.ops, strict=True):
        if name in apart:
            op.tasks = decode_tasks(apart[name])
        if op.status in BEGUN and not -1 <= op.cursor <= len(op.tasks):
            raise ValueError(f"it is at task {op.cursor} of {len(op.tasks)}")


class Journal:
    """What is written of jobs at each step, and what need not be written again."""

    def __init__(self) -> None:
        self._written: dict[str, list[Task]] = {}

    def load(self, jobs: Iterable[Job], records: Records) -> None:
        """Take note of what a store holds of the jobs that were read there."""
        for job in jobs:
            self._note(job, records.get(TASKS, {}))

    def writes(self, job: Job) -> Iterator[Write]:
        """Yield what the store lacks of a job; nothing of it is known as written."""
        bare = [replace(op, tasks=[]) for op in job.ops]
        yield (JOB, str(job.id)), encode(replace(job, ops=bare))
        for name, op in zip(names(job), job.ops, strict=True):
            if op.tasks and self._written.get(name) is not op.tasks:
                yield (TASKS, name), encode_tasks(op.tasks)

    def note(self, job: Job) -> None:
        """Take note that all of a job was written, as it is."""
        self._note(job, names(job))

    def _note(self, job: Job, there: Container[str]) -> None:
        pairs = zip(names(job), job.ops, strict=True)
        self._written |= {name: op.tasks for name, op in pairs if name in there}

    def drops(self, job: Job) -> Iterator[Write]:
        """Yield what removes a job from the store."""
        keys: list[Key] = [(JOB, str(job.id))]
        keys += [(TASKS, one) for one in names(job) if self._written.get(one)]
        yield from ((key, None) for key in keys)

    def forget(self, job: Job) -> None:
        """Forget a job that is gone."""
        for name in names(job):
            self._written.pop(name, None)
