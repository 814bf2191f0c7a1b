# SPDX-License-Identifier: BSD-2-Clause
"""The administrator's commands, on two clusters whose masters and doors are real."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone
from quay import Quay
from snf_manage import refused, types
from towns import Towns

from moorage_cloud.models import Backend, Operation, Server, Volume
from moorage_cloud.verbs import quota
from moorage_cloud.work import Doors, Worker


@pytest.fixture
def towns(database, tmp_path):
    """Return two clusters that no record names yet."""
    assert database
    with Towns(tmp_path).open(tmp_path) as made:
        yield made


@pytest.fixture
def _worker(towns):
    assert towns.towns
    doors = Doors()
    at_work = Worker(doors, listen=1.0)
    at_work.start()
    yield at_work
    at_work.stop()
    doors.close()


def asked(line: str) -> list[dict]:
    return json.loads(types(f"{line} -o json"))


@pytest.mark.usefixtures("_worker")
def test_a_volume_goes_from_cluster_to_cluster_by_commands(towns: Towns):
    for name, town in towns.towns.items():
        door = f"--address localhost --port {town.port} --ca {town.ca}"
        told = types(
            f"backend-add --clustername {name} {door} --user keeper --pass secret "
            "--domain shared"
        )
        assert told == f"Successfully added backend '{name}' with ID {_id(name)}\n"
        types(
            f"server-create --backend-id {name} --instance snf-{name}1 --user anna "
            "--project red"
        )
    types(
        "volume-type-create -n fast --disk-template ext_named --domain shared "
        "--default --specs GNT-EXTP:access=userspace"
    )
    told = types("volume-create --size 1 --name data --user anna --project red")
    volume = Volume.objects.get()
    assert f"Created volume '{volume.pk}' in DB:" in told
    assert f"State of volume {volume.pk} in DB" in told
    first, second = Server.objects.order_by("backend")
    types(f"volume-attach --server {first.pk} {volume.pk} --wait")
    (row,) = asked("volume-list")
    assert (row["status"], row["server_id"]) == ("IN_USE", first.pk)
    told = types(f"volume-inspect {volume.pk}")
    assert f"State of volume {volume.pk} in Ganeti" in told
    assert "instance | snf-a1" in told
    image = towns.san.images / volume.backend_volume_uuid
    with image.open("r+b") as written:
        written.write(b"precious")
    told = types(f"volume-detach {volume.pk} --wait -f")
    assert f"Successfully detached volume <{volume.pk}>" in told
    types(f"volume-attach --server {second.pk} {volume.pk} --wait")
    with image.open("rb") as read:
        assert read.read(8) == b"precious"
    assert towns.towns["a"].disks() == set()
    types(f"volume-detach {volume.pk} --wait -f")
    types(f"volume-remove {volume.pk} --wait -f")
    assert not image.exists()
    assert asked("volume-list") == []
    assert {row["in_use"] for row in asked("quota --project red")} == {0}
    assert types("quota --check") == "The quota is what there is\n"


def _id(name: str) -> int:
    return Backend.objects.get(clustername=name).pk


def test_what_nobody_heard_of_is_found_and_set_right(quay: Quay):
    types("volume-create --size 1 --user anna --project red")
    volume = Volume.objects.get()
    server = quay.servers["a1"]
    types(f"volume-attach --server {server.pk} {volume.pk}")
    quay.settle()
    quay.towns.does(
        "a",
        "OP_INSTANCE_SET_PARAMS",
        instance_name="snf-a1",
        disks=[["remove", volume.backend_volume_uuid, {}]],
        keep_disks=True,
    )
    found = f"Found unsynced disks for server {server.pk}"
    assert found in types("reconcile-servers --detect-all")
    assert quay.again(volume).status == "in-use"
    assert "fixed" in types("reconcile-servers --fix-unsynced-disks")
    assert quay.again(volume).status == "available"
    told = types("reconcile-servers --detect-all")
    assert told == "Everything is as it is on record\n"


@pytest.mark.requirement("S1-30")
def test_a_deletion_that_nobody_heard_of_is_finished(quay: Quay):
    types("volume-create --size 1 --user anna --project red")
    volume = Volume.objects.get()
    types(f"volume-attach --server {quay.servers['a1'].pk} {volume.pk}")
    quay.settle()
    types(f"volume-remove {volume.pk} -f")
    quay.send()
    quay.towns.finish("a")
    far = timezone.now() + timedelta(days=9)
    Operation.objects.filter(ended=None).update(look_at=far)
    quay.look()
    assert quay.again(volume).status == "deleting"
    assert quota.usage("red")["gigabytes"] == 1
    types("reconcile-servers --fix-all")
    assert Volume.objects.get(pk=volume.pk).deleted
    assert quota.usage("red")["gigabytes"] == 0


@pytest.mark.parametrize("feature", ["moorage-keys", "moorage-events"])
def test_a_cluster_that_lacks_what_is_needed_is_refused(database, tmp_path, feature):
    assert database
    with Towns(tmp_path, without=feature).open(tmp_path) as towns:
        town = towns.towns["a"]
        door = f"--address localhost --port {town.port} --ca {town.ca} --user keeper"
        told = refused(f"backend-add --clustername a {door} --pass secret")
        assert told.startswith(f"cluster a lacks '{feature}', which the service needs")
        told = refused(f"backend-add --clustername a {door} --pass wrong")
        assert not Backend.objects.exists()
