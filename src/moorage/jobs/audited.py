# SPDX-License-Identifier: BSD-2-Clause
"""What the audit log tells of jobs: who asked for what, and how it ended."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import json

from moorage.model.audit import END, SUBMIT, Deed, deed
from moorage.model.events import ADDED, Event

from .job import FINISHED, Job, Opcodes
from .secrets import shown

LONGEST = 2000
"""Bytes of what was asked for, as JSON; of what is longer, a checksum is kept."""


def deeds(jobs: Iterable[Job], told: Iterable[Event], now: float) -> Iterator[Deed]:
    """Yield what is to be told of jobs that are about to be stored.

    Parameters
    ----------
    told
        What the feed tells of them.
    now
        In seconds.
    """
    known = {job.id: job for job in jobs if not job.looks}
    for event in told:
        job = known.get(event.job)
        if job is None:
            continue
        about = event.summary[:LONGEST]
        if event.event == ADDED:
            asked = _asked([op.input for op in job.ops])
            yield deed(job.caller, now, SUBMIT, job=job.id, about=about, **asked)
        elif event.status in FINISHED:
            how = event.status
            yield deed(job.caller, now, END, job=job.id, about=about, status=how)


def _asked(opcodes: Opcodes) -> dict[str, Any]:
    """Return what was asked for, as an entry has it."""
    ops = [_without_reason(shown(one)) for one in opcodes]
    text = json.encode(ops, order="deterministic")
    if len(text) <= LONGEST:
        return {"ops": tuple(ops)}
    kinds = dict.fromkeys(str(one.get("OP_ID")) for one in ops)
    digest = hashlib.sha256(text).hexdigest()
    return {"ops": tuple({"OP_ID": one} for one in kinds), "digest": digest}


def _without_reason(opcode: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in opcode.items() if name != "reason"}
