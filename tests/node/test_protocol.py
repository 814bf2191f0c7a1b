# SPDX-License-Identifier: BSD-2-Clause
"""What the protocol declares is what agents do and what masters rely on."""

from typing import Any

import pytest
from msgspec import convert, json
from msgspec.structs import fields

from moorage.jobs import Run
from moorage.model import Config, Disk, Instance, Nic
from moorage.model.apply import apply
from moorage.model.commits import Head, Write
from moorage.model.export import Dump, Export, Form
from moorage.node.verbs import VERBS
from moorage.ops import guest_tasks
from moorage.protocol import (
    AtMaster,
    Call,
    Verb,
    declared,
    name_of,
    one_disk,
    to_wire,
)
from moorage.protocol.node import Peer
from moorage.protocol.state import OnCopy
from moorage.testing.cluster import ClusterBuilder

DISK = Disk(uuid="d", dev_type="file", logical_id=("file", "/f/d"), size=64, epoch=4)
DUMP = Dump(file="disk0", form=Form.RAW, size=64)
GIVEN: dict[Any, Any] = {
    Disk: DISK,
    tuple[Disk, ...]: (DISK,),
    str: "x",
    tuple[str, ...]: ("x",),
    Dump: DUMP,
    tuple[Dump, ...]: (DUMP,),
    tuple[Peer, ...]: (Peer(name="x", address="192.0.2.1", port=1),),
    Nic: Nic(uuid="n", mac="aa:00:00:00:00:01"),
    Export: Export(name="x", dumps=(DUMP,)),
    Head: Head(1, 1, 1),
    tuple[Write, ...]: ((("node", "x"), b"x"), (("job", "1"), None)),
    dict[str, bytes]: {"ca.pem": b"x"},
    dict[str, str]: {"A": "b"},
    bool: True,
}
EVERY = {name_of(kind): kind for kind in declared()}


def filled(kind: type[Verb[object]]) -> Any:
    """Return a verb with all its required arguments, and every disk that it takes."""
    return kind(
        **{
            one.name: GIVEN.get(one.type, 1)
            for one in fields(kind)
            if one.required or one.type in (Disk, tuple[Disk, ...])
        }
    )


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


def vars_of(disk: Disk) -> dict[str, Any]:
    return {one.name: getattr(disk, one.name) for one in fields(disk)}


@pytest.mark.parametrize("name", EVERY)
def test_a_journal_and_the_wire_bring_it_back(name: str) -> None:
    call = filled(EVERY[name])
    assert json.decode(json.encode(call), type=Call) == call
    verb, args = json.decode(json.encode(to_wire(call)))
    assert (verb, convert(args, EVERY[name])) == (name, call)


@pytest.mark.parametrize("name", EVERY)
def test_what_only_looks_is_waited_for_briefly_and_is_no_step(name: str) -> None:
    kind = EVERY[name]
    if kind.limit < 3600 and not issubclass(kind, OnCopy):  # those are no job's steps
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
