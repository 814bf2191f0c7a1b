# SPDX-License-Identifier: BSD-2-Clause
"""A volume's story over two clusters, and what keeps it from a server."""

import json

import pytest
from django.core.management import call_command
from docks import Docks
from snf_manage import types

from moorage_cloud.conf import CONF
from moorage_cloud.errors import BadRequest
from moorage_cloud.models import Backend, Outbox, Server, VolumeType
from moorage_cloud.models.volume import EPOCHS
from moorage_cloud.verbs import (
    Caller,
    NewVolume,
    accept,
    attach,
    create,
    delete,
    detach,
    extend,
    force_detach,
    forget_backend,
    hindrances,
    offer,
    reset_status,
    retype,
    story,
    take_snapshot,
    withdraw,
)
from moorage_cloud.work import compare

BOB = Caller("bob", "blue")


@pytest.fixture
def volume(docks: Docks):
    return create(docks.anna, NewVolume(size=1, volume_type=docks.type))


def put(docks: Docks, volume, where: str) -> None:
    attach(docks.anna, docks.again(volume), docks.servers[where])
    docks.settle()
    assert docks.again(volume).place.server == docks.servers[where]


def off(docks: Docks, volume) -> None:
    detach(docks.anna, docks.again(volume))
    docks.settle()
    assert docks.again(volume).place is None


def brief(volume) -> list[tuple[str, str, str, str]]:
    return [(one.what, one.result, one.server, one.cluster) for one in story(volume)]


def test_a_volume_that_walks_tells_where_it_was(docks: Docks, volume):
    put(docks, volume, "a1")
    off(docks, volume)
    extend(docks.anna, docks.again(volume), 2)
    docks.settle()
    put(docks, volume, "b2")
    assert brief(volume) == [
        ("create", "done", "", ""),
        ("attach", "done", "a1", "a"),
        ("detach", "done", "a1", "a"),
        ("extend", "done", "", "a"),
        ("attach", "done", "b2", "b"),
    ]
    told = story(volume)
    epochs = [one.epoch for one in told if one.epoch is not None]
    assert epochs == sorted(set(epochs))
    assert all(epoch % EPOCHS == 0 for epoch in epochs)
    assert docks.piers["b"].known[volume.backend_volume_uuid].epoch == epochs[-1]
    # Each step's job is one that this cluster was asked for.
    (extended,) = [one for one in told if one.what == "extend"]
    assert [act for act, _ in extended.jobs] == ["take", "grow", "leave"]
    numbers = [number for one in told if one.cluster == "a" for _, number in one.jobs]
    assert numbers == sorted(docks.piers["a"].jobs)
    assert [one.size for one in told] == [1, 1, 1, 2, 2]
    assert {one.request_id for one in told} == {"req-1"}


def test_what_is_under_way_is_told_and_what_failed_says_why(docks: Docks, volume):
    docks.piers["a"].fails = lambda _request: True
    attach(docks.anna, volume, docks.servers["a1"])
    (*_, going) = story(volume)
    assert (going.what, going.result, going.ended) == ("attach", "under way", None)
    docks.settle()
    (*_, failed) = story(volume)
    assert (failed.what, failed.result) == ("attach", "failed")
    assert "a script failed" in failed.why
    assert failed.ended is not None


def test_a_story_outlives_servers_clusters_and_the_volume(docks: Docks, volume):
    put(docks, volume, "a1")
    off(docks, volume)
    put(docks, volume, "b1")
    off(docks, volume)
    before = brief(volume)
    forget_backend(Backend.objects.get(clustername="a"))
    assert not Server.objects.filter(name="a1").exists()
    assert brief(volume) == before
    delete(docks.anna, docks.again(volume))
    docks.settle()
    assert docks.again(volume).deleted
    assert brief(volume) == [*before, ("delete", "done", "", "b")]


def test_what_no_cluster_was_asked_for_is_told(docks: Docks, volume):
    other = VolumeType.objects.create(
        name="slow", disk_template="ext_named", domain=docks.domain
    )
    retype(docks.anna, volume, other)
    extend(docks.anna, volume, 3)
    made, _ = offer(docks.anna, docks.again(volume))
    withdraw(docks.anna, made)
    made, key = offer(docks.anna, docks.again(volume))
    accept(BOB, made, key)
    reset_status(Caller("root", "admins", admin=True), docks.again(volume), "error")
    delete(BOB, docks.again(volume))
    assert [(one.what, one.project, one.userid) for one in story(volume)] == [
        ("create", "red", "anna"),
        ("retype", "red", "anna"),
        ("extend", "red", "anna"),
        ("offer", "red", "anna"),
        ("withdraw", "red", "anna"),
        ("offer", "red", "anna"),
        ("transfer", "blue", "bob"),
        ("reset", "blue", "root"),
        ("delete", "blue", "bob"),
    ]


def test_what_is_being_copied_is_not_offered(docks: Docks, volume):
    """Else its end would stand in the story of whoever has it then."""
    put(docks, volume, "a1")
    off(docks, volume)
    take_snapshot(docks.anna, docks.again(volume))
    with pytest.raises(BadRequest, match=r"a copy of volume .* is being made"):
        offer(docks.anna, docks.again(volume))
    docks.settle()
    offer(docks.anna, docks.again(volume))


def test_copies_stand_in_both_stories(docks: Docks, volume):
    put(docks, volume, "a1")
    off(docks, volume)
    taken = take_snapshot(docks.anna, docks.again(volume))
    docks.settle()
    new = NewVolume(size=1, volume_type=docks.type, original=docks.again(volume))
    copy = create(docks.anna, new)
    docks.settle()
    (*_, snapshot, lent) = story(volume)
    assert (snapshot.what, snapshot.about) == ("copy", f"snapshot {taken.uuid}")
    assert (lent.what, lent.about) == ("lent", f"volume {copy.uuid}")
    assert [one.what for one in story(copy)] == ["create", "copy"]
    # It was had for the copy with an epoch of its own.
    assert lent.epoch is not None
    assert [act for act, _ in lent.jobs] == ["borrow", "copy", "leave", "return"]


def test_what_a_comparison_found_and_a_cut_are_told(docks: Docks, volume):
    put(docks, volume, "a1")
    Backend.objects.filter(clustername="a").update(offline=True)
    force_detach(docks.anna, docks.again(volume))
    (*_, cut) = story(volume)
    assert cut.what == "cut-off"
    assert (cut.why, cut.cluster) == (
        "its cluster is off, and the volume was taken from it",
        "a",
    )
    put(docks, volume, "b1")
    del docks.piers["b"].known[volume.backend_volume_uuid]
    on = Backend.objects.filter(offline=False)
    for finding in list(compare(on, docks.connect)):
        if finding.repair:
            finding.repair()
    (*_, found) = story(volume)
    assert found.what == "found"
    assert "on no server" in found.why


# --- what is in the way ---------------------------------------------------------------


def told(volume, server) -> list[tuple[str, str]]:
    return [(one.why, one.change) for one in hindrances(volume, server)]


def refused(docks: Docks, volume, where: str) -> tuple[str, str]:
    """Return the one thing in the way, which is what an attach is refused with."""
    server = Server.objects.select_related("backend").get(pk=docks.servers[where].pk)
    ((why, change),) = told(docks.again(volume), server)
    return why, change


def test_nothing_is_in_the_way_of_what_can_be(docks: Docks, volume):
    assert told(volume, docks.servers["a1"]) == []
    put(docks, volume, "a1")
    assert told(docks.again(volume), docks.servers["a1"]) == []


def test_the_change_is_the_one_that_helps(docks: Docks, volume):
    put(docks, volume, "a1")
    why, change = refused(docks, volume, "b1")
    assert "is in-use by server a1" in why
    assert change == "detach it from there"
    off(docks, volume)
    assert told(docks.again(volume), docks.servers["b1"]) == []
    docks.domain.backends.remove(Backend.objects.get(clustername="b"))
    why, change = refused(docks, volume, "b1")
    assert "does not see the storage of type 'fast'" in why
    near = docks.servers["a1"]
    assert change == f"attach it to server a1 ({near.uuid}), which is on one"
    put(docks, volume, "a1")  # as it said


def test_a_state_says_what_ends_it(docks: Docks, volume):
    made, _ = offer(docks.anna, volume)
    why, change = refused(docks, volume, "a1")
    assert why == f"volume {volume.uuid} is awaiting-transfer"
    assert change == "accept the transfer, or delete it"
    withdraw(docks.anna, made)
    attach(docks.anna, volume, docks.servers["a1"])
    why, change = refused(docks, volume, "b1")
    assert (why, change) == (
        f"volume {volume.uuid} is attaching",
        "wait until that is over",
    )


def test_all_that_is_in_the_way_is_told_at_once(docks: Docks, volume):
    put(docks, volume, "a1")
    Backend.objects.filter(clustername="b").update(drained=True)
    Server.objects.filter(name="b1").update(action="STOP")
    server = Server.objects.select_related("backend").get(name="b1")
    whys = [why for why, _ in told(docks.again(volume), server)]
    assert len(whys) == 3
    assert "in-use" in whys[0]
    assert "pending action: stop" in whys[1]
    assert "takes nothing new" in whys[2]


def test_a_full_server_names_a_volume_to_detach(docks: Docks, volume, monkeypatch):
    put(docks, volume, "a1")
    other = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
    monkeypatch.setattr(type(CONF), "max_disks", 2, raising=False)
    why, change = refused(docks, other, "a1")
    assert "has 2 disks" in why
    assert change == f"detach one, such as volume {volume.uuid}"


def test_a_cluster_that_does_not_answer_is_waited_for(docks: Docks, volume):
    docks.piers["a"].silent = docks.piers["a"].deaf = True
    other = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
    attach(docks.anna, other, docks.servers["a1"])
    docks.send()
    assert Outbox.objects.get().tries == 1
    (one,) = hindrances(volume, docks.servers["a1"])
    assert one.waits
    assert "does not answer" in one.why
    (mine,) = hindrances(docks.again(other), docks.servers["b1"])
    assert "the cluster that does it does not answer" in mine.why


# --- by commands ----------------------------------------------------------------------


def test_commands_tell_the_story_and_what_is_in_the_way(docks: Docks, volume):
    put(docks, volume, "a1")
    rows = json.loads(types(f"volume-story {volume.pk} -o json"))
    assert [row["what"] for row in rows] == ["create", "attach"]
    assert rows[1]["cluster"] == "a"
    assert rows[1]["jobs"] == ["take:1"]
    text = types(f"volume-story {volume.uuid}")
    assert text.splitlines()[0].split()[:4] == ["began", "ended", "what", "result"]
    server = docks.servers["b1"]
    told = types(f"volume-explain {volume.pk} --server {server.pk}").splitlines()
    assert told[0].startswith(f"refused: volume {volume.uuid} is in-use by server a1")
    assert told[1] == "  detach it from there"
    off(docks, volume)
    told = types(f"volume-explain {volume.pk} --server {server.pk}")
    assert told == f"volume {volume.pk} can be attached to server {server.pk}.\n"
    put(docks, volume, "b1")
    told = types(f"volume-explain {volume.pk} --server {server.pk}")
    assert told == f"server {server.pk} has volume {volume.pk} already.\n"


def test_stories_of_earlier_versions_begin_with_what_is_on_record(docks: Docks, volume):
    put(docks, volume, "a1")
    off(docks, volume)
    before = [one for one in brief(volume) if one[3]]
    call_command("migrate", "cloud", "0007", verbosity=0)
    call_command("migrate", verbosity=0)
    assert brief(volume) == before


def test_what_was_before_a_transfer_is_nobody_elses_after_an_upgrade(docks, volume):
    put(docks, volume, "a1")
    off(docks, volume)
    made, key = offer(docks.anna, docks.again(volume))
    accept(BOB, made, key)
    call_command("migrate", "cloud", "0007", verbosity=0)
    call_command("migrate", verbosity=0)
    assert story(docks.again(volume), "blue") == []
    assert [one.project for one in story(volume)] == ["", ""]
