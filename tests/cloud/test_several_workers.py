# SPDX-License-Identifier: BSD-2-Clause
"""Several workers, and a database that is away for a while."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Barrier, Event

import pytest
from django.db import connection
from docks import Docks, Pier
from installation import Cloud
from site_of_people import VOLUME, Site
from snf_manage import refused

from moorage.daemons.process import wait_until
from moorage_cloud.clusters import Heard, Job, JobState
from moorage_cloud.models import Backend, Operation, Outbox, Volume
from moorage_cloud.verbs import (
    Caller,
    NewVolume,
    attach,
    create,
    delete,
    detach,
    holding_server,
    quota,
    take_snapshot,
)
from moorage_cloud.verbs.changing import changing, changing_snapshot
from moorage_cloud.verbs.transfers import accept, offer
from moorage_cloud.work import Worker, hear, place_of_worker, send_next
from support.postgres import Postgres

on_postgresql = pytest.mark.parametrize(
    "database", [pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


class Slow(Pier):
    """A cluster that takes its time to tell what happens."""

    def events(self, after: int | None, seconds: float = 0) -> Iterator[Heard]:
        time.sleep(0.05)
        return super().events(after, seconds)


def slow(docks: Docks) -> None:
    for pier in docks.piers.values():
        pier.__class__ = Slow


def volumes(docks: Docks, number: int) -> list[Volume]:
    """Return volumes that are being attached."""
    made = []
    for _ in range(number):
        one = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
        attach(docks.anna, one, docks.servers["a1"])
        made.append(one)
    return made


@on_postgresql
def test_senders_ask_at_the_same_time_and_nothing_twice(docks: Docks):
    together, asked = Barrier(4), []

    class Counting(Pier):
        def submit(self, request: object, key: str, reason: str) -> int:
            del request, reason
            together.wait(30)  # in vain, if one waited for what another one has
            asked.append(key)
            return len(asked)

    def send(_: int) -> None:
        try:
            while send_next(lambda backend: Counting(backend.clustername, {})):
                pass
        finally:
            connection.close()

    volumes(docks, 8)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, range(4)))
    assert len(asked) == len(set(asked)) == 8
    assert not Outbox.objects.exists()


@on_sqlite
def test_on_sqlite_a_second_worker_is_refused(database: str):
    with place_of_worker() as alone:
        assert alone
        assert refused("worker") == (
            f"a worker is at work on {database} already: with SQLite there is one, for "
            "several take PostgreSQL"
        )
    with place_of_worker() as alone:
        assert alone


def ends(docks: Docks) -> bool:
    """Let the clusters work, and leases run out; return whether no verb goes on."""
    Outbox.objects.update(taken_until=None)
    for pier in docks.piers.values():
        pier.run()
    return not Operation.objects.filter(ended=None).exists()


@on_postgresql
def test_a_worker_goes_on_when_its_connections_were_killed(
    docks: Docks, postgres: Postgres, database: str
):
    assert database
    slow(docks)
    here = connection.settings_dict["NAME"]
    workers = [Worker(docks.connect, senders=2, listen=0.1) for _ in range(2)]
    for one in workers:
        one.start()
    try:
        made = volumes(docks, 6)
        for _ in range(10):
            connection.close()
            postgres.hang_up(here)
            ends(docks)
            time.sleep(0.1)
        assert wait_until(lambda: ends(docks), 60), list(Operation.objects.values())
        assert {docks.again(one).status for one in made} == {"in-use"}
        for one in made:
            detach(docks.anna, one)
        assert wait_until(lambda: ends(docks), 60)
    finally:
        for one in workers:
            one.stop()
    assert {docks.again(one).status for one in made} == {"available"}
    assert list(quota.drifts()) == []
    assert len(docks.piers["a"].keys) == 12


@on_postgresql
def test_what_is_heard_and_what_users_want_never_wait_for_each_other(docks: Docks):
    first, second = made = [
        create(docks.anna, NewVolume(size=1, volume_type=docks.type)) for _ in "12"
    ]
    for one in made:
        attach(docks.anna, one, docks.servers["a1"])
    docks.settle()
    for one in made:
        delete(docks.anna, one)
    docks.send()
    pier = docks.piers["a"]
    both = dict.fromkeys(pier.waiting, Job(JobState.DONE))
    assert len(both) == 2
    pier.run()
    backend = docks.servers["a1"].backend

    def listen() -> None:
        try:
            hear(backend, Heard(10**6, both), pier)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with changing(second):
            heard = pool.submit(listen)
            time.sleep(0.5)  # until it waits for the second volume
            quota.charge("red", docks.type.name, gigabytes=1)
            quota.charge("red", docks.type.name, gigabytes=-1)
        heard.result(30)
    assert {docks.again(one).status for one in (first, second)} == {"deleted"}
    assert list(quota.drifts()) == []


@on_postgresql
def test_a_volume_for_a_server_does_not_wait_while_it_holds_the_quota(docks: Docks):
    server = docks.servers["a1"]
    create(docks.anna, NewVolume(size=1, volume_type=docks.type))
    new = NewVolume(size=1, volume_type=docks.type, server=server)

    def make() -> Volume:
        try:
            return create(docks.anna, new)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with holding_server(server):
            made = pool.submit(make)
            time.sleep(0.5)  # until it waits for the server
            quota.charge("red", docks.type.name, gigabytes=1)
            quota.charge("red", docks.type.name, gigabytes=-1)
        assert made.result(30).status == "creating"
    assert list(quota.drifts()) == []


def test_a_worker_that_lags_behind_forgets_nothing(docks: Docks):
    backend, pier = docks.servers["a1"].backend, docks.piers["a"]
    for number in (5, 3):
        hear(backend, Heard(number), pier)
    assert Backend.objects.get(pk=backend.pk).event_number == 5
    hear(backend, Heard(2, reset=True), pier)  # a cluster that was made anew
    assert Backend.objects.get(pk=backend.pk).event_number == 2


@on_postgresql
def test_the_api_goes_on_when_the_database_was_away(
    docks: Docks, postgres: Postgres, database: str, tmp_path: Path
):
    site = Site(docks)
    path = f"{VOLUME}/{site.red.pk}/volumes"
    cloud = Cloud(tmp_path, database)

    def asked() -> int:
        return cloud.ask("GET", path, site.anna.token).status

    try:
        cloud.web(processes=1)
        assert asked() == 200
        postgres.kill()
        told = cloud.ask("GET", path, site.anna.token)
        assert told.status == 503
        assert told.fault == "serviceUnavailable 503: The database does not answer."
        postgres.start()
        assert asked() == 200
        assert asked() == 200
    finally:
        cloud.close()
        connection.close()


@on_postgresql
def test_a_transfer_counts_no_snapshot_that_goes_meanwhile(docks: Docks):
    (one,) = volumes(docks, 1)
    docks.settle()
    snapshot = take_snapshot(docks.anna, one)
    docks.settle()
    detach(docks.anna, one)
    docks.settle()
    transfer, key = offer(docks.anna, docks.again(one))
    bob = Caller("bob", "blue")

    def accepted() -> None:
        try:
            accept(bob, transfer, key)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with changing_snapshot(snapshot) as held:
            taken = pool.submit(accepted)
            time.sleep(0.5)  # until it waits for the snapshot
            quota.charge("red", docks.type.name, gigabytes=-1, snapshots=-1)
            held.deleted = True
            held.save()
        taken.result(30)
    assert list(quota.drifts()) == []
    assert quota.usage("blue")["snapshots"] == 0


@on_postgresql
def test_nothing_that_is_made_meanwhile_looks_like_a_drift(docks: Docks):
    over = Event()

    def make() -> None:
        try:
            for number in count():
                if over.is_set():
                    return
                who = Caller("anna", f"project {number}")  # each with rows of its own
                create(who, NewVolume(size=1, volume_type=docks.type))
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(make)
        try:
            found = [list(quota.drifts()) for _ in range(40)]
            repaired = [quota.repair() for _ in range(20)]
        finally:
            over.set()
        making.result(30)
    assert not any(found)
    assert not any(repaired)
    assert list(quota.drifts()) == []
