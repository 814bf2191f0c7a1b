# SPDX-License-Identifier: BSD-2-Clause
"""What jobs clusters get, what scripts run, and what becomes of the data."""

import pytest
from quay import Quay
from towns import Towns

from moorage_cloud.models import Server, Volume
from moorage_cloud.verbs import (
    NewVolume,
    attach,
    create,
    delete,
    delete_snapshot,
    detach,
    extend,
    quota,
    take_snapshot,
)


@pytest.fixture
def volume(quay: Quay) -> Volume:
    return create(quay.anna, NewVolume(size=1, volume_type=quay.type))


def put(quay: Quay, volume: Volume, where: str) -> Volume:
    """Attach a volume; it must succeed."""
    attach(quay.anna, volume, quay.servers[where])
    quay.settle()
    found = quay.again(volume)
    assert found.status == "in-use", found.fault
    return found


def take(quay: Quay, volume: Volume) -> Volume:
    """Detach a volume; it must succeed."""
    detach(quay.anna, volume)
    quay.settle()
    found = quay.again(volume)
    assert found.status == "available", found.fault
    return found


def writes(quay: Quay, volume: Volume, text: bytes) -> None:
    """Write as a guest does, to the provider's file."""
    with (quay.towns.san.images / volume.backend_volume_uuid).open("r+b") as image:
        image.write(text)


def reads(quay: Quay, volume: Volume, count: int) -> bytes:
    with (quay.towns.san.images / volume.backend_volume_uuid).open("rb") as image:
        return image.read(count)


@pytest.mark.requirement("S1-07", "S1-10", "S1-11", "S1-12", "S1-13")
def test_the_first_attach_makes_the_data_and_later_ones_find_it(quay, volume):
    san, name = quay.towns.san, f"snf-vol-{volume.pk}"
    assert san.scripts(name) == []
    assert list(san.images.iterdir()) == []
    uuids = set()
    for number, where in enumerate(("a1", "b1", "a2")):
        san.ran.clear()
        put(quay, volume, where)
        made = {env["EXTP_REUSE_DATA"] for script, env in san.ran if script == "create"}
        assert made == {"True" if number else "False"}
        assert {env["VOL_CNAME"] for _, env in san.ran if "VOL_CNAME" in env} == {name}
        uuids |= {env["VOL_UUID"] for _, env in san.ran if "VOL_UUID" in env}
        if number == 0:
            writes(quay, volume, b"precious")
        assert reads(quay, volume, 8) == b"precious"
        take(quay, volume)
    assert len(uuids) > 1  # clusters know it by uuids of their own
    assert [len(quay.towns.jobs(where)) for where in "ab"] == [4, 2]
    disks = [
        change
        for where in "ab"
        for op in quay.towns.jobs(where)
        for change in op["disks"]
    ]
    names = {one[2]["name"] if one[0] == "add" else one[1] for one in disks}
    assert names == {name}


@pytest.mark.requirement("S1-09")
def test_an_attach_is_one_job_in_the_words_of_ganeti(quay, volume):
    """Its body is that of ``PUT /2/instances/NAME/modify``.

    The client sends it by ``POST /2/jobs``, as the operation that this path makes.
    """
    quay.type.specs = {"GNT-EXTP:access": "userspace"}
    quay.type.save()
    put(quay, volume, "a1")
    (op,) = quay.towns.jobs("a")
    wish = {
        "size": 1024,
        "name": f"snf-vol-{volume.pk}",
        "provider": "named",
        "dev_type": "ext",
        "reuse_data": "False",
        "access": "userspace",
    }
    assert (op["OP_ID"], op["instance_name"]) == ("OP_INSTANCE_SET_PARAMS", "snf-a1")
    assert op["disks"] == [["add", "-1", wish]]
    assert (op["depends"], op["hotplug_if_possible"]) == ([], True)
    assert "keep_disks" not in op
    assert any("cloud:anna:req-1" in str(one) for one in op["reason"])


@pytest.mark.requirement("S1-19", "S1-20", "S1-21")
def test_a_detach_removes_the_disk_and_keeps_the_data(quay, volume):
    """The body of ``…/modify``, sent as its operation by ``POST /2/jobs``."""
    put(quay, volume, "a1")
    writes(quay, volume, b"precious")
    san = quay.towns.san
    san.ran.clear()
    take(quay, volume)
    assert "detach" in san.scripts(volume.backend_volume_uuid)
    assert "remove" not in san.scripts(volume.backend_volume_uuid)
    op = quay.towns.jobs("a")[-1]
    assert (op["OP_ID"], op["instance_name"]) == ("OP_INSTANCE_SET_PARAMS", "snf-a1")
    assert op["disks"] == [["remove", volume.backend_volume_uuid, {}]]
    assert op["keep_disks"] is True
    assert reads(quay, volume, 8) == b"precious"
    assert [town.disks() for town in quay.towns.towns.values()] == [set(), set()]


@pytest.mark.requirement("S1-18")
def test_attach_and_detach_cost_no_quota(quay, volume):
    before = quota.usage("red")
    put(quay, volume, "a1")
    assert quota.usage("red") == before
    take(quay, volume)
    assert quota.usage("red") == before


@pytest.mark.requirement("S1-29")
def test_each_way_to_delete_goes_through_a_clusters_door(quay, volume):
    never = create(quay.anna, NewVolume(size=1, volume_type=quay.type))
    delete(quay.anna, never)
    assert (quay.towns.jobs("a"), quay.towns.jobs("b")) == ([], [])
    assert quota.usage("red")["gigabytes"] == 1
    put(quay, volume, "a1")
    delete(quay.anna, volume)
    assert quota.usage("red")["gigabytes"] == 1
    quay.settle()
    assert "keep_disks" not in quay.towns.jobs("a")[-1]
    other = create(quay.anna, NewVolume(size=2, volume_type=quay.type))
    put(quay, other, "b1")
    take(quay, other)
    delete(quay.anna, other)
    assert quay.again(other).place is None
    quay.settle()
    assert list(quay.towns.san.images.iterdir()) == []
    assert set(quota.usage("red").values()) == {0}
    assert [op["OP_ID"] for op in quay.towns.jobs("b")[-2:]] == [
        *("OP_DISK_ADD", "OP_DISK_REMOVE"),
    ]


def test_a_volume_grows_on_a_server_and_without_one(quay, volume):
    put(quay, volume, "a1")
    writes(quay, volume, b"precious")
    extend(quay.anna, volume, 2)
    quay.settle()
    image = quay.towns.san.images / volume.backend_volume_uuid
    assert image.stat().st_size == 2 << 30
    take(quay, volume)
    extend(quay.anna, volume, 3)
    assert quay.again(volume).status == "extending"
    quay.settle()
    found = quay.again(volume)
    assert (found.status, found.size, found.fault) == ("available", 3, "")
    assert image.stat().st_size == 3 << 30
    assert quota.usage("red")["gigabytes"] == 3
    assert quay.towns.towns["a"].disks() == set()
    put(quay, volume, "b1")
    assert reads(quay, volume, 8) == b"precious"


def test_snapshots_are_taken_of_what_is_attached_and_go_on_alone(quay, volume):
    put(quay, volume, "a1")
    writes(quay, volume, b"first")
    images = quay.towns.san.images
    for number, text in ((1, b"first"), (2, b"later")):
        writes(quay, volume, text)
        one = take_snapshot(quay.anna, volume, name=f"number {number}")
        assert one.status == "creating"
        quay.settle()
        one.refresh_from_db()
        assert (one.status, one.fault) == ("available", "")
        name = f"snf-snap-{volume.pk}-{number}"
        assert one.backend_snapshot_name == name
        with (images / name).open("rb") as image:
            assert image.read(5) == text
    assert quota.usage("red")["snapshots"] == 2
    assert quota.usage("red")["gigabytes"] == 3
    assert quay.towns.towns["a"].disks() == {volume.backend_volume_uuid}
    take(quay, volume)
    with pytest.raises(Exception, match="has snapshots"):
        delete(quay.anna, volume)
    delete_snapshot(quay.anna, one)
    quay.settle()
    one.refresh_from_db()
    assert (one.deleted, one.fault) == (True, "")
    assert not (images / name).exists()
    assert quota.usage("red")["gigabytes"] == 2
    assert list(quota.drifts()) == []
    quay.towns.san.broken = {"snapshot"}
    put(quay, volume, "b1")
    bad = take_snapshot(quay.anna, volume)
    quay.settle()
    bad.refresh_from_db()
    assert (bad.status, bad.backend_snapshot_name[-2:]) == ("error", "-3")
    assert quay.again(volume).status == "in-use"


# --- what the earlier system did wrong ------------------------------------------------


@pytest.mark.requirement("S1-F1", "S1-F3")
def test_a_failed_attach_keeps_record_data_and_quota(quay, volume):
    san = quay.towns.san
    san.broken = {"attach"}
    attach(quay.anna, volume, quay.servers["a1"])
    quay.settle()
    found = quay.again(volume)
    assert (found.status, found.initialized) == ("available", False)
    assert "attach" in found.fault
    assert quota.usage("red")["gigabytes"] == 1
    san.broken = set()
    put(quay, volume, "a1")  # the data was never made: it is made now
    writes(quay, volume, b"precious")
    take(quay, volume)
    san.broken = {"attach"}
    attach(quay.anna, volume, quay.servers["b1"])
    quay.settle()
    found = quay.again(volume)
    assert (found.status, found.initialized) == ("available", True)
    assert reads(quay, volume, 8) == b"precious"
    assert quay.towns.towns["b"].disks() == set()
    san.broken = set()
    put(quay, volume, "b1")
    assert reads(quay, volume, 8) == b"precious"


@pytest.mark.requirement("S1-F2", "S1-F11")
def test_a_failed_deletion_keeps_data_and_quota_and_can_be_repeated(quay, volume):
    put(quay, volume, "a1")
    writes(quay, volume, b"precious")
    take(quay, volume)
    for broken in ({"attach", "create"}, {"remove"}):
        quay.towns.san.broken = broken
        delete(quay.anna, volume)
        quay.settle()
        assert quay.again(volume).status == "error_deleting"
        assert reads(quay, volume, 8) == b"precious"
        assert quota.usage("red")["gigabytes"] == 1
    quay.towns.san.broken = set()
    delete(quay.anna, volume)
    quay.settle()
    assert Volume.objects.get(pk=volume.pk).deleted
    assert list(quay.towns.san.images.iterdir()) == []
    assert quota.usage("red")["gigabytes"] == 0


@pytest.mark.requirement("S1-F13")
@pytest.mark.parametrize("wanted", ["available", "in-use"])
def test_a_cancelled_job_is_as_if_nobody_had_asked(quay, volume, wanted):
    if wanted == "in-use":
        put(quay, volume, "a1")
    with quay.towns.held("a", "snf-a1"):
        if wanted == "available":
            attach(quay.anna, volume, quay.servers["a1"])
        else:
            detach(quay.anna, volume)
        quay.send()
        quay.towns.cancel("a")
    quay.settle()
    found = quay.again(volume)
    assert (found.status, "was canceled" in found.fault) == (wanted, True)
    assert (wanted == "in-use") == bool(quay.towns.towns["a"].disks())


# --- clusters that cannot have a disk without an instance -----------------------------


@pytest.fixture
def poor(database, tmp_path):
    """Return a service whose clusters need helpers."""
    assert database
    with Towns(tmp_path, without="moorage-disks").open(tmp_path) as towns:
        made = Quay(towns, features=["moorage-keys"])
        yield made
        made.close()


@pytest.mark.requirement("S1-26", "S1-F4", "S1-F6")
def test_a_stopped_helper_lends_its_cluster(poor: Quay):
    many = [
        create(poor.anna, NewVolume(size=1, volume_type=poor.type)) for _ in range(3)
    ]
    for one in many:
        put(poor, one, "a1")
        take(poor, one)
    with pytest.raises(Exception, match="has a stopped helper server"):
        delete(poor.anna, many[0])
    assert poor.again(many[0]).status == "available"
    Server.objects.filter(name="a2").update(helper=True)
    with pytest.raises(Exception, match="has a stopped helper server"):
        delete(poor.anna, many[0])  # it runs
    poor.towns.does("a", "OP_INSTANCE_SHUTDOWN", instance_name="snf-a2")
    Server.objects.filter(name="a2").update(operstate="STOPPED")
    for one in many:
        delete(poor.anna, one)
        assert poor.again(one).place is None
    assert quota.usage("red")["gigabytes"] == 3
    poor.settle()
    assert Volume.objects.filter(deleted=True).count() == 3
    assert quota.usage("red")["gigabytes"] == 0
    assert list(poor.towns.san.images.iterdir()) == []
    modified = [op for op in poor.towns.jobs("a") if "disks" in op]
    lent = [op for op in modified if op["instance_name"] == "snf-a2"]
    assert [op["disks"][0][0] for op in lent] == ["add", "remove"] * 3
    assert {op["disks"][0][2].get("reuse_data") for op in lent[::2]} == {"True"}
    assert not any(op.get("keep_disks") for op in lent)
