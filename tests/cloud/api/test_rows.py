# SPDX-License-Identifier: BSD-2-Clause
"""What users of the earlier system count on, where no other test has it."""

import json
import os
import ssl
import sys
from base64 import b64encode
from http.client import HTTPSConnection
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from django.core.management import call_command
from docks import Docks
from quay import Quay
from site_of_people import Person, Site
from snf_manage import types

from moorage_cloud.clusters import Disk, Heard, Job, JobState
from moorage_cloud.models import Backend, Operation, Volume, VolumeType
from moorage_cloud.verbs import NewVolume, attach, create, detach, quota
from moorage_cloud.work import compare, hear

requirement = pytest.mark.requirement


def attaches(person: Person, server: str, volume: dict[str, Any]) -> Any:
    body = {"volumeAttachment": {"volumeId": volume["id"]}}
    return person.servers("POST", f"/{server}/os-volume_attachments", body)


def modified(quay: Quay, instance: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send ``PUT …/modify`` to cluster a, with a key; return its operation."""
    backend = Backend.objects.get(clustername="a")
    door = HTTPSConnection(
        backend.host,
        backend.port,
        context=ssl.create_default_context(cafile=backend.ca),
    )
    login = b64encode(f"{backend.username}:{backend.password}".encode()).decode()
    headers = {
        "Authorization": f"Basic {login}",
        "Content-Type": "application/json",
        "Idempotency-Key": f"key-{len(quay.towns.jobs('a'))}",
    }
    path = f"/2/instances/{instance}/modify?reason=moorage-cloud"
    numbers = []
    for _ in range(2):
        door.request("PUT", path, json.dumps(body), headers)
        numbers.append(json.loads(door.getresponse().read()))
    door.close()
    assert numbers[0] == numbers[1]
    assert isinstance(numbers[0], int)
    quay.towns.finish("a")
    return quay.towns.jobs("a")[-1]


WORDS = ("OP_ID", "disks", "depends", "hotplug_if_possible", "keep_disks")


def said(op: dict[str, Any]) -> dict[str, Any]:
    return {word: op.get(word) for word in WORDS}


@requirement("S1-03")
def test_a_volume_with_a_server_is_attached_at_once(harbour: Site):
    """One job, which is that of ``PUT /2/instances/NAME/modify`` with the row's body.

    It is sent as ``POST /2/jobs``, which takes any operation: both make the same one,
    and both take the key by which a repeated request makes no second job.
    """
    quay = harbour.docks
    assert isinstance(quay, Quay)
    quay.type.specs = {}
    quay.type.save()
    made = harbour.anna.new_volume(server_id=harbour.server("a1"))
    assert (made["status"], made["attachments"]) == ("creating", [])
    assert harbour.anna.look(made)["status"] == "creating"
    quay.settle()
    shown = harbour.anna.look(made)
    assert shown["status"] == "in-use"
    assert shown["attachments"][0]["server_id"] == harbour.server("a1")
    (op,) = quay.towns.jobs("a")
    wish = {
        "size": 1024,
        "name": Volume.objects.get().backend_volume_uuid,
        "provider": "named",
        "dev_type": "ext",
        "reuse_data": "False",
    }
    assert op["disks"] == [["add", "-1", wish]]
    other = {**wish, "name": "snf-vol-999"}
    body = {
        "disks": [["add", "-1", other]],
        "depends": [],
        "hotplug_if_possible": True,
    }
    same = modified(quay, "snf-a1", body)
    assert said(same) == said(op) | {"disks": [["add", "-1", other]]}
    removed = {"disks": [["remove", "snf-vol-999", {}]], "keep_disks": True}
    same = modified(quay, "snf-a1", removed | {"hotplug_if_possible": True})
    path = f"/{harbour.server('a1')}/os-volume_attachments/{made['id']}"
    assert harbour.anna.servers("DELETE", path).status == 202
    quay.settle()
    op = quay.towns.jobs("a")[-1]
    left = [["remove", wish["name"], {}]]
    assert said(op) == said(same) | {"disks": left, "depends": []}


@requirement("S1-02")
def test_a_volume_of_nobody_is_shown_so(site: Site):
    site.anna.new_volume()
    told = types(f"volume-show {Volume.objects.get().pk}")
    lines = [line.partition(" | ") for line in told.splitlines()[2:]]
    facts = {name.strip(): value for name, _, value in lines}
    assert (facts["server_id"], facts["backendjobid"]) == ("None", "None")
    assert facts["state"] == "AVAILABLE"


@requirement("S1-14")
def test_a_volume_goes_where_its_storage_is_seen_and_nowhere_else(site: Site):
    """What the earlier system told by the template of a server's flavour.

    Here a type names the storage, and its domain the clusters that see it.
    """
    site.docks.domain.backends.remove(Backend.objects.get(clustername="b"))
    made = site.anna.new_volume()
    answer = attaches(site.anna, site.server("b1"), made)
    assert answer.status == 400
    assert "must have the same volume template" in answer.fault
    assert site.anna.look(made)["status"] == "available"
    assert attaches(site.anna, site.server("a1"), made).status == 200


@requirement("S1-15")
def test_only_an_available_volume_is_attached(site: Site):
    """Two at once: `of_many_that_want_one_volume_one_gets_it` has sixteen."""
    made = site.anna.new_volume()
    attaches(site.anna, site.server("a1"), made)
    assert site.anna.look(made)["status"] == "attaching"
    assert attaches(site.anna, site.server("a2"), made).status == 400
    site.docks.settle()
    assert site.anna.look(made)["status"] == "in-use"
    assert attaches(site.anna, site.server("a2"), made).status == 400
    path = f"/{site.server('a1')}/os-volume_attachments/{made['id']}"
    site.anna.servers("DELETE", path)
    assert attaches(site.anna, site.server("a2"), made).status == 400
    site.docks.settle()
    site.anna.volumes("DELETE", f"/volumes/{made['id']}")
    assert site.anna.look(made)["status"] == "deleting"
    assert attaches(site.anna, site.server("a2"), made).status == 400
    site.docks.settle()


@requirement("S1-17")
def test_a_server_has_so_many_disks_and_no_more(site: Site):
    """`max_disks` of the settings: 16, as a cluster's instances can have here.

    The earlier system's was 8. The disk that the server starts from counts.
    """
    path = f"/os-quota-sets/{site.red.pk}"
    site.root.volumes("PUT", path, {"quota_set": {"volumes": -1}})
    many = [site.anna.new_volume() for _ in range(16)]
    for one in many[:15]:
        assert attaches(site.anna, site.server("a1"), one).status == 200
    answer = attaches(site.anna, site.server("a1"), many[15])
    assert answer.status == 400
    assert "has 16 disks: no more are possible" in answer.fault
    assert attaches(site.anna, site.server("a2"), many[15]).status == 200


@requirement("S1-25")
def test_an_attached_volume_is_deleted_by_one_plain_remove(harbour: Site):
    """By the administrator's command, or with its server.

    A user of the API detaches it first, as Cinder demands: there it is a 400.
    """
    quay = harbour.docks
    assert isinstance(quay, Quay)
    made = harbour.anna.new_volume(server_id=harbour.server("a1"))
    quay.settle()
    volume = Volume.objects.get()
    name = volume.backend_volume_uuid
    path = f"/volumes/{made['id']}"
    assert harbour.anna.volumes("DELETE", path).status == 400
    types(f"volume-remove {volume.pk} -f")
    assert harbour.anna.look(made)["status"] == "deleting"
    quay.settle()
    assert harbour.anna.volumes("GET", path).status == 404
    add, remove = quay.towns.jobs("a")
    assert add["disks"][0][0] == "add"
    assert remove["disks"] == [["remove", name, {}]]
    assert "keep_disks" not in remove
    assert quay.towns.san.scripts(name)[-1] == "remove"
    assert not (quay.towns.san.images / name).exists()
    assert quota.usage(harbour.red.pk)["gigabytes"] == 0


# --- names ----------------------------------------------------------------------------


@requirement("S1-37")
@pytest.mark.usefixtures("database")
def test_the_column_of_old_names_outlives_migrations_both_ways():
    """Its column is there from the first migration on, which begins a database."""
    field = Volume._meta.get_field("legacy_backend_volume_uuid")
    assert (field.null, field.max_length) == (True, 128)
    kind = VolumeType.objects.create(name="fast", disk_template="ext_named")
    name = "8c3a.ext.disk1"
    for legacy in (None, name):
        Volume.objects.create(
            size=1,
            volume_type=kind,
            userid="anna",
            project="red",
            legacy_backend_volume_uuid=legacy,
        )
    names = [one.backend_volume_uuid for one in Volume.objects.order_by("pk")]
    call_command("migrate", "cloud", "0001", verbosity=0)
    call_command("migrate", verbosity=0)
    again = [one.backend_volume_uuid for one in Volume.objects.order_by("pk")]
    assert again == names
    assert again[1] == name


@requirement("S1-38", "S1-39")
def test_a_volumes_name_is_its_old_one_or_its_number(template: Path, tmp_path: Path):
    """A property, as its callers have known it; with another prefix, too."""
    assert isinstance(vars(Volume)["backend_volume_uuid"], property)
    base = tmp_path / "cloud.sqlite"
    base.write_bytes(template.read_bytes())
    conf = tmp_path / "cloud.toml"
    conf.write_text(
        f'database = "{base}"\nkey_file = "{tmp_path}/key"\nprefix = "acme-"\n'
    )
    code = """
import django; django.setup()
from django.core.management import call_command
from moorage_cloud.models import Volume
call_command(*"volume-type-create -n t --disk-template ext_named --default".split())
owner = "--user anna --project red"
call_command(*f"volume-create --size 1 {owner}".split())
Volume.objects.update(legacy_backend_volume_uuid="8c3a.ext.disk1")
call_command("volume-show", "1")
"""
    done = run(
        [sys.executable, "-c", code],
        env=os.environ | {"MOORAGE_CLOUD": str(conf)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    told = [line for line in done.stdout.splitlines() if "backend_volume_uuid" in line]
    assert [line.partition("| ")[2] for line in told] == [
        *("acme-vol-1", "8c3a.ext.disk1"),
    ]


# --- what the earlier system did wrong ------------------------------------------------


@requirement("S1-F8")
@pytest.mark.parametrize("detachable", [True, False])
def test_detachable_means_one_thing(site: Site, detachable: bool):
    """What is shown is what the checks go by, whatever a type is called."""
    VolumeType.objects.update(name="ext_named", detachable=detachable)
    answer = site.anna.volumes("POST", "/volumes", {"volume": {"size": 1}})
    assert answer.status == (202 if detachable else 400)
    made = site.anna.new_volume(server_id=site.server("a1"))
    site.docks.settle()
    shown = site.anna.volumes("GET", f"/volumes/{made['id']}?SNF=1").body["volume"]
    assert shown["SNF:detachable"] is detachable
    path = f"/{site.server('a1')}/os-volume_attachments/{made['id']}"
    assert site.anna.servers("DELETE", path).status == (202 if detachable else 400)


@requirement("S1-F9")
def test_what_an_event_names_and_nobody_knows_is_skipped(docks: Docks):
    """Events name jobs here, and no disks: these are looked at when all is compared."""
    volume = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
    attach(docks.anna, volume, docks.servers["a1"])
    docks.send()
    pier, backend = docks.piers["a"], Backend.objects.get(clustername="a")
    pier.run()
    job = Operation.objects.get().job
    assert job is not None
    known = Job(JobState.DONE)
    hear(backend, Heard(7, {job + 900: known, job: known, job + 901: known}), pier)
    assert docks.again(volume).status == "in-use"
    assert Backend.objects.get(clustername="a").event_number == 7
    for name in ("snf-vol-99999", "snf-vol-what", "a-guests-own"):
        pier.known[name] = Disk(name, "snf-a1", 1024)
    del pier.known[volume.backend_volume_uuid]
    found = list(compare([backend], docks.connect))
    assert sorted(one.kind for one in found) == ["disk", "orphan", "orphan"]
    for one in found:
        if one.repair:
            one.repair()
    assert docks.again(volume).status == "available"


@requirement("S1-F10")
def test_words_are_cinders_and_one_spelling(site: Site):
    made = site.anna.new_volume(server_id=site.server("a1"))
    site.docks.settle()
    where = f"/{site.server('a1')}/os-volume_attachments"
    path = f"{where}/{made['id']}"
    for wish in (True, False):
        body = {"volumeAttachment": {"volumeId": made["id"]}}
        body["volumeAttachment"]["delete_on_termination"] = wish
        assert site.anna.servers("PUT", path, body).status == 202
        shown = site.anna.servers("GET", path).body["volumeAttachment"]
        assert shown["delete_on_termination"] is wish
    other = site.anna.new_volume()
    body = {"volumeAttachment": {"volumeId": other["id"]}}
    body["volumeAttachment"]["delete_on_termination"] = False
    assert site.anna.servers("POST", where, body).status == 200
    site.docks.settle()
    new = {"snapshot": {"volume_id": made["id"]}}
    taken = site.anna.volumes("POST", "/snapshots", new).body["snapshot"]
    assert taken["status"] == "creating"
    site.docks.settle()
    one = site.anna.volumes("GET", f"/snapshots/{taken['id']}").body["snapshot"]
    assert one["status"] == "available"
    assert one["os-extended-snapshot-attributes:progress"] == "100%"
    assert one["os-extended-snapshot-attributes:project_id"] == site.red.pk
    odd = [name for name in one if name.startswith("os-extended-snapshot-attribute:")]
    assert odd == []


@requirement("S1-F12")
def test_events_count_by_job_and_generation_and_by_no_clock(docks: Docks):
    """Late ones change nothing, and what comes in any order is heard."""
    volume = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
    other = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
    server, pier = docks.servers["a1"], docks.piers["a"]
    backend = Backend.objects.get(clustername="a")
    attach(docks.anna, volume, server)
    docks.settle()
    detach(docks.anna, volume)
    docks.settle()
    old = [one.job for one in Operation.objects.order_by("pk")]
    first, second = (one.pk for one in Operation.objects.order_by("pk"))
    attach(docks.anna, volume, docks.servers["a2"])
    attach(docks.anna, other, server)
    docks.send()
    done = Job(JobState.DONE)
    late = {number: done for number in pier.jobs if number not in pier.waiting}
    assert len(late) == 2, old
    hear(backend, Heard(50, late), pier)
    found = docks.again(volume)
    assert (found.status, found.place.server) == ("attaching", docks.servers["a2"])
    pier.run()
    newest = Operation.objects.get(ended=None, volume=other)
    hear(backend, Heard(51, {newest.job: done}), pier)
    assert docks.again(other).status == "in-use"
    assert docks.again(volume).status == "attaching"
    newer = Operation.objects.get(ended=None, volume=volume)
    hear(backend, Heard(52, {newer.job: done}), pier)
    assert docks.again(volume).status == "in-use"
    assert {first, second} & {newest.pk, newer.pk} == set()
