# SPDX-License-Identifier: BSD-2-Clause
"""What the protocol declares is what agents do and what masters rely on."""

from typing import Any

import pytest
from msgspec import convert, json
from msgspec.structs import fields

from moorage.jobs import Run
from moorage.model import Config, Disk, Instance
from moorage.model.apply import apply
from moorage.node.verbs import VERBS
from moorage.ops.guests import guest_tasks
from moorage.protocol import (
    AtMaster,
    Call,
    OnDisk,
    one_disk,
    to_wire,
)
from moorage.protocol.keys import TakeMasterKey, TellMasters, TrustMasters
from moorage.protocol.state import OnCopy
from moorage.testing.cluster import ClusterBuilder

from .every_verb import DISK, EVERY, filled


def test_an_agent_does_all_that_is_declared_and_nothing_else() -> None:
    own = {name for name, kind in EVERY.items() if issubclass(kind, AtMaster)}
    assert EVERY.keys() == VERBS.keys() | own
    assert not own & VERBS.keys()
    assert all(EVERY[name] is kind for name, (kind, _) in VERBS.items())


@pytest.mark.parametrize("name", EVERY)
def test_a_disk_that_a_verb_is_given_fences_it(name: str) -> None:
    call = filled(EVERY[name])
    kinds = {one.name: one.type for one in fields(EVERY[name])}
    taken = [one for one in kinds.values() if one in (Disk, tuple[Disk, ...])]
    assert call.fencing() == (DISK,) * len(taken)
    assert (one_disk(call) is not None) == ("disk" in kinds)
    assert call.touched() >= {one.uuid for one in call.fencing()}
    newer = call.renewed(lambda disk: convert({**vars_of(disk), "epoch": 7}, Disk))
    assert [one.epoch for one in newer.fencing()] == [7] * len(call.fencing())


@pytest.mark.parametrize(
    "name", [name for name, kind in EVERY.items() if issubclass(kind, OnDisk)]
)
def test_what_a_disk_is_asked_is_known_again(name: str) -> None:
    """An operation finds the answer by the question."""
    asked = filled(EVERY[name])
    assert {asked: "yes"}[filled(EVERY[name])] == "yes"


def vars_of(disk: Disk) -> dict[str, Any]:
    return {one.name: getattr(disk, one.name) for one in fields(disk)}


@pytest.mark.parametrize("name", EVERY)
def test_a_journal_and_the_wire_bring_it_back(name: str) -> None:
    call = filled(EVERY[name])
    assert json.decode(json.encode(call), type=Call) == call
    verb, args = json.decode(json.encode(to_wire(call)))
    assert (verb, convert(args, EVERY[name])) == (name, call)


KEYS = (TakeMasterKey, TellMasters, TrustMasters)


@pytest.mark.parametrize("name", EVERY)
def test_what_only_looks_is_waited_for_briefly_and_is_no_step(name: str) -> None:
    kind = EVERY[name]
    # Copies are no job's steps, and keys are small files.
    if kind.limit < 3600 and not issubclass(kind, (OnCopy, *KEYS)):
        assert kind.reads
        assert filled(kind).touched() == frozenset()
        hash(filled(kind))  # an operation asks it once


def test_a_plug_tells_of_the_disk_and_the_guest_and_of_nothing_else() -> None:
    config = apply(Config(), ClusterBuilder().disk("data").instance("web").change())
    web, data = config.instance("web"), config.disk("data")
    task: Run = guest_tasks.plug(web, data, config.node("node1"), 0)
    assert isinstance(web, Instance)
    for call in (task.do, task.undo):
        assert call is not None
        _, args = to_wire(call)
        assert args.keys() <= {"uuid", "name", "hypervisor", "disk", "slot"}
