# SPDX-License-Identifier: BSD-2-Clause
"""Servers are started, stopped and rebooted over HTTP, as compute tells it."""

from io import StringIO

import pytest
from openstack_clients import Run
from site_of_people import Answer, Site
from snf_manage import refused as is_refused
from snf_manage import types

from moorage_cloud.models import Backend, Operation
from moorage_cloud.work import send_next


def act(site: Site, action: str, given: object = None, server: str = "a1") -> Answer:
    path = f"/{site.server(server)}/action"
    return site.anna.servers("POST", path, {action: given})


def look(site: Site) -> tuple[str, str | None]:
    found = site.anna.servers("GET", f"/{site.server('a1')}").body["server"]
    return found["status"], found["OS-EXT-STS:task_state"]


REBOOTS = (
    ("SOFT", "REBOOT", "rebooting"),
    ("HARD", "HARD_REBOOT", "rebooting_hard"),
)


def test_a_server_is_stopped_and_started(site: Site):
    for action, task, during, after in (
        ("os-stop", "powering-off", "ACTIVE", "SHUTOFF"),
        ("os-start", "powering-on", "SHUTOFF", "ACTIVE"),
    ):
        for _ in range(2):  # once more is as good
            assert act(site, action).status == 202
        assert look(site) == (during, task)
        assert Operation.objects.filter(ended=None).count() == 1
        site.docks.settle()
        assert look(site) == (after, None)


@pytest.mark.parametrize(("kind", "status", "task"), REBOOTS)
def test_a_server_that_reboots_is_shown_so(
    site: Site, kind: str, status: str, task: str
):
    assert act(site, "reboot", {"type": kind}).status == 202
    assert look(site) == (status, task)
    path = "/detail?status="
    (found,) = site.anna.servers("GET", f"{path}{status}").body["servers"]
    assert found["id"] == site.server("a1")
    active = site.anna.servers("GET", f"{path}ACTIVE").body["servers"]
    assert found["id"] not in {one["id"] for one in active}
    site.docks.settle()
    assert look(site) == ("ACTIVE", None)


def test_a_reboot_that_nobody_knows_of_can_be_asked_for_again(site: Site):
    pier = site.docks.piers["a"]
    pier.fails = lambda _request: True
    assert act(site, "reboot", {"type": "HARD"}).status == 202
    site.docks.settle()
    assert look(site) == ("ACTIVE", None)  # it is not taken for done: see its operation
    assert Operation.objects.get().result == "failed"
    pier.fails = lambda _request: False
    assert act(site, "reboot", {"type": "HARD"}).status == 202
    site.docks.settle()
    assert Operation.objects.last().result == "done"


def test_one_that_does_not_run_is_not_reset_but_started_by_a_hard_reboot(site: Site):
    act(site, "os-stop")
    refused = act(site, "reboot", {"type": "HARD"})
    assert "conflictingRequest 409" in refused.fault
    assert "pending action: stop" in refused.fault
    site.docks.settle()
    refused = act(site, "reboot", {"type": "SOFT"})
    assert (refused.status, look(site)) == (409, ("SHUTOFF", None))
    assert "while it is in vm_state stopped" in refused.fault
    assert act(site, "reboot", {"type": "HARD"}).status == 202
    site.docks.settle()
    assert look(site) == ("ACTIVE", None)


@pytest.mark.parametrize(
    ("action", "given"),
    [
        ("reboot", None),
        ("reboot", {"type": "WARM"}),
        ("os-stop", {"now": True}),
        ("os-explode", None),
    ],
)
def test_what_is_no_such_action_changes_nothing(site: Site, action: str, given: object):
    assert act(site, action, given).status == 400
    assert not Operation.objects.exists()


def test_a_real_cluster_reboots(harbour: Site):
    """The cluster's masters are real; what it was asked for stands in its jobs."""
    for kind, _, _ in REBOOTS:
        assert act(harbour, "reboot", {"type": kind}).status == 202
        harbour.docks.settle()
        assert look(harbour) == ("ACTIVE", None)
    asked = [
        (one["OP_ID"], one["reboot_type"]) for one in harbour.docks.towns.jobs("a")
    ]
    assert asked == [("OP_INSTANCE_REBOOT", "soft"), ("OP_INSTANCE_REBOOT", "hard")]


def test_a_server_gets_another_name(site: Site):
    path = f"/{site.server('a1')}"
    answer = site.anna.servers("PUT", path, {"server": {"name": "web"}})
    assert (answer.status, answer.body["server"]["name"]) == (200, "web")
    (found,) = site.anna.servers("GET", "?name=^web$").body["servers"]
    assert found["id"] == site.server("a1")
    for odd in (
        {"name": " "},
        {"name": "x" * 256},
        {},
        {"name": "w", "adminPass": "x"},
    ):
        assert site.anna.servers("PUT", path, {"server": odd}).status == 400
    assert site.anna.servers("GET", path).body["server"]["name"] == "web"


def test_an_answer_that_is_lost_makes_no_second_reboot(site: Site):
    pier = site.docks.piers["a"]
    act(site, "reboot", {"type": "HARD"})
    pier.silent = True  # it has heard, and nobody hears it
    send_next(site.docks.connect)
    assert (len(pier.waiting), Operation.objects.get().job) == (1, None)
    assert look(site) == ("HARD_REBOOT", "rebooting_hard")
    pier.silent = False
    site.docks.settle()
    assert look(site) == ("ACTIVE", None)
    assert (len(pier.keys), len(pier.asked)) == (1, 2)


def test_whose_cluster_is_off_learns_no_name_of_it(site: Site):
    Backend.objects.filter(clustername="a").update(
        offline=True, clustername="secret-name"
    )
    for action in ("os-stop", "os-start"):
        refused = act(site, action)
        assert (refused.status, "secret-name" in refused.fault) == (503, False)
    assert not Operation.objects.exists()


def test_a_name_is_obeyed_by_no_terminal(site: Site, monkeypatch: pytest.MonkeyPatch):
    path = f"/{site.server('a1')}"
    named = site.anna.servers("PUT", path, {"server": {"name": "a\x1b[2Jb\nc"}})
    assert named.status == 200
    made = site.anna.new_volume()
    body = {"volumeAttachment": {"volumeId": made["id"]}}
    site.anna.servers("POST", f"{path}/os-volume_attachments", body)
    site.docks.settle()
    number = site.docks.servers["a1"].pk
    told = types("server-list") + types(f"server-show {number}")
    monkeypatch.setattr("sys.stdin", StringIO("n\n"))
    told += types(f"volume-remove {made['id']}")
    other = site.server("a2")
    told += is_refused(f"volume-attach {made['id']} --server {other}")
    told += types(f"volume-explain {made['id']} --server {other}")
    assert told.count("b\\nc") == 4
    assert "\x1b" not in told


@pytest.mark.slow
def test_openstack_server_power(site: Site, openstack: Run):
    for line, status in (
        ("server stop a1", "SHUTOFF"),
        ("server start a1", "ACTIVE"),
        ("server reboot --hard a1", "ACTIVE"),
    ):
        openstack(line, tells=False)
        site.docks.settle()
        assert look(site) == (status, None)
    verbs = [one.verb for one in Operation.objects.order_by("pk")]
    assert verbs == ["STOP", "START", "HARD_REBOOT"]
    openstack("server set --name web a1", tells=False)
    shown = openstack("server show web")
    assert (shown["status"], shown["id"]) == ("ACTIVE", site.server("a1"))
    zones = openstack("availability zone list --compute")
    assert zones == [{"Zone Name": "nova", "Zone Status": "available"}]


def test_administrators_see_clusters_as_hosts_of_the_zone(site: Site):
    path = "/compute/v2.1/os-availability-zone"
    (zone,) = site.anna.ask("GET", path).body["availabilityZoneInfo"]
    assert zone == {"zoneName": "nova", "zoneState": {"available": True}, "hosts": None}
    assert site.anna.ask("GET", f"{path}/detail").status == 403
    Backend.objects.filter(clustername="b").update(offline=True)
    (zone,) = site.root.ask("GET", f"{path}/detail").body["availabilityZoneInfo"]
    up = {name: one["nova-compute"]["available"] for name, one in zone["hosts"].items()}
    assert up == {"a": True, "b": False}
