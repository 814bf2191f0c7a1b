# SPDX-License-Identifier: BSD-2-Clause
"""What is common to the services: versions, errors, paths, request ids."""

import json

import pytest
from django.test import Client
from site_of_people import COMPUTE, VOLUME, Site, ask


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/volume", 300),
        ("/volume/", 300),
        ("/volume/v3", 200),
        ("/volume/v3/", 200),
        ("/compute/", 200),
        ("/compute/v2.1", 200),
        ("/identity", 300),
        ("/identity/v3", 200),
    ],
)
@pytest.mark.usefixtures("site")
def test_versions_are_told_to_everybody(path: str, status: int):
    answer = ask("GET", path)
    assert answer.status == status
    assert "http://testserver" in str(answer.body)


@pytest.mark.usefixtures("site")
def test_block_storage_says_which_versions_it_speaks():
    (one,) = ask("GET", "/volume/v3/").body["versions"]
    assert (one["id"], one["min_version"], one["version"]) == ("v3.0", "3.0", "3.71")


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ({}, "3.0"),
        ({"OpenStack-API-Version": "volume 3.27"}, "3.27"),
        ({"OpenStack-API-Version": "volume latest"}, "3.71"),
        ({"OpenStack-API-Version": "compute 2.60, volume 3.50"}, "3.50"),
    ],
)
def test_the_version_that_is_spoken_is_echoed(
    site: Site, asked: dict[str, str], spoken: str
):
    answer = site.anna.ask("GET", f"{VOLUME}/volumes", **asked)
    assert answer.status == 200
    assert answer.headers["OpenStack-API-Version"] == f"volume {spoken}"
    assert answer.headers["Vary"] == "OpenStack-API-Version"
    assert answer.headers["x-openstack-request-id"].startswith("req-")
    assert answer.headers["x-compute-request-id"].startswith("req-")


def test_compute_knows_its_older_header(site: Site):
    legacy = "X-OpenStack-Nova-API-Version"
    answer = site.anna.ask("GET", f"{COMPUTE}/servers", **{legacy: "2.60"})
    assert answer.headers[legacy] == "2.60"
    assert answer.headers["OpenStack-API-Version"] == "compute 2.60"


@pytest.mark.parametrize("text", ["3.72", "3.99", "2.0", "4.0"])
def test_a_version_that_is_not_spoken_is_refused(site: Site, text: str):
    answer = site.anna.volumes("GET", "/volumes", at=text)
    assert answer.status == 406
    assert answer.fault == (
        f"computeFault 406: Version {text} is not supported by the API. Minimum is 3.0 "
        "and maximum is 3.71."
    )


@pytest.mark.parametrize("text", ["3", "three", "3.x", "3.07.1"])
def test_what_is_no_version_is_refused(site: Site, text: str):
    answer = site.anna.volumes("GET", "/volumes", at=text)
    assert answer.status == 400
    assert answer.fault.startswith("badRequest 400: API Version String")


@pytest.mark.usefixtures("site")
def test_without_a_token_nothing_is_told():
    for token in ({}, {"X-Auth-Token": "nonsense"}):
        answer = ask("GET", f"{VOLUME}/volumes", **token)
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith("Keystone uri=")
        assert answer.fault == (
            "error 401: The request you have made requires authentication."
        )


def test_paths_are_good_with_and_without_the_project(site: Site):
    made = site.anna.new_volume(name="one")
    for prefix in (VOLUME, f"{VOLUME}/{site.red.pk}"):
        answer = site.anna.ask("GET", f"{prefix}/volumes/{made['id']}")
        assert answer.body["volume"]["name"] == "one"
    answer = site.anna.ask("GET", f"{VOLUME}/{site.blue.pk}/volumes")
    assert answer.fault == "badRequest 400: Malformed request url"


def test_what_is_not_there_is_not_found(site: Site):
    assert site.anna.volumes("GET", "/nonsense").status == 404
    assert site.anna.volumes("PATCH", "/volumes").fault.startswith("badMethod 405")
    # What came with a later version is not there before it.
    assert site.anna.volumes("GET", "/attachments", at="3.26").status == 404
    assert site.anna.volumes("GET", "/attachments", at="3.27").status == 200


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "it is not JSON"),
        (b"[1]", "Expected `object`"),
        (b"{}", "required field `volume`"),
        (b'{"volume": {"size": "many"}}', "volume.size"),
        (b'{"volume": {"size": 0}}', "volume.size"),
        (b'{"volume": {"size": -1}}', "volume.size"),
        (b'{"volume": {"size": 1, "name": 7}}', "volume.name"),
        (b'{"volume": {"size": 1, "odd": 7}}', "'odd' was unexpected"),
        (b'{"volume": {"size": 1}, "odd": 7}', "'odd' was unexpected"),
    ],
)
def test_a_body_is_what_its_version_says(site: Site, body: bytes, words: str):
    from django.test import Client  # noqa: PLC0415

    response = Client().generic(
        "POST",
        f"{VOLUME}/volumes",
        body,
        content_type="application/json",
        headers={
            "X-Auth-Token": site.anna.token,
            "OpenStack-API-Version": "volume latest",
        },
    )
    fault = response.json()["badRequest"]
    assert response.status_code == fault["code"] == 400
    assert words in fault["message"]


def test_a_field_is_there_from_its_version_on(site: Site):
    new = {"volume": {"size": 1, "backup_id": None}}
    # Before 3.53 what is unknown is left aside; from then on it is refused, and by then
    # backups are known.
    assert site.anna.volumes("POST", "/volumes", new, at="3.46").status == 202
    assert site.anna.volumes("POST", "/volumes", new, at="3.53").status == 202
    odd = {"volume": {"size": 1, "odd": 7}}
    assert site.anna.volumes("POST", "/volumes", odd, at="3.52").status == 202
    assert site.anna.volumes("POST", "/volumes", odd, at="3.53").status == 400


NEW = {
    "3.13": {"group_id"},
    "3.48": {"shared_targets", "service_uuid"},
    "3.63": {"volume_type_id"},
    "3.65": {"consumes_quota"},
}


@pytest.mark.parametrize(("text", "names"), NEW.items())
def test_an_answer_has_what_its_version_has(site: Site, text: str, names: set[str]):
    made = site.anna.new_volume()
    path = f"/volumes/{made['id']}"
    before = f"3.{int(text[2:]) - 1}"
    older = site.anna.volumes("GET", path, at=before).body["volume"]
    newer = site.anna.volumes("GET", path, at=text).body["volume"]
    assert newer.keys() - older.keys() == names


def test_a_body_that_is_too_large_is_refused(site: Site):
    answer = site.anna.volumes("POST", "/volumes", {"volume": {"name": "x" * 200_000}})
    assert answer.status == 413


@pytest.mark.parametrize(
    ("field", "value"),
    [("HTTP_HOST", "a b"), ("HTTP_HOST", "a_b"), ("CONTENT_LENGTH", "many")],
)
def test_a_header_that_means_nothing_is_refused(site: Site, field: str, value: str):
    answer = Client().generic(
        "POST",
        f"{VOLUME}/volumes",
        json.dumps({"volume": {"size": 1}}),
        "application/json",
        headers={"X-Auth-Token": site.anna.token},
        **{field: value},
    )
    assert answer.status_code == 400
    assert "Malformed request" in answer.json()["badRequest"]["message"]


BIG = 2**64


@pytest.mark.parametrize(
    "query",
    [
        *("name=%00", "marker=%00", "k%00=1", "metadata={'\\x00':'1'}"),
        *("metadata={'a':'\\ud800'}", f"offset={BIG}", "limit=-1"),
        *("created_at=gt:9999-12-31T23:59:59-23:59", "created_at=odd"),
    ],
)
def test_a_question_that_no_database_could_answer_is_refused(site: Site, query: str):
    assert site.anna.volumes("GET", f"/volumes?{query}").status == 400


@pytest.mark.parametrize("query", [f"limit={BIG}", f"size={BIG}", "name=%FF"])
def test_an_odd_question_has_an_answer(site: Site, query: str):
    assert site.anna.volumes("GET", f"/volumes?{query}").status == 200


@pytest.mark.parametrize(
    ("name", "status"), [("%00", 400), ("a%0Ab", 404), ("..", 404)]
)
def test_an_odd_name_in_a_path_is_answered_as_any(site: Site, name: str, status: int):
    for path in (f"/volumes/{name}", f"/types/{name}", f"/{name}"):
        answer = site.anna.volumes("GET", path)
        assert answer.status == status
        assert answer.fault


@pytest.mark.parametrize("text", ["\0", "a\0b"])
def test_a_text_that_no_database_could_keep_is_refused(site: Site, text: str):
    for new in ({"name": text}, {"metadata": {text: "1"}}, {"metadata": {"k": text}}):
        answer = site.anna.volumes("POST", "/volumes", {"volume": {"size": 1, **new}})
        assert answer.fault.startswith("badRequest 400: Malformed request")
    made = site.anna.new_volume(name="a \\u0000 that is none")
    assert made["name"] == "a \\u0000 that is none"
