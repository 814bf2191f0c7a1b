# SPDX-License-Identifier: BSD-2-Clause
"""What an operator's programs are told: health, metrics, and lines of the log."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from site_of_people import VOLUME, Site

from moorage_cloud.api.operator.metrics import drifts_at
from moorage_cloud.conf import CONF
from moorage_cloud.models import Backend, Heartbeat, Operation, Usage
from moorage_cloud.tracing import JsonLines

KEY = "a-key-that-is-long-enough"
WHOLE = "req-0a1b2c3d-0000-4000-8000-000000000001"
"""What a client calls all that it asks for with one end."""


def health(**headers: str) -> tuple[int, str]:
    response = Client().get("/healthcheck", headers=headers)
    return response.status_code, response.content.decode()


@pytest.mark.usefixtures("database")
def test_a_balancer_learns_whether_requests_are_worth_sending():
    assert health() == (503, "no worker is at work")
    Heartbeat.beat("here:1")
    assert health() == (200, "OK")
    answer = json.loads(health(Accept="application/json")[1])
    assert answer == {"detailed": False, "reasons": ["OK"]}
    assert Client().head("/healthcheck").status_code == 200
    assert Client().post("/healthcheck").status_code == 405
    Heartbeat.objects.update(seen=timezone.now() - timedelta(seconds=61))
    assert health() == (503, "no worker is at work")


@pytest.mark.usefixtures("database")
def test_a_database_that_is_away_is_told(monkeypatch: pytest.MonkeyPatch):
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "NAME", "/nowhere/at/all")
    assert health() == (503, "the database does not answer")


@pytest.mark.usefixtures("database")
def test_a_worker_that_died_is_forgotten():
    Heartbeat.objects.create(name="old", seen=timezone.now() - timedelta(hours=2))
    Heartbeat.beat("new")
    Heartbeat.beat("new")
    assert [one.name for one in Heartbeat.objects.all()] == ["new"]


# -- metrics ---------------------------------------------------------------------------


@pytest.fixture
def key() -> Iterator[Path]:
    """Return the file with the key of metrics, which the settings of tests name."""
    file = Path(CONF.metrics_key_file)
    file.write_text(KEY + "\n")
    yield file
    file.unlink()


def scrape(key: str = KEY) -> dict[tuple[str, ...], float]:
    """Return what is told: names with values of labels, as these sort, and numbers."""
    response = Client().get("/metrics", headers={"Authorization": f"Bearer {key}"})
    assert response.status_code == 200, response.content
    return {
        (one.name.removeprefix("moorage_cloud_"), *one.labels.values()): one.value
        for family in text_string_to_metric_families(response.content.decode())
        for one in family.samples
    }


@pytest.mark.usefixtures("database")
def test_metrics_are_told_to_who_has_the_key(key: Path):
    for wrong in ({}, {"Authorization": "Bearer x"}, {"Authorization": KEY}):
        answer = Client().get("/metrics", headers=wrong)
        assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
        assert b"moorage" not in answer.content
    assert scrape()[("database_up",)] == 1
    for text in ("", "short"):
        key.write_text(text)
        for given in (text, KEY):
            headers = {"Authorization": f"Bearer {given}"}
            assert Client().get("/metrics", headers=headers).status_code == 404


@pytest.mark.usefixtures("database")
def test_without_a_key_nobody_is_told_metrics():
    headers = {"Authorization": "Bearer "}
    assert Client().get("/metrics", headers=headers).status_code == 404


@pytest.mark.usefixtures("key")
def test_metrics_say_what_the_database_knows(site: Site):
    made = site.anna.new_volume()
    site.anna.new_volume(server_id=site.server("a1"))
    now = timezone.now()
    Operation.objects.update(created=now - timedelta(minutes=5))
    told = scrape()
    assert (told["volumes", "available"], told["volumes", "attaching"]) == (1, 1), told
    assert told["outbox_messages", "a"] == 1
    assert 300 <= told["outbox_oldest_seconds", "a"] < 360
    assert told["operations_under_way", "attach"] == 1
    assert 300 <= told["operation_oldest_seconds", "attach"] < 360
    assert told["operations_late", "attach"] == 0
    assert ("cluster_heard_seconds", "a") not in told
    assert told["workers",] == 0

    Operation.objects.update(look_at=now - timedelta(minutes=2))
    Backend.objects.filter(clustername="a").update(heard=now - timedelta(seconds=50))
    Backend.objects.filter(clustername="b").update(offline=True)
    Heartbeat.beat("here:1")
    told = scrape()
    assert told["operations_late", "attach"] == 1
    assert 50 <= told["cluster_heard_seconds", "a"] < 110
    assert (told["cluster_offline", "a"], told["cluster_offline", "b"]) == (0, 1)
    assert told["workers",] == 1
    assert told["worker_seen_seconds",] < 60

    site.docks.settle()
    told = scrape()
    assert told["operations_total", "done", "attach"] == 1
    assert told["volumes", "in-use"] == 1
    assert ("outbox_messages", "a") not in told
    assert made


@pytest.mark.usefixtures("key")
def test_metrics_count_requests_by_route(site: Site):
    route = f"/{VOLUME[1:]}/volumes/{{volume_id}}"
    made = site.anna.new_volume()
    before = scrape()
    site.anna.look(made)
    site.anna.look(made)
    site.anna.volumes("GET", f"/volumes/{made['id'][:-1]}x")
    Client().generic("BREW", "/nowhere")
    after = scrape()

    def more(*labels: str) -> float:
        return after[labels] - before.get(labels, 0)

    assert more("requests_total", "GET", route, "200") == 2
    assert more("requests_total", "GET", route, "404") == 1
    assert more("request_seconds_count", "GET", route) == 3
    assert more("requests_total", "other", "", "404") == 1
    assert not [one for one in after if made["id"] in str(one)]


@pytest.mark.usefixtures("site")
def test_quota_that_drifted_is_counted():
    Usage.objects.create(project="red", resource="volumes", in_use=7)
    turns = iter(range(10**9, 10**9 + 9))
    assert drifts_at(next(turns)) == 1
    Usage.objects.all().delete()
    assert drifts_at(next(turns)) == 0


def test_processes_count_together(tmp_path: Path):
    conf = tmp_path / "cloud.toml"
    conf.write_text(f'metrics_dir = "{tmp_path}"\n')

    def run(words: str) -> str:
        counted = "from moorage_cloud.api.wire.counted import *;"
        return subprocess.run(
            [sys.executable, "-c", f"{counted}{words}"],
            env={**os.environ, "MOORAGE_CLOUD": str(conf)},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout

    for _ in range(2):
        run("count('GET', '/volume/v3/volumes', 200, 0.02)")
    told = run(
        "from prometheus_client import generate_latest;"
        "print(generate_latest(counted()).decode())"
    )
    line = 'route="/volume/v3/volumes",status="200"} 2.0'
    assert line in told
    assert 'route="/volume/v3/volumes"} 0.04' in told


# -- the trace -------------------------------------------------------------------------


@pytest.fixture
def log() -> Iterator[StringIO]:
    """Return what is logged meanwhile, as the service writes it."""
    handler = logging.StreamHandler(StringIO())
    handler.setFormatter(JsonLines())
    logging.getLogger().addHandler(handler)
    yield handler.stream
    logging.getLogger().removeHandler(handler)


def lines(log: StringIO) -> list[dict[str, object]]:
    return [json.loads(one) for one in log.getvalue().splitlines()]


def test_one_id_is_followed_from_the_client_to_the_clusters_job(
    harbour: Site, log: StringIO
):
    made = harbour.anna.new_volume()
    path = f"{VOLUME}/attachments"
    body = {
        "attachment": {
            "volume_uuid": made["id"],
            "instance_uuid": harbour.server("a1"),
        }
    }
    headers = {
        "X-Openstack-Request-Id": WHOLE,
        "OpenStack-API-Version": "volume 3.71",
    }
    answer = harbour.anna.ask("POST", path, body, **headers)
    assert answer.status == 200, answer.body
    own = answer.headers["X-Openstack-Request-Id"]
    assert own.startswith("req-")
    assert own != WHOLE
    harbour.docks.settle()

    operation = Operation.objects.get()
    assert (operation.request_id, operation.global_request_id) == (own, WHOLE)
    (job,) = harbour.docks.towns.jobs("a")
    reason = f"cloud:{harbour.anna.user.pk}:{own}:{WHOLE}"
    assert reason in [entry[1] for entry in job["reason"]]

    mine = [one for one in lines(log) if one.get("request") == own]
    assert {one["global_request"] for one in mine} == {WHOLE}
    (asked,) = [one for one in mine if one.get("path") == path]
    assert (asked["method"], asked["status"]) == ("POST", 200)
    assert (asked["user"], asked["project"]) == (
        harbour.anna.user.pk,
        harbour.red.pk,
    )
    sent, ended = (one["message"] for one in mine if "operation" in one)
    assert sent == f"cluster a has job 3 for attach {operation.uuid}"
    assert ended == f"attach {operation.uuid}: done"


@pytest.mark.parametrize(
    "path", ["/volume/", f"{VOLUME}/openapi.json", "/healthcheck", "/metrics", "/odd"]
)
@pytest.mark.usefixtures("database")
def test_every_answer_has_an_id(path: str):
    answer = Client().get(path)
    assert answer["X-Openstack-Request-Id"].startswith("req-")


@pytest.mark.parametrize("given", ["", "me", f"{WHOLE}x", WHOLE.upper(), WHOLE + "\n"])
def test_an_id_that_is_not_well_formed_is_left_aside(site: Site, given: str):
    body = {"volume": {"size": 1, "server_id": site.server("a1")}}
    headers = {"X-Openstack-Request-Id": given} if given else {}
    answer = site.anna.ask("POST", f"{VOLUME}/volumes", body, **headers)
    assert answer.status == 202, answer.body
    operation = Operation.objects.get()
    assert operation.global_request_id == ""
    assert operation.request_id == answer.headers["X-Openstack-Request-Id"]


def test_a_line_of_the_log_is_one_object(log: StringIO):
    try:
        int("first\nsecond")
    except ValueError:
        logging.getLogger("x").exception("a\nb")
    (line,) = lines(log)
    assert (line["level"], line["logger"], line["message"]) == ("ERROR", "x", "a\nb")
    assert "first\\nsecond" in str(line["error"])
