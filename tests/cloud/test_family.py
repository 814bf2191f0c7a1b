# SPDX-License-Identifier: BSD-2-Clause
"""The family of ``snf-manage``: what administrators look at and set right."""

import csv
import json
import sys
from io import StringIO
from pathlib import Path
from subprocess import PIPE, Popen, run

import pytest
from quay import Quay
from snf_manage import refused, types

from moorage_cloud.identity import people
from moorage_cloud.models import Backend, Server, Snapshot, Volume, VolumeType
from moorage_cloud.requests import Take
from moorage_cloud.verbs import quota

requirement = pytest.mark.requirement
OWNER = "--user anna --project red"


def asked(line: str) -> list[dict]:
    return json.loads(types(f"{line} -o json"))


def made(quay: Quay, where: str = "") -> Volume:
    """Return a new volume, which a server has."""
    types(f"volume-create --size 1 {OWNER} --name data")
    volume = Volume.objects.latest("pk")
    if where:
        types(f"volume-attach --server {quay.servers[where].pk} {volume.pk}")
        quay.settle()
    return quay.again(volume)


@requirement("S1-47")
def test_lists_have_the_columns_that_scripts_know(quay: Quay):
    volume = made(quay, "a1")
    columns = "id user.uuid size status source disk_template volume_type server_id"
    (row,) = asked("volume-list")
    assert list(row) == columns.split()
    assert row["status"] == "IN_USE"
    assert row["disk_template"] == "ext_named"
    text = types("volume-list -o csv").splitlines()
    assert next(csv.reader(text)) == columns.split()
    assert types("volume-list").split()[: len(row)] == columns.split()
    fields = "uuid,name,backend"
    (row,) = asked(f"volume-list --fields {fields} --filter-by name=data")
    assert row == {"uuid": str(volume.uuid), "name": "data", "backend": "a"}
    assert asked("volume-list --filter-by status=AVAILABLE") == []
    told = refused("volume-list --fields colour")
    assert told.startswith("there is no column 'colour': id, user.uuid, size")
    (row,) = asked("volume-type-list")
    wanted = {"id", "name", "disk_template", "volumes", "deleted", "specs"}
    assert wanted <= row.keys()
    (row, _) = asked("backend-list")
    assert row["clustername"] == "a"
    assert row["domains"] == ["shared"]
    assert {row["id"] for row in asked("server-list")} == set(
        Server.objects.values_list("pk", flat=True)
    )


@requirement("S1-47")
def test_a_volume_is_shown_and_inspected_as_scripts_know_it(quay: Quay):
    volume = made(quay, "a1")
    told = types(f"volume-show {volume.pk}")
    assert told.splitlines()[0] == f"State of volume {volume.pk} in DB"
    shown = {line.partition(" | ")[0].strip() for line in told.splitlines()[2:] if line}
    assert shown >= {
        *("id", "size", "disk_template", "disk_provider", "server_id", "userid"),
        *(
            "username",
            "project",
            "project_name",
            "shared_to_project",
            "index",
            "name",
            "state",
        ),
        *("delete_on_termination", "deleted", "backendjobid"),
    }
    told = types(f"volume-inspect {volume.pk}")
    inside = told.partition(f"State of volume {volume.pk} in Ganeti\n")[2]
    words = dict(line.split(" | ") for line in inside.splitlines()[1:] if line)
    (disk,) = quay.doors(volume.backend).disks()
    assert {key.strip(): value for key, value in words.items()} == {
        "name": volume.backend_volume_uuid,
        "size": "1024",
        "uuid": disk.uuid,
        "index": "0",
        "instance": "snf-a1",
    }
    other = made(quay)
    told = types(f"volume-inspect {other.pk}")
    assert "volume is not attached to any instance." in told


@requirement("S1-47")
def test_volumes_are_changed_on_record_and_taken_by_force(quay: Quay):
    volume = made(quay, "a1")
    types(f"volume-modify {volume.pk} --name=new --delete-on-termination True")
    found = quay.again(volume)
    assert (found.name, found.delete_on_termination) == ("new", True)
    assert refused(f"volume-modify {volume.pk}") == "say what is to be different"
    assert "by force if need be" in refused(
        f"volume-modify {volume.pk} --status available"
    )
    types(f"volume-modify {volume.pk} --status error")
    told = types(f"volume-force-detach {volume.pk} -f")
    assert told == f"Cluster a is asked to take volume <{volume.pk}> off\n"
    quay.settle()
    assert quay.again(volume).status == "available"
    assert "is not attached" in refused(f"volume-force-detach {volume.pk} -f")


def test_whoever_removes_what_a_server_has_is_told_so(
    quay: Quay, monkeypatch: pytest.MonkeyPatch
):
    volume = made(quay, "a1")
    monkeypatch.setattr("sys.stdin", StringIO("n\n"))
    told = types(f"volume-remove {volume.pk}")
    assert told.startswith(f"Server a1 has volume {volume.pk}. Are you sure ")
    assert quay.again(volume).status == "in-use"


def test_a_volume_is_said_to_be_removed_when_it_is(quay: Quay):
    volume = made(quay, "a1")
    told = types(f"volume-remove {volume.pk} -f")
    assert told == f"Volume {volume.pk} is to be removed\n"
    quay.settle()
    assert quay.again(volume).deleted
    types("volume-create --size 1 --user anna --project red")
    bare = Volume.objects.latest("pk")
    told = types(f"volume-remove {bare.pk} -f")  # it has no data
    assert told == f"Successfully removed volume <{bare.pk}>\n"


def test_a_cluster_that_is_off_is_not_compared_and_has_nothing(quay: Quay):
    volume = made(quay, "a1")
    types("backend-modify a --offline")
    told = types(f"volume-force-detach {volume.pk} -f")
    assert told == f"Volume <{volume.pk}> is taken from its server\n"
    told = types("reconcile-servers --detect-all")
    assert told.startswith("cluster a is said to be off, and is not asked\n")
    types("backend-modify a --offline False")
    assert "which is on record as detached" in types("reconcile-servers --fix-all")


@requirement("S1-47")
def test_snapshots_have_their_commands(quay: Quay):
    volume = made(quay, "a1")
    told = types(f"snapshot-create {volume.pk} --name=before --description=words")
    snapshot = Snapshot.objects.get()
    assert f"Created snapshot '{snapshot.pk}' in DB:" in told
    quay.settle()
    (row,) = asked("snapshot-list")
    assert row == {
        "id": snapshot.pk,
        "user.uuid": "anna",
        "name": "before",
        "volume_id": volume.pk,
        "size": 1,
        "status": "AVAILABLE",
    }
    told = types(f"snapshot-show {snapshot.pk}")
    assert f"snf-snap-{volume.pk}-1" in told
    types(f"snapshot-modify {snapshot.pk} --name=after --status=error")
    snapshot.refresh_from_db()
    assert (snapshot.name, snapshot.status) == ("after", "error")
    assert "say --name" in refused(f"snapshot-modify {snapshot.pk}")
    types(f"snapshot-remove {snapshot.pk} -f")
    quay.settle()
    types(f"snapshot-remove {snapshot.pk} -f --wait")
    assert asked("snapshot-list") == []
    assert [row["id"] for row in asked("snapshot-list --deleted")] == [snapshot.pk]
    assert quota.usage("red")["snapshots"] == 0


@requirement("S1-47")
@pytest.mark.usefixtures("docks")
def test_types_are_changed_and_removed():
    types("volume-type-create -n slow --disk-template ext_named --domain shared")
    types("volume-type-modify slow --name calm --description words --private")
    types("volume-type-modify calm --specs GNT-EXTP:a=1,k=v --default")
    kind = VolumeType.objects.get(name="calm")
    assert (kind.params, kind.is_public) == ({"a": "1"}, False)
    assert list(VolumeType.objects.filter(is_default=True)) == [kind]
    types("volume-type-modify calm --drop-specs k --public")
    assert "GNT-EXTP:a=1" in types("volume-type-show calm")
    before = list(VolumeType.objects.values())
    told = refused("volume-type-modify calm --description x --specs SNF:pool=y")
    assert "is said when a type is made" in told
    assert list(VolumeType.objects.values()) == before
    assert "is the default type" in refused("volume-type-remove calm")
    types("volume-type-modify fast --default")
    types("volume-type-remove calm")
    assert "there is no volume type" in refused("volume-type-show calm")


@requirement("S1-47")
def test_data_that_is_there_becomes_a_volume(quay: Quay):
    image = quay.towns.san.images / "brought"
    image.write_bytes(b"precious")
    line = f"volume-import --size 1 {OWNER}"
    types(f"{line} brought")
    volume = Volume.objects.get()
    assert quota.usage("red")["gigabytes"] == 1
    quay.settle()
    found = quay.again(volume)
    assert (found.status, found.fault) == ("available", "")
    assert "already" in refused(f"{line} brought")
    assert "this service gives" in refused(f"{line} snf-vol-7")
    assert "is no name" in refused(f"{line} ../../etc/passwd")
    types(f"volume-attach --server {quay.servers['b1'].pk} {volume.pk}")
    quay.settle()
    assert quay.again(volume).status == "in-use"
    assert image.read_bytes()[:8] == b"precious"
    types(f"{line} missing")
    quay.settle()
    lost = Volume.objects.get(legacy_backend_volume_uuid="missing")
    assert lost.status == "error"
    assert lost.fault


@requirement("S1-47")
def test_a_cluster_is_asked_anew_and_used_no_more(quay: Quay):
    Backend.objects.update(features=[])
    assert "moorage-disks" in types("backend-update-status --backend-id a")
    assert Backend.objects.get(clustername="a").adopts
    types("backend-update-status")
    volume = made(quay, "a1")
    assert f"has volume {volume.pk}: detach it" in refused("backend-remove a -f")
    types(f"volume-detach {volume.pk} -f")
    quay.settle()
    types(f"server-modify {quay.servers['a2'].pk} --action=stop")
    assert "is asked for something" in refused("backend-remove a -f")
    quay.settle()
    told = types("backend-remove a -f")
    assert told == "Successfully removed backend 'a' and 2 servers of it\n"
    assert [row["clustername"] for row in asked("backend-list")] == ["b"]
    told = refused("backend-remove b -f")
    assert "no other cluster sees the data of volume" in told
    types(f"volume-attach --server {quay.servers['b1'].pk} {volume.pk}")
    quay.settle()
    assert quay.again(volume).status == "in-use"


@requirement("S1-48")
def test_servers_that_are_not_as_on_record_are_found(quay: Quay):
    server = quay.servers["a1"]
    quay.towns.does("a", "OP_INSTANCE_SHUTDOWN", instance_name="snf-a1")
    found = f"Found unsynced server {server.pk}: it is STARTED on record"
    assert found in types("reconcile-servers --detect-unsynced")
    assert "fixed" in types("reconcile-servers --fix-unsynced")
    assert "STOPPED" in types(f"server-show {server.pk}")
    volume = made(quay, "a2")
    other = quay.servers["a2"].pk
    quay.towns.does("a", "OP_INSTANCE_SHUTDOWN", instance_name="snf-a2")
    quay.towns.does(
        "a",
        "OP_INSTANCE_SET_PARAMS",
        instance_name="snf-a2",
        disks=[["remove", volume.backend_volume_uuid, {}]],
        keep_disks=True,
    )
    quay.towns.does("a", "OP_INSTANCE_REMOVE", instance_name="snf-a2")
    told = types("reconcile-servers --fix-stale")
    assert f"Found stale server {other}: cluster a has no instance snf-a2" in told
    assert "set its disks right first" in told
    told = types("reconcile-servers --fix-all")
    assert f"Found unsynced disks for server {other}" in told
    assert "if that is so, --fix-stale takes it from the record" in told
    assert types("reconcile-servers --fix-stale").endswith("  fixed\n")
    assert "there is no server" in refused(f"server-show {other}")
    assert quay.again(volume).status == "available"
    assert types("reconcile-servers") == "Everything is as it is on record\n"


@requirement("S1-48")
def test_snapshots_that_a_cluster_still_has_are_let_go(quay: Quay):
    volume = made(quay, "a1")
    types(f"snapshot-create {volume.pk}")
    quay.settle()
    snapshot = Snapshot.objects.get()
    take = Take(
        name=snapshot.backend_snapshot_name,
        size=1024,
        template="ext",
        provider="named",
        adopt=True,
        epoch=0,
    )
    quay.doors(Backend.objects.get(clustername="a")).submit(take, "key", "test")
    quay.towns.finish("a")
    found = f"Found unsynced snapshot {snapshot.pk}"
    assert found in types("reconcile-servers --detect-all")
    assert "fixed" in types("reconcile-servers --fix-unsynced-snapshots")
    quay.towns.finish("a")
    assert quay.towns.towns["a"].disks() == {volume.backend_volume_uuid}
    assert (quay.towns.san.images / snapshot.backend_snapshot_name).exists()
    assert types("reconcile-servers") == "Everything is as it is on record\n"


def test_a_command_of_the_earlier_system_says_where_it_is_done():
    snf = Path(sys.executable).with_name("snf-manage")
    for word, why in (
        ("flavor-list", "servers are made on their cluster"),
        ("reconcile-resources-cyclades", "quota --check"),
    ):
        done = run([snf, word], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 1
        assert done.stderr.startswith(f"there is no command '{word}' here: {why}")


def test_who_reads_no_further_is_told_nothing():
    snf = Path(sys.executable).with_name("snf-manage")
    with Popen([snf, "help"], stdout=PIPE, stderr=PIPE) as one:
        assert one.stdout
        assert one.stderr
        one.stdout.close()
        assert one.stderr.read() == b""


@pytest.mark.usefixtures("docks")
def test_owners_are_named():
    project = people.add_project("green")
    user = people.add_user("bea", "a word", project)
    types("volume-create --size 1 --user bea --project green")
    volume = Volume.objects.get()
    assert (volume.userid, volume.project) == (user.pk, project.pk)
    shown = types(f"volume-show {volume.pk}")
    assert "username              | bea" in shown
    assert "project_name          | green" in shown
    told = refused("volume-create --size 1 --user bea --project gren")
    assert told == "there is no project 'gren'"
    types("quota --project green --set volumes=3")
    assert quota.limits(project.pk)["volumes"] == 3


@pytest.mark.usefixtures("quay")
def test_a_type_of_a_provider_that_no_cluster_has_is_refused():
    typed = "volume-type-create -n odd --disk-template ext_nmaed --domain shared"
    sentence = "no cluster has a provider 'nmaed'; known: named, plainsan, "
    assert refused(typed).startswith(sentence)
    assert not VolumeType.objects.filter(name="odd").exists()
    Backend.objects.filter(clustername="a").update(offline=True)
    Backend.objects.filter(clustername="b").update(password="wrong")  # noqa: S106
    told = types(typed)  # nobody knows
    assert told.startswith("Backend b does not tell its providers: ")
    assert "Created volume type 'odd'" in told


def test_what_a_script_said_is_told_in_one_line(quay: Quay):
    script = quay.towns.san.provider / "create"
    script.write_text("#!/bin/sh\nprintf 'no room\\n\\tat all\\n' >&2\nexit 3\n")
    types("volume-create --size 1 --user anna --project red")
    volume = Volume.objects.get()
    types(f"volume-attach {volume.pk} --server {quay.servers['a1'].pk}")
    quay.settle()
    shown = types(f"volume-show {volume.pk}").splitlines()
    (fault,) = [line for line in shown if line.startswith("fault ")]
    assert fault.endswith("last lines of output: no room; at all")
