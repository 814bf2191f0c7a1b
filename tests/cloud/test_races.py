# SPDX-License-Identifier: BSD-2-Clause
"""Sixteen clients want one volume at once, of web processes: one gets it."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from docks import Docks
from installation import Cloud
from site_of_people import COMPUTE, VOLUME, Answer, Person, Site

from moorage_cloud.models import Operation, Server
from moorage_cloud.verbs import quota

pytestmark = pytest.mark.slow
CLIENTS = 16
ROUNDS = 3
Ask = Callable[[], Answer]


class Racers:
    """Clients that ask at the same moment."""

    def __init__(self, cloud: Cloud, site: Site) -> None:
        self.cloud, self.site = cloud, site
        self._barrier = Barrier(CLIENTS)
        self._pool = ThreadPoolExecutor(CLIENTS)

    def race(self, wishes: Sequence[Ask]) -> list[Answer]:
        """Let all ask at once; return the answers in the order of the wishes."""
        return list(self._pool.map(self._run, wishes))

    def _run(self, wish: Ask) -> Answer:
        self._barrier.wait(60)
        return wish()

    def attach(self, volume: str, server: Server) -> Ask:
        anna = self.site.anna
        path = f"{COMPUTE}/servers/{server.uuid}/os-volume_attachments"
        body = {"volumeAttachment": {"volumeId": volume}}
        return lambda: self.cloud.ask("POST", path, anna.token, body)

    def _of(self, anna: Person, volume: str) -> str:
        return f"{VOLUME}/{anna.project.pk}/volumes/{volume}"

    def delete(self, volume: str) -> Ask:
        anna = self.site.anna
        path = self._of(anna, volume)
        return lambda: self.cloud.ask("DELETE", path, anna.token)

    def extend(self, volume: str, size: int) -> Ask:
        anna = self.site.anna
        path = f"{self._of(anna, volume)}/action"
        body = {"os-extend": {"new_size": size}}
        return lambda: self.cloud.ask("POST", path, anna.token, body)

    def create(self, size: int) -> Ask:
        anna = self.site.anna
        path, body = f"{VOLUME}/{anna.project.pk}/volumes", {"volume": {"size": size}}
        return lambda: self.cloud.ask("POST", path, anna.token, body)

    def close(self) -> None:
        self._pool.shutdown()


@pytest.fixture
def racers(database: str, tmp_path: Path) -> Iterator[Racers]:
    docks = Docks()
    made = [
        Server(
            name=f"{backend}{number}",
            instance=f"snf-{backend}{number}",
            userid="anna",
            project="red",
            backend=docks.servers[f"{backend}1"].backend,
        )
        for backend in "ab"
        for number in range(3, 3 + CLIENTS // 2)
    ]
    for one in Server.objects.bulk_create(made):
        docks.servers[one.name] = one
        docks.piers[one.backend.clustername].statuses[one.instance] = "running"
    site = Site(docks)
    cloud = Cloud(tmp_path, database)
    found = Racers(cloud, site)
    try:
        cloud.web(processes=3)
        yield found
    finally:
        cloud.close()
        found.close()


def servers(racers: Racers) -> list[Server]:
    """Return as many servers as there are clients."""
    return list(racers.site.docks.servers.values())[-CLIENTS:]


def check(racers: Racers) -> None:
    """Let all come to an end: nothing is under way, and the quota is what there is."""
    racers.site.docks.settle()
    assert not Operation.objects.filter(ended=None).exists()
    assert list(quota.drifts()) == []


@pytest.mark.requirement("S1-15")
def test_of_many_attachments_at_once_one_wins(racers: Racers):
    for _ in range(ROUNDS):
        volume = racers.site.anna.new_volume()["id"]
        wishes = [racers.attach(volume, one) for one in servers(racers)]
        answers = racers.race(wishes)
        assert sorted(one.status for one in answers) == [200] + [400] * (CLIENTS - 1)
        for one in answers:
            assert one.status == 200 or "Invalid volume: " in one.fault
        (won,) = (one.body for one in answers if one.status == 200)
        check(racers)
        (place,) = racers.site.anna.look({"id": volume})["attachments"]
        assert place["server_id"] == won["volumeAttachment"]["serverId"]
        assert Operation.objects.filter(volume__uuid=volume).count() == 1


def test_the_same_attachment_asked_for_many_times_is_one(racers: Racers):
    volume = racers.site.anna.new_volume()["id"]
    wishes = [racers.attach(volume, servers(racers)[0])] * CLIENTS
    assert {one.status for one in racers.race(wishes)} == {200}
    check(racers)
    assert Operation.objects.filter(volume__uuid=volume).count() == 1


def test_attachments_extensions_and_deletions_at_once(racers: Racers):
    for _ in range(ROUNDS):
        volume = racers.site.anna.new_volume()["id"]
        # It has data, so that each of them takes a job.
        racers.attach(volume, servers(racers)[0])()
        racers.site.docks.settle()
        where = f"{COMPUTE}/servers/{servers(racers)[0].uuid}/os-volume_attachments"
        told = racers.cloud.ask("DELETE", f"{where}/{volume}", racers.site.anna.token)
        assert told.status == 202
        check(racers)
        before = Operation.objects.count()
        attached = [racers.attach(volume, one) for one in servers(racers)[:6]]
        extended = [racers.extend(volume, size) for size in (2, 3, 4, 5, 6)]
        wishes = attached + extended + [racers.delete(volume)] * 5
        answers = racers.race(wishes)
        assert {one.status for one in answers} <= {200, 202, 400, 404}
        # Whoever asks to delete what is being deleted is told that it is.
        won = {one.status != 400 for one in answers[11:] if one.status != 404}
        others = [one for one in answers[:11] if one.status < 300]
        assert len(others) + (True in won) == 1
        assert Operation.objects.count() == before + 1
        check(racers)


def test_no_more_is_made_than_the_quota_allows(racers: Racers):
    answers = racers.race([racers.create(1)] * CLIENTS)
    assert sorted(one.status for one in answers) == [202] * 10 + [413] * 6
    check(racers)
    assert quota.usage(racers.site.red.pk)["volumes"] == 10
