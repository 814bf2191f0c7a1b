# SPDX-License-Identifier: BSD-2-Clause
"""``moorage master check``: it says what is wrong with a store, and changes nothing."""

import io
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest
from msgspec import json
from msgspec.structs import replace

from moorage.cli import moorage
from moorage.cli.main import run
from moorage.cli.terminal import Terminal
from moorage.daemons import backup, process
from moorage.daemons.paths import MasterPlaces
from moorage.jobs.job import RUNNING, Job, Op, encode
from moorage.jobs.locks import Lock
from moorage.jobs.queue import Queue
from moorage.model import Change
from moorage.model.change import KIND_OF
from moorage.model.change import encode as encode_object
from moorage.model.objects import Cluster, Entity, Instance, Node, NodeGroup
from moorage.node.certificates.authority import Authority
from moorage.store import ConfigStore, Damaged, SqliteStore, Write, create
from moorage.testing.cluster import ClusterBuilder
from support.damage import damage
from support.sampling import SEED


@pytest.fixture
async def places(tmp_path: Path) -> MasterPlaces:
    """Return a master's directory with a cluster in it, and no master."""
    found = MasterPlaces(tmp_path / "master")
    found.keys.mkdir(parents=True)
    Authority.make(found.keys, "harbour")
    store = SqliteStore(found.store)
    await create(store, _change())
    await store.close()
    await written(found, [(("queue", "last"), b"3")])
    return found


def _change() -> Change:
    return ClusterBuilder().change()


async def written(places: MasterPlaces, writes: Sequence[Write]) -> None:
    """Write records with the right checksums, as a defect would."""
    store = SqliteStore(places.store)
    await store.lead()
    version = (await store.load()).version
    await store.commit(writes, expected=version)
    await store.close()


def edited(places: MasterPlaces, statement: str) -> None:
    with closing(sqlite3.connect(places.store)) as database, database:
        database.execute(statement)


def check(places: MasterPlaces, *more: str) -> tuple[int, list[str]]:
    """Type the command; return its status, and the lines that it prints."""
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(out, err, io.StringIO(), {})
    argv = ["master", "check", "--dir", str(places.root), *more]
    status = run(moorage.PROGRAM, argv, terminal)
    return status, (out.getvalue() + err.getvalue()).splitlines()


def content(places: MasterPlaces) -> dict[str, bytes]:
    return {
        str(path.relative_to(places.root)): path.read_bytes()
        for path in sorted(places.root.rglob("*"))
        if path.is_file()
    }


def put(entity: Entity) -> Write:
    key = KIND_OF[type(entity)], entity.uuid
    return key, json.encode(encode_object(entity))


def job(number: int, *ops: Op) -> Write:
    return ("job", str(number)), encode(Job(id=number, ops=[*ops]))


async def test_a_sound_store(places: MasterPlaces) -> None:
    before = content(places)
    status, (line,) = check(places)
    assert status == 0
    assert line.startswith("No problem found: ")
    assert "0 jobs (0 under way), 0 events of 0 disks, version 2" in line
    assert content(places) == before


async def test_it_looks_while_a_master_works_on_the_store(
    places: MasterPlaces,
) -> None:
    with process.held(places.lock, "twice"):
        store = SqliteStore(places.store)
        await store.lead()
        assert check(places)[0] == 0
        await store.commit([(("queue", "last"), b"9")], expected=2)
        assert "version 3" in check(places)[1][-1]
        await store.close()


async def test_what_a_killed_master_left_in_the_log_is_looked_at(
    places: MasterPlaces,
) -> None:
    store = SqliteStore(places.store)
    await store.lead()
    await store.commit([(("queue", "last"), b"9")], expected=2)
    log = places.store.with_name("state.sqlite-wal")
    kept = places.store.read_bytes(), log.read_bytes()
    await store.close()
    places.store.write_bytes(kept[0])
    log.write_bytes(kept[1])
    before = content(places)
    status, lines = check(places)
    assert (status, "version 3" in lines[-1]) == (0, True), lines
    assert content(places) == before


async def test_a_changed_record(places: MasterPlaces) -> None:
    edited(places, "UPDATE records SET value = X'7B7D' WHERE kind = 'cluster'")
    before = content(places)
    status, lines = check(places)
    assert status == 1
    assert any("the record of cluster" in one for one in lines)
    assert lines[-1].startswith(f"{len(lines) - 1} fault")
    assert all(one.startswith("ERROR: ") for one in lines[:-1])
    assert content(places) == before


async def test_a_file_that_is_none(places: MasterPlaces) -> None:
    places.store.write_bytes(b"no database at all, " * 100)
    status, lines = check(places)
    assert (status, lines[0]) == (
        1,
        "ERROR: it cannot be read: file is not a database",
    )


async def test_a_store_that_is_missing_or_empty(places: MasterPlaces) -> None:
    places.store.write_bytes(b"")
    assert "is empty" in " ".join(check(places)[1])
    places.store.unlink()
    status, lines = check(places)
    assert status == 1
    assert "is not there, but the cluster's keys are" in " ".join(lines)
    assert not places.store.exists()


@pytest.mark.requirement("S3-15")
async def test_objects_that_do_not_fit_together(places: MasterPlaces) -> None:
    """The texts of ``gnt-cluster verify``, where no master starts on such a store."""
    guest = Instance(uuid="i", name="web1", primary_node="gone", disks=("nope",))
    other = replace(guest, uuid="j", name="web2")
    await written(places, [put(guest), put(other)])
    status, lines = check(places)
    assert status == 1
    text = "\n".join(lines)
    assert "instance web1 refers to nope, which is not there" in text
    assert "disk nope is attached to instance web" in text
    said = "cannot be attached to instance web"
    assert said in text
    assert "Instance 'web1' has invalid disk 'nope'" in text
    assert "instance 'web1' has invalid primary node 'gone'" in text
    assert "Instance 'web2' has disk 'nope', which instance 'web1' has too" in text
    coded = check(places, "--error-codes")[1]
    assert (
        "ERROR:ECLUSTERCFG:instance:web1:Instance 'web1' has invalid disk 'nope'"
        in (coded)
    )
    dangling = "the following instances have a non-existing primary-node: web1"
    assert f"ERROR:ECLUSTERDANGLINGINST:instance:web1:{dangling}" in coded


async def test_a_group_that_is_gone_is_told_of_with_all_that_misses_it(
    places: MasterPlaces,
) -> None:
    """One object that is not there hides no other, and is said in Ganeti's words."""
    change = _change()
    (group,) = (one for one in change.put if isinstance(one, NodeGroup))
    await written(places, [(("nodegroup", group.uuid), None)])
    status, lines = check(places)
    assert status == 1
    told = "\n".join(lines)
    for node in (one for one in change.put if isinstance(one, Node)):
        assert f"Node '{node.name}' has invalid group '{group.uuid}'" in told
    coded = check(places, "--error-codes")[1]
    codes = {one.split(":")[1] for one in coded if ":node:node1:" in one}
    assert codes == {"ECLUSTERCFG", "ECLUSTERDANGLINGNODES"}


NESTED = b'{"more": ' + b"[" * 9999
UNREADABLE: dict[str, tuple[Write, str]] = {
    "a serial number": ((("config", "serial_no"), b"many"), "serial number"),
    "a job": ((("job", "3"), b"{"), "the record of job 3"),
    "a job of nothing": (job(3), "it has no operation"),
    "a job without its tasks": (
        job(3, Op(input={}, status="running", cursor=2)),
        "it is at task 2 of 0",
    ),
    "the last job": ((("queue", "last"), b"9" * 5000), "the last job's number"),
    "a key": ((("repeat", "x"), b"{"), "of requests"),
    "an event": ((("story", "d 1"), NESTED), "it is nested too deep"),
    "the audit log": ((("audit", "1"), NESTED), "it is nested too deep"),
    "a second cluster": (
        put(Cluster(uuid="c", cluster_name="second", master_node="node1")),
        "there are 2 records of the cluster, and not one",
    ),
    "a nested object": ((("disk", "d"), NESTED), "it is nested too deep"),
}


@pytest.mark.parametrize("what", UNREADABLE)
async def test_what_no_master_can_read_is_refused_by_all(
    places: MasterPlaces, what: str
) -> None:
    """A traceback would be a defect, after which the master is started again."""
    write, said = UNREADABLE[what]
    await written(places, [write])
    status, lines = check(places)
    assert status == 1
    assert said in "\n".join(lines)
    with pytest.raises(Damaged, match=said):
        await carried_on(places)


async def carried_on(places: MasterPlaces) -> None:
    """Take over a store as a master does at its start."""
    store = SqliteStore(places.store)
    try:
        config_store, records = await ConfigStore.open(store)
        Queue(config_store, time.time, 1.0).load(records)
    finally:
        await store.close()


async def test_a_record_with_a_random_defect(places: MasterPlaces) -> None:
    """What a master refuses, the check finds; neither ends with a traceback."""
    dice = Random(SEED)  # noqa: S311
    more = ClusterBuilder().disk("data").instance("web1", disks=("data",)).change()
    await written(places, [*map(put, more.put), job(1, Op(input={"OP_ID": "X"}))])
    sound = places.store.read_bytes()
    store = SqliteStore(places.store)
    await store.lead()
    records = dict((await store.load()).records)
    await store.close()
    refused = 0
    for _ in range(30):
        places.store.write_bytes(sound)
        key = dice.choice(sorted(records))
        document = {"value": json.decode(records[key])}
        damage(document, dice)
        value = json.encode(document.get("value"))
        await written(places, [(key, value if "value" in document else None)])
        found = check(places)[0]
        with suppress(Damaged):
            await carried_on(places)
            continue
        refused += 1
        assert found == 1, (key, value)
    assert refused


async def test_a_cluster_without_its_node(places: MasterPlaces) -> None:
    group = NodeGroup(uuid="g", name="other")
    cluster = Cluster(uuid="c", cluster_name="second", master_node="gone")
    strays: list[Write] = [(("fruit", "x"), b"1"), (("tasks", "7.0"), b"[]")]
    await written(places, [put(group), put(cluster), *strays])
    text = "\n".join(check(places)[1])
    assert "there are 2 records of the cluster, and not one" in text
    assert "records of kind 'fruit', which nobody knows" in text
    assert "the tasks 7.0 are those of no job" in text


async def test_jobs_that_no_master_could_carry_on(places: MasterPlaces) -> None:
    lock = [Lock("disk", "d", shared=False)]
    op = Op(input={"OP_ID": "X"}, status=RUNNING, locks=lock)
    writes = [
        job(1, op),
        job(2, op),
        job(9, replace(op, cursor=4, locks=[])),
        (("job", "3"), b"{"),
    ]
    await written(places, writes)
    text = "\n".join(check(places)[1])
    assert "jobs 1 and 2 both hold the lock of disk d" in text
    assert "job 9: it is at task 4 of 0" in text
    assert "the record of job 3: " in text
    assert "the last job's number is b'3', and there is 9" in text


async def test_stories_that_do_not_fit_their_disks(places: MasterPlaces) -> None:
    writes = [
        (("story", "d1 00000001"), b'{"kind":"made","changed":{}}'),
        (("story", "d2 00000001"), b'{"kind":"removed","changed":{}}'),
        (("story", "d3 00000001"), b'{"job":"three"}'),
        (("story", "d4"), b"{}"),
    ]
    await written(places, writes)
    text = "\n".join(check(places)[1])
    assert "by its story, disk d1 goes on: by its record, not so" in text
    assert "disk d2" not in text
    assert "the event of a disk, d3 00000001: Expected `int`" in text
    assert "the event of a disk, d4: " in text


async def test_keys_that_cannot_be_read(places: MasterPlaces) -> None:
    (places.keys / "ca.key").write_bytes(b"")
    status, lines = check(places)
    assert (status, "keys" in lines[0]) == (1, True)


async def test_a_master_does_not_start_on_a_damaged_store(
    places: MasterPlaces,
) -> None:
    """It says what is wrong and what to type; the process ends with status 1."""
    edited(places, "UPDATE records SET value = X'7B7D' WHERE kind = 'cluster'")
    said = refusal(places)
    assert "is damaged: the record of cluster" in said
    assert "moorage master check" in said


async def test_a_master_that_cannot_read_its_jobs_is_not_started_again(
    places: MasterPlaces,
) -> None:
    await written(places, [(("job", "3"), b"{")])
    assert "the record of job 3 in the store" in refusal(places)


async def test_a_store_without_a_cluster_is_not_put_in_a_backup(
    places: MasterPlaces, tmp_path: Path
) -> None:
    (cluster,) = (one for one in _change().put if isinstance(one, Cluster))
    await written(places, [(("cluster", cluster.uuid), None)])
    with pytest.raises(Damaged, match="there are 0 records of the cluster"):
        backup.backup(places, tmp_path / "backup")


def refusal(places: MasterPlaces) -> str:
    """Return what a master says that ends for good, under its supervisor."""
    log = places.root / "test.log"
    words = ["master", "run", "--restart", "--dir", str(places.root)]
    pid = process.spawn(words, log)
    assert process.wait_until(lambda: not process.alive(pid), 60)
    said = log.read_text()
    assert "starts again" not in said
    assert "Traceback" not in said
    return said


async def test_what_is_no_store_is_not_put_in_a_backup(
    places: MasterPlaces, tmp_path: Path
) -> None:
    places.store.write_bytes(b"no database, but some words" * 100)
    target = tmp_path / "backup"
    out, err = io.StringIO(), io.StringIO()
    argv = ["backup", "--dir", str(places.root), str(target)]
    terminal = Terminal(out, err, io.StringIO(), {})
    assert run(moorage.PROGRAM, argv, terminal) == 1
    said = err.getvalue()
    assert f"{places.store} cannot be copied: file is not a database" in said
    assert "hint: moorage master check" in said
    assert not target.exists()
