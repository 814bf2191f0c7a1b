# SPDX-License-Identifier: BSD-2-Clause
"""Another cluster answers where one was: it does not speak for that one."""

import json
import time

import pytest
from quay import Quay
from snf_manage import refused, types

from moorage_cloud.models import Backend, Operation, Outbox, Volume
from moorage_cloud.verbs import NewVolume, attach, create, delete, detach
from moorage_cloud.work import Worker


def becomes_another(quay: Quay) -> None:
    """Let the second cluster answer at the first one's address."""
    b = quay.towns.towns["b"]
    Backend.objects.filter(clustername="a").update(port=b.port, ca=str(b.ca))


@pytest.fixture
def attaching(quay: Quay) -> Volume:
    """Return a volume whose cluster is another one by now, which has that job, too."""
    types("backend-update-status")
    made = create(quay.anna, NewVolume(size=1, volume_type=quay.type))
    attach(quay.anna, made, quay.servers["a1"])
    with quay.towns.held("a", "snf-a1"):
        quay.send()
    job = Operation.objects.get(volume=made, ended=None).job
    engine = quay.towns.towns["b"].cluster.engine
    while not engine.jobs or max(engine.jobs) < (job or 0):
        quay.towns.does("b", "OP_INSTANCE_REBOOT", instance_name="snf-b1")
    becomes_another(quay)
    return made


def uuid(quay: Quay, name: str) -> str:
    return str(quay.towns.towns[name].cluster.config.cluster.uuid)


def listed(quay: Quay) -> list[str]:
    assert quay
    rows = json.loads(types("backend-list -o json --fields clustername,stranger"))
    return [row["stranger"] for row in rows]


def test_a_job_of_another_cluster_is_nobodys_word(
    quay: Quay, attaching: Volume, caplog: pytest.LogCaptureFixture
):
    Operation.objects.update(look_at=attaching.created)
    quay.look()
    assert quay.again(attaching).status == "attaching"
    other = create(quay.anna, NewVolume(size=1, volume_type=quay.type))
    attach(quay.anna, other, quay.servers["a2"])
    quay.send()
    assert Outbox.objects.get().tries == 1
    worker = Worker(quay.doors, listen=0.05)
    worker.start()
    end = time.monotonic() + 20
    while listed(quay) != [uuid(quay, "b"), ""] and time.monotonic() < end:
        time.sleep(0.05)
    worker.stop()
    assert listed(quay) == [uuid(quay, "b"), ""]
    assert f"cluster {uuid(quay, 'b')} answers, which is not the one" in caplog.text
    assert quay.again(attaching).status == "attaching"
    assert quay.towns.jobs("b") == []
    assert refused("backend-update-status") == "not every cluster answered"


def test_it_is_taken_for_the_cluster_when_somebody_says_so(
    quay: Quay, attaching: Volume
):
    assert "for one cluster" in refused("backend-update-status --adopt-new")
    Backend.objects.filter(clustername="a").update(stranger=uuid(quay, "b"))
    types("backend-update-status --backend-id a --adopt-new")
    a = Backend.objects.get(clustername="a")
    assert (a.uuid, a.stranger, a.event_number) == (uuid(quay, "b"), "", None)
    now = quay.again(attaching)
    assert now.status == "available"
    assert "its cluster was made anew" in now.fault


def test_data_is_not_taken_for_destroyed_because_a_new_cluster_lacks_it(quay: Quay):
    types("backend-update-status")
    made = create(quay.anna, NewVolume(size=1, volume_type=quay.type))
    attach(quay.anna, made, quay.servers["a1"])
    quay.settle()
    detach(quay.anna, quay.again(made))
    quay.settle()
    quay.towns.san.broken.add("remove")
    delete(quay.anna, quay.again(made))
    quay.send()  # the cluster takes the disk
    quay.towns.finish("a")
    Operation.objects.update(look_at=made.created)
    quay.look()
    quay.send()  # and is to destroy it
    under_way = Operation.objects.get(volume=made, ended=None)
    assert (under_way.step, under_way.job is None) == (1, False)
    becomes_another(quay)
    types("backend-update-status --backend-id a --adopt-new")
    quay.settle()
    now = quay.again(made)
    assert (now.status, now.deleted) == ("error_deleting", False)
    assert (quay.towns.san.images / made.backend_volume_uuid).exists()
