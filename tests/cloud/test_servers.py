# SPDX-License-Identifier: BSD-2-Clause
"""The administrator's commands for servers and helpers; clusters are real."""

import json
import re

import pytest
from quay import Quay
from snf_manage import refused, types
from towns import Towns

from moorage_cloud.errors import NotFound, Unavailable
from moorage_cloud.identity import people
from moorage_cloud.models import Backend, Operation, Server, Volume
from moorage_cloud.verbs import (
    NewVolume,
    attach,
    create,
    delete,
    detach,
    quota,
    rename,
    set_power,
)

requirement = pytest.mark.requirement


@pytest.fixture
def poor(database, tmp_path):
    """Return a service whose clusters cannot have a disk without an instance."""
    assert database
    with Towns(tmp_path, without="moorage-disks").open(tmp_path) as towns:
        made = Quay(towns, features=["moorage-keys"])
        yield made
        made.close()


def helpers() -> list[Server]:
    return list(Server.objects.filter(helper=True, deleted=False))


def left(quay: Quay) -> Volume:
    """Return a volume that has data, and is detached."""
    made = create(quay.anna, NewVolume(size=1, volume_type=quay.type))
    attach(quay.anna, made, quay.servers["a1"])
    quay.settle()
    detach(quay.anna, made)
    quay.settle()
    return quay.again(made)


@requirement("S1-33")
def test_a_server_is_stopped_and_started(quay: Quay):
    server = quay.servers["a1"]
    for action, state, status in (
        ("stop", "STOPPED", "ADMIN_down"),
        ("start", "STARTED", "running"),
    ):
        types(f"server-modify {server.pk} --action={action}")
        types(f"server-modify {server.pk} --action={action}")  # it is under way
        quay.settle()
        (row,) = json.loads(types(f"server-list -o json --filter-by id={server.pk}"))
        assert (row["status"], row["action"]) == (state, None)
        assert status in types(f"server-inspect {server.pk}")
    assert [one["OP_ID"] for one in quay.towns.jobs("a")] == [
        "OP_INSTANCE_SHUTDOWN",
        "OP_INSTANCE_STARTUP",
    ]


def test_what_else_is_under_way_goes_first(quay: Quay):
    server = quay.servers["a1"]
    types(f"server-modify {server.pk} --action=stop")
    for other in ("server-modify --action=start", "server-remove -f"):
        assert "pending action: stop" in refused(f"{other} {server.pk}")
    Backend.objects.update(offline=True)
    other = quay.servers["a2"]
    assert refused(f"server-modify {other.pk} --action=stop") == (
        f"the cluster of server {other.uuid} is off"
    )


def test_a_server_that_went_meanwhile_is_asked_for_nothing(quay: Quay):
    """Somebody removes it between the reading of a request and its deed."""
    server = quay.servers["a1"]
    types(f"server-remove -f {server.pk}")
    quay.settle()
    asked = Operation.objects.count()
    with pytest.raises(NotFound, match="could not be found"):
        set_power(quay.anna, server, Server.Action.START)
    with pytest.raises(NotFound, match="could not be found"):
        rename(server, "back")
    assert Operation.objects.count() == asked


def test_a_server_is_inspected_on_record_and_on_its_cluster(quay: Quay):
    server = quay.servers["a1"]
    made = create(quay.anna, NewVolume(size=1, volume_type=quay.type, name="data"))
    attach(quay.anna, made, server)
    quay.settle()
    told = types(f"server-inspect {server.pk}")
    volumes = told.partition(f"Volumes of Server {server.pk}\n")[2]
    disks = told.partition(f"Disks of Server {server.pk} in Ganeti\n")[2]
    head, row = (volumes.splitlines()[number].split() for number in (1, 3))
    assert " ".join(head) == "ID Name Index Size Template Provider Status Source"
    assert row == f"{made.pk} data 1 1 ext named IN_USE blank".split()
    assert disks.splitlines()[3].split() == [made.backend_volume_uuid, "1024"]
    assert types(f"server-show {server.pk}") in told


@requirement("S1-31")
def test_a_server_is_removed_by_command(quay: Quay):
    server = quay.servers["a1"]
    types(f"server-remove {server.pk} -f")
    quay.settle()
    assert "there is no server" in refused(f"server-show {server.pk}")
    known = [one.name for one in quay.doors(server.backend).instances()]
    assert known == ["snf-a2"]


@requirement("S1-34", "S1-35")
def test_each_cluster_gets_its_helper_and_only_one(poor: Quay):
    first = types("helper-servers-sync")
    assert first == (
        "Backend a: Creating new helper server (1/1)\n"
        "Backend b: Creating new helper server (1/1)\n"
        "Syncing completed\n"
    )
    assert types("helper-servers-sync") == "Syncing completed\n"  # they are being made
    poor.settle()
    assert types("helper-servers-sync --wait").endswith("Syncing completed\n")
    assert [(str(one.backend), one.operstate) for one in helpers()] == [
        ("a", "STOPPED"),
        ("b", "STOPPED"),
    ]
    for one in helpers():
        assert "status | ADMIN_down" in types(f"server-inspect {one.pk}")
    made = left(poor)
    delete(poor.anna, made)
    poor.settle()
    assert Volume.objects.get(pk=made.pk).deleted
    assert list(poor.towns.san.images.iterdir()) == []
    assert quota.usage("red")["gigabytes"] == 0


@requirement("S1-34")
def test_a_helper_that_cannot_be_made_is_made_another_time(poor: Quay):
    poor.towns.does(
        "a",
        "OP_INSTANCE_CREATE",
        instance_name="snf-helper-1",
        mode="create",
        disk_template="diskless",
        disks=[],
        nics=[],
        start=False,
        no_install=True,
    )
    types("helper-servers-sync --backend-id a")
    poor.settle()
    assert helpers() == []
    failed = Operation.objects.get(verb="BUILD")
    assert "snf-helper-1" in failed.why
    assert "(1/1)" in types("helper-servers-sync --backend-id a")
    poor.settle()
    assert [one.instance for one in helpers()] == ["snf-helper-2"]


@requirement("S1-33")
def test_a_helper_that_runs_lends_nothing_until_it_is_stopped(poor: Quay):
    made = left(poor)
    types("helper-servers-sync --backend-id a")
    poor.settle()
    (helper,) = helpers()
    types(f"server-modify {helper.pk} --action=start")
    _none_lends(poor, made)  # it starts
    poor.settle()
    _none_lends(poor, made)
    types(f"server-modify {helper.pk} --action=stop")
    _none_lends(poor, made)
    poor.settle()
    delete(poor.anna, made)
    assert "works for a volume" in refused(f"server-modify {helper.pk} --action=start")
    poor.settle()
    assert Volume.objects.get(pk=made.pk).deleted


@requirement("S1-33")
@pytest.mark.parametrize("word", ["offline", "drained"])
def test_a_cluster_that_is_left_lends_nothing(poor: Quay, word: str):
    made = left(poor)
    types("helper-servers-sync --backend-id a")
    poor.settle()
    types(f"backend-modify a --{word}")
    _none_lends(poor, made)
    told = types("helper-servers-sync --backend-id a")
    assert told == f"Backend a: It is {word}: left alone\nSyncing completed\n"
    types(f"backend-modify a --{word} False")
    delete(poor.anna, made)
    poor.settle()
    assert Volume.objects.get(pk=made.pk).deleted


def _none_lends(quay: Quay, volume: Volume) -> None:
    before = quota.usage("red")
    with pytest.raises(Unavailable, match="has a stopped helper server"):
        delete(quay.anna, volume)
    assert quay.again(volume).status == "available"
    assert quota.usage("red") == before


@requirement("S1-32")
def test_a_helper_is_taken_by_command(poor: Quay):
    Server.objects.filter(name="a2").delete()
    line = "server-create --backend-id a --instance snf-a2 --helper"
    assert refused(line) == "a helper is stopped, and instance snf-a2 runs"
    poor.towns.does("a", "OP_INSTANCE_SHUTDOWN", instance_name="snf-a2")
    told = types(line)
    (helper,) = helpers()
    assert str(helper.backend) == "a"
    assert f"State of Server {helper.pk} in DB" in told
    assert re.search(r"helper +\| True", told)


@pytest.mark.usefixtures("quay")
def test_a_server_is_of_the_project_that_is_named():
    red, anna = people.add_project("red"), people.add_user("anna", "any word")
    Server.objects.all().delete()
    types("server-create --backend-id a --instance snf-a1 --user anna --project red")
    made = Server.objects.get()
    assert (made.project, made.userid) == (red.pk, anna.pk)
