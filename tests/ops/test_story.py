# SPDX-License-Identifier: BSD-2-Clause
"""Stories of disks: what the store tells of each, in the commit that made it happen."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.errors import Ambiguous, NotFound
from moorage.model import Change, Disk, successor
from moorage.model.story import Event, Occasion
from moorage.store import ConfigStore, MemoryStore, SqliteStore, create, stories
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.units import Mib

WHY = [["gnt:user", "more room", 1], ["gnt:client:gnt-disk", "grow", 2]]
NEW = {"disk_template": "ext", "provider": "san", "size": 64}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimCluster]:
    builder = ClusterBuilder().instance("web1").instance("web2", "node2")
    cluster = await SimCluster.start(tmp_path / "nodes", builder)
    yield cluster
    await cluster.stop()


async def told(cluster: SimCluster, ref: str) -> list[Event]:
    uuid = cluster.config_store.stories.find(cluster.config, ref)
    return await cluster.config_store.story(uuid)


async def lived(cluster: SimCluster) -> str:
    """Let a disk live from its birth to its end; return its uuid."""
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web1")
    uuid: str = await cluster.run("OP_DISK_ADD", name="data1", node="node1", **NEW)
    await cluster.run("OP_DISK_ATTACH", disk="data1", instance_name="web1")
    await cluster.run("OP_INSTANCE_FAILOVER", instance_name="web1", target_node="node3")
    await cluster.run("OP_DISK_DETACH", disk="data1")
    await cluster.run("OP_DISK_GROW", disk="data1", amount=64, reason=WHY)
    await cluster.run("OP_DISK_RENAME", disk="data1", new_name="old")
    await cluster.run("OP_DISK_REMOVE", disk="old")
    return uuid


async def test_a_story_tells_all_that_happened_and_outlives_jobs_and_disk(
    cluster: SimCluster,
) -> None:
    uuid = await lived(cluster)
    for number in list(cluster.engine.jobs):
        await cluster.engine.queue.archive(number)
    await cluster.stop()
    await cluster.boot()
    events = await told(cluster, uuid)
    assert [one.op for one in events] == [
        "DISK_ADD(data1)",
        "DISK_ATTACH(data1)",
        "INSTANCE_FAILOVER(web1)",
        "DISK_DETACH(data1)",
        "DISK_GROW(data1)",
        "DISK_RENAME(data1)",
        "DISK_REMOVE(old)",
    ]
    assert [one.job for one in events] == [2, 3, 4, 5, 6, 7, 8]
    made, attached, failed_over, detached, grown, renamed, removed = events
    assert made.kind == "made"
    assert made.changed["last_node"] == (None, "node1")
    assert made.changed["size"] == (None, 64)
    assert attached.changed["instance"] == (None, "web1")
    assert attached.changed["epoch"] == (0, 1)
    assert failed_over.changed["epoch"] == (1, 2)
    assert detached.changed["instance"] == ("web1", None)
    assert detached.changed["last_node"] == ("node1", "node3")
    assert (grown.changed, grown.words) == ({"size": (64, 128)}, "more room")
    assert renamed.changed["name"] == ("data1", "old")
    assert removed.kind == "removed"
    assert all(one.time == 1000.0 for one in events)
    assert await told(cluster, "old") == events


async def test_what_is_taken_back_is_told_too(cluster: SimCluster) -> None:
    await cluster.run("OP_DISK_ADD", name="data1", **NEW)
    await cluster.run("OP_INSTANCE_STARTUP", instance_name="web2")
    machine = cluster.nodes.nodes["node2"].machine
    machine.refuse = lambda _node, command: command.argv[0].endswith("/attach")
    await cluster.refused("OP_DISK_ATTACH", disk="data1", instance_name="web2")
    _, given, taken = await told(cluster, "data1")
    assert given.changed["instance"] == (None, "web2")
    assert taken.what == "undo 'give disk data1 to web2, epoch 1'"
    assert taken.changed == {"instance": ("web2", None)}


async def test_a_quarantine_and_its_end_are_told(cluster: SimCluster) -> None:
    await cluster.run("OP_DISK_ADD", name="data1", **NEW)
    for node in cluster.nodes.nodes.values():
        node.machine.refuse = lambda _node, command: command.argv[0].endswith("/remove")
    await cluster.refused("OP_DISK_REMOVE", disk="data1")
    await cluster.run("OP_DISK_SET_PARAMS", disk="data1", lift_quarantine=True)
    _, quarantined, lifted = await told(cluster, "data1")
    (_, why) = quarantined.changed["quarantine"]
    assert why.startswith("job 2: remove disk data1")
    assert quarantined.what == "quarantine"
    assert lifted.changed["quarantine"] == (why, None)


async def test_an_instance_that_goes_is_told_by_its_disks(cluster: SimCluster) -> None:
    new = {"size": 64, "provider": "san", "name": "root9"}
    fields: dict[str, Any] = {"disk_template": "ext", "disks": [new], "start": False}
    await cluster.run(
        "OP_INSTANCE_CREATE", instance_name="web9", pnode="node1", **fields
    )
    await cluster.run("OP_INSTANCE_REMOVE", instance_name="web9")
    owners = [
        one.changed["instance"]
        for one in await told(cluster, "root9")
        if "instance" in one.changed
    ]
    assert owners == [(None, "web9"), ("web9", None)]


async def test_names_of_disks_that_are_gone(cluster: SimCluster) -> None:
    found = []
    for _ in range(2):
        found.append(await cluster.run("OP_DISK_ADD", name="data1", **NEW))
        await cluster.run("OP_DISK_REMOVE", disk="data1")
    with pytest.raises(Ambiguous) as caught:
        await told(cluster, "data1")
    assert caught.value.facts["uuids"] == found
    with pytest.raises(NotFound, match="'data2' is not known, and was not"):
        await told(cluster, "data2")
    living = await cluster.run("OP_DISK_ADD", name="data1", **NEW)
    assert cluster.config_store.stories.find(cluster.config, "data1") == living


# -- the store -------------------------------------------------------------------------


def disk(uuid: str = "d1", **more: Any) -> Disk:
    return Disk(
        uuid=uuid,
        name=uuid,
        dev_type="ext",
        size=Mib(1),
        logical_id=("p", uuid),
        **more,
    )


async def opened(store: MemoryStore | SqliteStore) -> ConfigStore:
    config_store, _ = await ConfigStore.open(store)
    return config_store


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_an_old_store_without_stories_is_taken(tmp_path: Path, kind: str) -> None:
    """What came before is not made up; what comes is told."""
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "s")
    await create(store, Change((*ClusterBuilder().change().put, disk())))
    before = await store.read(stories.KIND, "")
    version = (await store.load()).version
    drop = [((stories.KIND, name), None) for name in before]
    await store.commit(drop, expected=version)
    config_store = await opened(store)
    assert await config_store.story("d1") == []
    change = Change((successor(config_store.config.disk("d1"), 5.0, size=Mib(2)),))
    await config_store.commit(change, occasion=Occasion(time=7.0, job=3))
    (event,) = await config_store.story("d1")
    assert (event.kind, event.changed, event.time) == ("changed", {"size": (1, 2)}, 7.0)
    await config_store.close()


async def test_a_story_has_an_end_of_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stories, "LONGEST", 5)
    store = MemoryStore()
    await create(store, Change((*ClusterBuilder().change().put, disk())))
    config_store = await opened(store)
    for size in range(2, 12):
        now = config_store.config.disk("d1")
        await config_store.commit(Change((successor(now, 5.0, size=Mib(size)),)))
        if size == 6:
            config_store = await opened(store)
    events = await config_store.story("d1")
    assert [one.kind for one in events] == ["made"] + ["changed"] * 4
    assert [one.changed["size"][1] for one in events] == [1, 8, 9, 10, 11]
    assert config_store.stories.left_out("d1") == 6
    assert (await opened(store)).stories.left_out("d1") == 6


async def test_of_disks_that_are_gone_the_newest_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stories, "GONE", 2)
    store = MemoryStore()
    await create(store, ClusterBuilder().change())
    config_store = await opened(store)
    for number in range(5):
        one = disk(f"d{number}")
        await config_store.commit(Change((one,)), occasion=Occasion(time=number))
        await config_store.commit(Change((), (one,)), occasion=Occasion(time=number))
    told_of = {name.split()[0] for name in await store.read(stories.KIND, "")}
    assert told_of == {"d3", "d4"}
    again = await opened(store)
    assert list(again.stories.ended) == list(config_store.stories.ended) == ["d3", "d4"]
    assert again.stories.former(("p", "d4")) == "d4"
    assert config_store.stories.former(("p", "d0")) == ""


async def test_a_volume_is_of_the_disk_that_had_it_last() -> None:
    """For a new master, too, whatever the uuids of the disks are."""
    store = MemoryStore()
    await create(store, ClusterBuilder().change())
    config_store = await opened(store)
    for time, uuid in enumerate(("z", "b")):
        one = replace(disk(uuid), logical_id=("p", "lun"))
        for change in (Change((one,)), Change((), (one,))):
            await config_store.commit(change, occasion=Occasion(time=time))
    for before, after in (("a", "y"), ("x", "c")):  # as a conversion does
        one = replace(disk(before), logical_id=("p", before))
        await config_store.commit(Change((one,)), occasion=Occasion(time=5.0))
        other = replace(disk(after), name=None, logical_id=one.logical_id)
        fresh = {"logical_id": ("p", f"new-{before}")}
        change = Change((successor(one, 6.0, **fresh), other))
        await config_store.commit(change, occasion=Occasion(time=6.0))
    for known in (config_store.stories, (await opened(store)).stories):
        assert known.former(("p", "lun")) == "b"
        assert [known.former(("p", one)) for one in "ax"] == ["y", "c"]
        assert [known.former(("p", f"new-{one}")) for one in "ax"] == ["a", "x"]


async def test_a_change_that_is_refused_is_told_nowhere() -> None:
    store = MemoryStore()
    await create(store, Change((*ClusterBuilder().change().put, disk())))
    config_store = await opened(store)
    stale = disk(serial_no=7)
    with pytest.raises(Exception, match="changed meanwhile"):
        await config_store.commit(Change((stale,)))
    assert len(await config_store.story("d1")) == 1


async def test_reading_a_story_finds_damage(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s")
    await create(store, Change((*ClusterBuilder().change().put, disk())))
    database = store._open
    await store._run(
        lambda: database().execute(
            "UPDATE records SET value = '{}' WHERE kind = 'story' AND name LIKE 'd1 %'"
        )
    )
    with pytest.raises(Exception, match="is not what was written"):
        await store.read("story", "d1 ")
    await store.close()
