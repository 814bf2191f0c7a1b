# SPDX-License-Identifier: BSD-2-Clause
"""Copies of which a step fails, is cancelled, forgotten or asked for twice.

Clusters are in memory. Whatever happens to a step, the copy ends, the original is as
it was, and no cluster has either of them.
"""

from collections.abc import Callable

import pytest
from docks import Docks, Pier

from moorage_cloud.clusters import Heard
from moorage_cloud.errors import BadRequest, Refusal
from moorage_cloud.models import Backend, Operation, Outbox, Server, Snapshot, Volume
from moorage_cloud.requests import from_json
from moorage_cloud.verbs import (
    NewVolume,
    attach,
    check_data,
    create,
    delete,
    delete_snapshot,
    detach,
    force_detach,
    quota,
    reset_snapshot,
    reset_status,
    take_snapshot,
    without_data,
)
from moorage_cloud.work import compare, send_next

STEPS = ("borrow", "copy", "grow", "leave", "return")


@pytest.fixture
def volume(docks: Docks) -> Volume:
    """Return a volume with data that no server has."""
    made = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
    attach(docks.anna, made, docks.servers["a1"])
    docks.settle()
    docks.storage[made.backend_volume_uuid][:8] = b"precious"
    detach(docks.anna, made)
    docks.settle()
    return docks.again(made)


def copy_of(docks: Docks, volume: Volume, size: int = 2) -> Volume:
    new = NewVolume(size=size, volume_type=docks.type, original=volume)
    return create(docks.anna, new)


def step(docks: Docks, how: Callable[[Pier], None]) -> None:
    """Send what is due, let its cluster do something with it, and look."""
    docks.send()
    for pier in docks.piers.values():
        how(pier)
    docks.look()


def broken(pier: Pier) -> None:
    pier.fails = lambda _request: True
    pier.run()
    pier.fails = lambda _request: False


def cancelled(pier: Pier) -> None:
    pier.run(cancel=True)


def forgotten(pier: Pier) -> None:
    """Done, and nobody knows of the job any more."""
    pier.run()
    pier.jobs.clear()
    pier.heard = [Heard(one.number) for one in pier.heard]


def has_nothing(docks: Docks) -> bool:
    return not any(pier.known for pier in docks.piers.values())


@pytest.mark.parametrize("how", [broken, cancelled])
@pytest.mark.parametrize("which", range(len(STEPS)), ids=STEPS)
def test_each_step_that_fails_ends_the_copy(
    docks: Docks, volume: Volume, which: int, how: Callable[[Pier], None]
):
    made = copy_of(docks, volume)
    for _ in range(which):
        step(docks, Pier.run)
    step(docks, how)
    docks.settle()
    found = docks.again(made)
    whole = STEPS[which] in {"leave", "return"}
    assert found.status == ("available" if whole else "error")
    assert found.fault
    assert found.initialized == (which > 1)
    assert docks.again(volume).status == "available"
    assert list(quota.drifts()) == []
    # What a cluster could not let go of, the comparison finds.
    assert has_nothing(docks) != whole
    findings = list(compare(list(Backend.objects.all()), docks.connect))
    assert len(findings) == whole
    for one in findings:
        assert one.repair is not None
        one.repair()
        docks.settle()
    assert has_nothing(docks)
    for one in (made, volume):
        delete(docks.anna, docks.again(one))
        docks.settle()
    assert docks.storage == {}
    assert not any(quota.usage("red").values())


@pytest.mark.parametrize("which", range(len(STEPS)), ids=STEPS)
def test_a_step_whose_job_is_forgotten_is_judged_by_what_is(
    docks: Docks, volume: Volume, which: int
):
    made = copy_of(docks, volume)
    for _ in range(which):
        step(docks, Pier.run)
    step(docks, forgotten)
    docks.settle()
    assert (docks.again(made).status, docks.again(made).fault) == ("available", "")
    assert docks.storage[made.backend_volume_uuid][:8] == b"precious"
    assert has_nothing(docks)


def test_a_worker_that_dies_after_each_request_asks_again_with_its_key(
    docks: Docks, volume: Volume
):
    docks.piers["a"].asked.clear()
    made = copy_of(docks, volume)
    for _ in STEPS:
        message = Outbox.objects.get()
        docks.connect(message.backend).submit(
            from_json(message.request), message.key, "a worker that dies"
        )
        docks.piers["a"].run()
        step(docks, Pier.run)
    assert docks.again(made).status == "available"
    keys = [key for _, key in docks.piers["a"].asked]
    assert keys == [key for key in dict.fromkeys(keys) for _ in range(2)]
    assert len(set(keys)) == len(STEPS)
    assert has_nothing(docks)


def test_the_comparison_leaves_alone_what_is_being_copied(docks: Docks, volume: Volume):
    copy_of(docks, volume)
    for number in range(len(STEPS)):
        found = [
            one.kind
            for one in compare(list(Backend.objects.all()), docks.connect)
            if one.kind != "job"
        ]
        assert found == [], STEPS[number]
        step(docks, Pier.run)


def test_an_original_is_taken_with_an_epoch_above_all_earlier_ones(
    docks: Docks, volume: Volume
):
    """Snapshots, too: each copy is by whichever cluster is on."""
    snapshot = take_snapshot(docks.anna, volume)
    docks.settle()
    snapshot.refresh_from_db()
    for off in ("a", "b", "a"):
        Backend.objects.update(offline=False)
        Backend.objects.filter(clustername=off).update(offline=True)
        for original in (volume, snapshot):
            new = NewVolume(size=1, volume_type=docks.type, original=original)
            made = create(docks.anna, new)
            docks.settle()
            assert docks.again(made).status == "available", docks.again(made).fault
    Backend.objects.update(offline=False)
    attach(docks.anna, volume, docks.servers["b1"])
    docks.settle()
    assert docks.again(volume).status == "in-use"


def test_no_attachment_makes_the_data_of_a_copy_that_failed(
    docks: Docks, volume: Volume
):
    made = copy_of(docks, volume)
    step(docks, broken)
    with pytest.raises(Exception, match="did not come to its end"):
        check_data(docks.anna, made)
    reset_status(docks.anna, made, "error")
    without_data(docks.anna, made)
    assert docks.again(made).status == "available"
    with pytest.raises(Exception, match="was to be a copy, and is not there"):
        attach(docks.anna, docks.again(made), docks.servers["a1"])
    delete(docks.anna, docks.again(made))
    assert docks.again(made).deleted


def test_a_helper_lends_its_cluster_for_a_copy(docks: Docks, volume: Volume):
    Backend.objects.update(features=[])
    Server.objects.filter(name="b2").update(helper=True, operstate="STOPPED")
    made = copy_of(docks, volume)
    snapshot = take_snapshot(docks.anna, volume)
    docks.settle()
    assert docks.again(made).status == "available"
    assert Snapshot.objects.get(pk=snapshot.pk).status == "available"
    lent = {request.instance for request, _ in docks.piers["b"].asked}
    assert lent == {"snf-b2", None}
    assert has_nothing(docks)
    Server.objects.filter(name="b2").update(helper=False)
    with pytest.raises(Exception, match="has a stopped helper server"):
        copy_of(docks, volume)
    assert Operation.objects.filter(ended=None).count() == 0


def test_what_waits_for_a_cluster_that_is_off_keeps_nobody_waiting(
    docks: Docks, volume: Volume
):
    made = copy_of(docks, volume)
    assert send_next(docks.connect)
    Backend.objects.filter(clustername="a").update(offline=True)
    attach(docks.anna, volume, docks.servers["b1"])
    docks.send()
    docks.piers["b"].run()
    docks.look()
    assert docks.again(volume).status == "in-use"
    # The cluster comes back, and is late: its storage has seen a higher epoch.
    Backend.objects.filter(clustername="a").update(offline=False)
    docks.piers["a"].run()
    docks.listen()
    docks.settle()
    assert docks.again(made).status == "error"
    assert set(docks.piers["a"].known) == set()


@pytest.mark.parametrize("which", range(len(STEPS)), ids=STEPS)
def test_a_copy_on_a_cluster_that_is_off_ends_when_somebody_says_so(
    docks: Docks, volume: Volume, which: int
):
    made = copy_of(docks, volume)
    for _ in range(which):
        step(docks, Pier.run)
    docks.send()
    with pytest.raises(Refusal):
        force_detach(docks.anna, made)  # the cluster is at it
    Backend.objects.filter(clustername="a").update(offline=True)
    force_detach(docks.anna, made)
    found = docks.again(made)
    whole = STEPS[which] in {"leave", "return"}
    assert found.status == ("available" if whole else "error")
    assert (found.uncopied, "is off" in found.fault) == (not whole, True)
    if not whole:
        with pytest.raises(BadRequest, match="did not come to its end"):
            check_data(docks.anna, found)
        reset_status(docks.anna, found, "available")
        with pytest.raises(BadRequest, match="was to be a copy, and is not there"):
            attach(docks.anna, found, docks.servers["b1"])
    attach(docks.anna, volume, docks.servers["b1"])
    docks.send()
    docks.piers["b"].run()
    docks.look()
    assert docks.again(volume).status == "in-use"
    assert list(quota.drifts()) == []


def test_a_snapshot_on_a_cluster_that_is_off_ends_when_somebody_says_so(
    docks: Docks, volume: Volume
):
    snapshot = take_snapshot(docks.anna, volume)
    docks.send()
    with pytest.raises(BadRequest, match="it will end"):
        reset_snapshot(docks.anna, snapshot, "error")
    Backend.objects.filter(clustername="a").update(offline=True)
    reset_snapshot(docks.anna, snapshot, "error")
    snapshot.refresh_from_db()
    assert (snapshot.status, snapshot.initialized) == ("error", False)
    delete_snapshot(docks.anna, snapshot)
    snapshot.refresh_from_db()
    assert snapshot.deleted
    assert quota.usage("red")["snapshots"] == 0
