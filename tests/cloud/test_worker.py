# SPDX-License-Identifier: BSD-2-Clause
"""A worker goes on, whatever becomes of one cluster."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from docks import Docks
from which_database import go_to

from moorage_cloud.clusters import ClusterSilent
from moorage_cloud.models import Backend, Operation, Outbox, Volume
from moorage_cloud.verbs import NewVolume, attach, create
from moorage_cloud.work import Doors, Worker, look_next, send_next


def attaching(docks: Docks, server: str) -> Volume:
    volume = create(docks.anna, NewVolume(size=1, volume_type=docks.type))
    attach(docks.anna, volume, docks.servers[server])
    return volume


@contextmanager
def working(docks: Docks) -> Iterator[None]:
    worker = Worker(docks.connect, listen=0.05)
    worker.start()
    try:
        yield
    finally:
        worker.stop()


def comes(what: Callable[[], object]) -> bool:
    end = time.monotonic() + 20
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(what())


def breaks(*_args: object) -> NoReturn:
    raise KeyError("size")


@pytest.mark.parametrize("what", ["submit", "events"])
def test_what_nobody_foresaw_of_one_cluster_stops_no_other(docks: Docks, what: str):
    a, b = docks.piers["a"], docks.piers["b"]
    setattr(a, what, breaks)
    attaching(docks, "a1")
    with working(docks):
        assert comes(lambda: what != "events" or a.asked)
        other = attaching(docks, "b1")
        assert comes(lambda: b.waiting)
        b.run()
        assert comes(lambda: docks.again(other).status == "in-use")


def test_a_silent_cluster_holds_up_no_other(docks: Docks):
    """Each question to it takes as long as nobody is waited for."""
    a, b = docks.piers["a"], docks.piers["b"]
    held = [attaching(docks, "a1") for _ in range(3)]
    waits = attaching(docks, "b1")
    asked: list[str] = []

    def nobody(*_args: object) -> NoReturn:
        asked.append("a")
        raise ClusterSilent("a")

    a.submit = nobody  # type: ignore[method-assign]
    docks.send()
    assert (len(asked), len(b.waiting)) == (1, 1)
    Outbox.objects.all().delete()
    Operation.objects.update(job=1, look_at=waits.created)
    a.job = nobody  # type: ignore[method-assign]
    b.run()
    while look_next(docks.connect):
        pass
    assert len(asked) == 2
    assert docks.again(waits).status == "in-use"
    assert {docks.again(one).status for one in held} == {"attaching"}


def test_a_cluster_whose_authority_is_gone_is_one_that_does_not_answer(docks: Docks):
    volume = attaching(docks, "a1")
    Backend.objects.filter(clustername="a").update(ca="/nowhere/ca.pem")
    doors = Doors()
    assert send_next(doors)
    assert docks.again(volume).status == "attaching"
    docks.send()
    volume.operations.update(job=1, look_at=volume.created)
    assert look_next(doors)
    assert docks.again(volume).status == "attaching"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_database_that_is_away_is_told_of_once(
    docks: Docks,
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    monkeypatch.setattr("moorage_cloud.work.worker._AGAIN", 0.01)
    away = tmp_path / "away" / "cloud.sqlite"
    go_to(str(away))
    with working(docks):
        assert comes(lambda: "database" in caplog.text)
        time.sleep(0.3)
        assert caplog.text.count("the database does not answer") == 1
        away.parent.mkdir()
        shutil.copyfile(database, away)
        assert comes(lambda: "the database answers again" in caplog.text)
