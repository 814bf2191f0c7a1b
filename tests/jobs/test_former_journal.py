# SPDX-License-Identifier: BSD-2-Clause
"""The store of a former version, in which verbs had their arguments below ``args``.

``former_journal.json`` is what such a master left when it was killed while it plugged
disk *data* into guest *web*, each record as kind, name and value.
"""

from pathlib import Path

from msgspec import json

from moorage.jobs import Run
from moorage.jobs.record import Job, decode, encode
from moorage.model import Node
from moorage.protocol import AttachDisk, GetFacts, PlugDisk, StartGuest, Verb
from moorage.store import MemoryStore
from moorage.testing.cluster import SimCluster

FORMER = Path(__file__).with_name("former_journal.json")


def store() -> MemoryStore:
    found = MemoryStore()
    for kind, name, value in json.decode(FORMER.read_bytes()):
        found.records[kind, name] = json.encode(value)
    return found


def done(job: Job) -> list[Verb[object]]:
    return [one.do for op in job.ops for one in op.begun() if isinstance(one, Run)]


def test_it_says_the_same_as_ever() -> None:
    told = store().records
    started, attached = (decode(told["job", number]) for number in ("1", "2"))
    (start,) = done(started)
    assert isinstance(start, StartGuest)
    assert (start.uuid, start.memory, start.vcpus) == ("web", 128, 1)
    attach, plug = done(attached)
    assert isinstance(attach, AttachDisk)
    assert (attach.disk.uuid, attach.opened) == ("data", "exclusive")
    assert attach.settings == {
        "file_storage_dir": "/local",
        "shared_file_storage_dir": "/shared",
    }
    assert isinstance(plug, PlugDisk)
    assert (plug.uuid, plug.disk.epoch, plug.slot) == ("web", 1, 0)


def test_it_is_written_anew_in_the_form_of_today() -> None:
    for (kind, _), data in store().records.items():
        if kind == "job":
            job = decode(data)
            assert b'"args"' not in encode(job)
            assert decode(encode(job)) == job


async def test_what_was_interrupted_is_taken_back(tmp_path: Path) -> None:
    cluster = SimCluster(tmp_path, store=store())
    for name in ("node1", "node2", "node3"):
        cluster.nodes.add(name)
    volume = {"size": 1024, "provider": "san", "data": ""}
    cluster.nodes.san.volumes["vol-data"] = volume
    node = Node(uuid="node1", name="node1", primary_ip="", secondary_ip="", group="g")
    for number in ("1", "2"):
        for call in done(decode(cluster.store.records["job", number])):
            await cluster.nodes.call(node, call, 1, lambda *_: None)
    facts = await cluster.nodes.call(node, GetFacts(), 1, lambda *_: None)
    assert [(one.uuid, one.disks) for one in facts.guests] == [("web", ("data",))]

    await cluster.boot()
    job = await cluster.finished(2)
    assert job.status == "error"
    assert job.ops[0].error
    assert "the master was stopped in the middle" in job.ops[0].error["message"]
    assert cluster.config.instance("web").disks == ()
    facts = await cluster.nodes.call(node, GetFacts(), 2, lambda *_: None)
    assert [(one.uuid, one.disks) for one in facts.guests] == [("web", ())]
    assert facts.held == ()
    await cluster.stop()
