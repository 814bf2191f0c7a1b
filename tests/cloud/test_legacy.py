# SPDX-License-Identifier: BSD-2-Clause
"""Volumes of an earlier version keep the names that their storage knows."""

import pytest
from docks import Docks
from quay import Quay
from snf_manage import refused, types

from moorage_cloud.clusters import Disk
from moorage_cloud.models import Backend, Server, Volume
from moorage_cloud.verbs import NewVolume, attach, create, delete, detach, quota

requirement = pytest.mark.requirement
MIGRATE = "legacy-names-migrate"


def disk(quay: Quay) -> Disk:
    """Return the only disk of server a1, as its cluster has it."""
    server = quay.servers["a1"]
    known = quay.doors(server.backend).disks()
    (found,) = [one for one in known if one.instance == server.instance]
    return found


@pytest.fixture
def legacy(quay: Quay) -> Volume:
    """Return a volume whose image is called as its cluster calls it."""
    made = create(quay.anna, NewVolume(size=1, volume_type=quay.type))
    attach(quay.anna, made, quay.servers["a1"])
    quay.settle()
    name = disk(quay).volume
    for one in quay.towns.san.images.iterdir():
        one.rename(one.with_name(one.name.replace(made.backend_volume_uuid, name)))
    with (quay.towns.san.images / name).open("r+b") as image:
        image.write(b"precious")
    return quay.again(made)


@requirement("S1-40", "S1-43")
def test_a_volume_keeps_the_name_that_its_storage_knows(quay: Quay, legacy: Volume):
    name = disk(quay).volume
    assert name.endswith(".ext.disk0")
    told = types(f"{MIGRATE} --debug")
    server = quay.servers["a1"]
    assert f"(1/4) Server {server.pk} on a: 1 volume\n" in told
    assert f"'snf-vol-{legacy.pk}' becomes '{name}'" in told
    assert quay.again(legacy).legacy_backend_volume_uuid == name
    assert disk(quay).name == name
    detach(quay.anna, legacy)
    quay.settle()
    attach(quay.anna, legacy, quay.servers["b1"])
    quay.settle()
    found = quay.again(legacy)
    assert found.status == "in-use", found.fault
    with (quay.towns.san.images / name).open("rb") as image:
        assert image.read(8) == b"precious"
    detach(quay.anna, legacy)
    quay.settle()
    delete(quay.anna, legacy)
    quay.settle()
    assert list(quay.towns.san.images.iterdir()) == []
    assert quota.usage("red")["gigabytes"] == 0
    changes = [op for town in "ab" for op in quay.towns.jobs(town)][2:]
    assert {_named(op) for op in changes} == {name}


def _named(op: dict) -> str:
    """Return the name that a job has for the volume."""
    if "disks" not in op:
        return op.get("name") or op["disk"]
    action, ident, params = op["disks"][0]
    return params["name"] if action == "add" else ident


@requirement("S1-40", "S1-41")
def test_once_for_a_server_and_back(quay: Quay, legacy: Volume):
    old = f"snf-vol-{legacy.pk}"
    types(MIGRATE)
    jobs = len(quay.towns.jobs("a"))
    server = quay.servers["a1"]
    told = types(MIGRATE)
    assert f"Server {server.pk} has its names already: skipped\n" in told
    assert len(quay.towns.jobs("a")) == jobs
    assert "1 volume\n" in types(f"{MIGRATE} --restore")
    assert quay.again(legacy).legacy_backend_volume_uuid is None
    assert disk(quay).name == old
    assert not Server.objects.filter(names_taken=True).exists()
    told = types(f"{MIGRATE} --restore")
    assert f"Server {server.pk} has no names to take back: skipped" in told
    types(MIGRATE)
    assert quay.again(legacy).legacy_backend_volume_uuid == disk(quay).name


@requirement("S1-41")
def test_a_name_without_which_data_is_not_found_stays(quay: Quay, legacy: Volume):
    types(MIGRATE)
    for _ in range(2):
        detach(quay.anna, legacy)
        quay.settle()
        attach(quay.anna, legacy, quay.servers["a1"])
        quay.settle()
    assert "which cannot be taken back" in refused(f"{MIGRATE} --restore")
    name = quay.again(legacy).legacy_backend_volume_uuid
    assert disk(quay).name == name


@requirement("S1-40")
@pytest.mark.parametrize("option", ["--dry-run", "--ganeti-dry-run"])
def test_a_trial_changes_nothing(quay: Quay, legacy: Volume, option: str):
    told = types(f"{MIGRATE} {option}")
    assert "1 volume\n" in told
    assert told.endswith("Nothing was changed\n")
    assert quay.again(legacy).legacy_backend_volume_uuid is None
    assert disk(quay).name == f"snf-vol-{legacy.pk}"
    tried = [op for op in quay.towns.jobs("a") if op.get("dry_run")]
    assert len(tried) == (option == "--ganeti-dry-run")
    assert not Server.objects.filter(names_taken=True).exists()


@requirement("S1-40")
def test_it_stops_where_a_cluster_is_away(quay: Quay, legacy: Volume):
    Backend.objects.filter(clustername="b").update(offline=True)
    assert refused(MIGRATE) == "cluster b is off: nothing was changed"
    Backend.objects.filter(clustername="b").update(offline=False, port=1)
    assert refused(MIGRATE)
    assert quay.again(legacy).legacy_backend_volume_uuid is None
    types(f"{MIGRATE} --backend-id a")
    assert quay.again(legacy).legacy_backend_volume_uuid is not None


def test_a_name_that_is_taken_is_refused_and_stays(quay: Quay, legacy: Volume):
    other = create(quay.anna, NewVolume(size=1, volume_type=quay.type))
    attach(quay.anna, other, quay.servers["a2"])
    quay.settle()
    taken = {"name": disk(quay).volume}
    quay.towns.does(
        "a",
        "OP_INSTANCE_SET_PARAMS",
        instance_name="snf-a2",
        disks=[["modify", "0", taken]],
    )
    assert taken["name"] in refused(MIGRATE)
    assert quay.again(legacy).legacy_backend_volume_uuid is None
    assert not Server.objects.filter(names_taken=True).exists()


@requirement("S1-41")
def test_it_waits_for_what_is_under_way(quay: Quay, legacy: Volume):
    detach(quay.anna, legacy)
    assert refused(MIGRATE).startswith("verbs are under way: stop the API")
    quay.settle()
    assert "0 volumes" in types(MIGRATE)


@requirement("S1-40")
def test_a_disk_without_a_name_is_found_by_its_slot(quay: Quay, legacy: Volume):
    name = disk(quay).volume
    quay.towns.does(
        "a",
        "OP_INSTANCE_SET_PARAMS",
        instance_name="snf-a1",
        disks=[["modify", "0", {"name": "none"}]],
    )
    legacy.attachment.index = 0
    legacy.attachment.save()
    types(MIGRATE)
    assert quay.again(legacy).legacy_backend_volume_uuid == name
    assert disk(quay).name == name


@requirement("S1-42")
def test_what_is_told_of_a_legacy_name_is_told_of_its_volume(
    quay: Quay, legacy: Volume
):
    types(MIGRATE)
    name = quay.again(legacy).backend_volume_uuid
    quay.towns.does(
        "a",
        "OP_INSTANCE_SET_PARAMS",
        instance_name="snf-a1",
        disks=[["remove", name, {}]],
        keep_disks=True,
    )
    assert f"volume {name} is on record there" in types("reconcile-servers")
    types("reconcile-servers --fix-all")
    assert quay.again(legacy).status == "available"


@requirement("S1-42")
def test_an_event_of_a_legacy_name_reaches_its_volume(docks: Docks):
    made = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
    Volume.objects.update(legacy_backend_volume_uuid="c0de.ext.disk0")
    attach(docks.anna, made, docks.servers["a1"])
    docks.send()
    docks.piers["a"].run()
    assert docks.again(made).status == "attaching"
    docks.listen()
    assert docks.again(made).status == "in-use"
    assert docks.piers["a"].known.keys() == {"c0de.ext.disk0"}
