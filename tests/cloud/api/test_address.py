# SPDX-License-Identifier: BSD-2-Clause
"""Where clients are told to go, if the settings say under which address they come."""

import json
import os
import re
import sys
from pathlib import Path
from subprocess import CompletedProcess, run
from typing import Any

import pytest

URL = "https://cloud.example.org/storage"
LINK = re.compile(r'https?://[^"]*')
PROGRAM = """
import json, sys, django; django.setup()
from django.test import Client
from moorage_cloud.identity import people
from moorage_cloud.identity.models import Role
from moorage_cloud.models import VolumeType

VolumeType.objects.create(name="fast", disk_template="ext_named", is_default=True)
red = people.add_project("red")
anna = people.add_user("anna", "a word that opens", red)
people.grant(anna, red, Role.MEMBER)
login = {"methods": ["password"], "password": {
    "user": {"id": anna.pk, "password": "a word that opens"}}}
body = {"auth": {"identity": login, "scope": {"project": {"id": red.pk}}}}
token = ""
told = {}

def ask(method, path, body=""):
    given = {"X-Auth-Token": token, "Host": "somebody.else.example"}
    answer = Client().generic(
        method, path, json.dumps(body), "application/json", headers=given)
    told[path.replace(red.pk, "RED").replace(anna.pk, "ANNA")] = [
        answer.status_code,
        answer.content.decode().replace(red.pk, "RED"),
        answer.headers.get("WWW-Authenticate", ""),
    ]
    return answer

ask("GET", "/volume/v3/types")
token = ask("POST", "/identity/v3/auth/tokens", body).headers["X-Subject-Token"]
for _ in range(2):
    ask("POST", f"/volume/v3/{red.pk}/volumes", {"volume": {"size": 1}})
for path in (
    *("/identity", "/identity/v3", "/volume", "/volume/v3", "/compute/v2.1", "/image"),
    *("/volume/openapi.json", "/identity/v3/auth/projects"),
    f"/identity/v3/users/{anna.pk}/application_credentials?name=x",
    f"/volume/v3/{red.pk}/volumes?limit=1",
):
    ask("GET", path)
print(json.dumps(told))
"""


def program(tmp_path: Path, url: str) -> "CompletedProcess[str]":
    conf = tmp_path / "cloud.toml"
    conf.write_text(
        f'database = "{tmp_path}/cloud.sqlite"\nkey_file = "{tmp_path}/key"\n'
        f'url = "{url}"\n'
    )
    return run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"MOORAGE_CLOUD": str(conf)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_whoever_asks_is_told_the_address_of_the_settings(
    template: Path, tmp_path: Path
):
    (tmp_path / "cloud.sqlite").write_bytes(template.read_bytes())
    done = program(tmp_path, URL + "/")
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    status, _, challenge = told.pop("/volume/v3/types")
    assert (status, challenge) == (401, f'Keystone uri="{URL}/identity"')
    assert len(told) == 12
    for path, (_, text, _) in told.items():
        links = LINK.findall(text)
        assert links, (path, text)
        assert {one[: len(URL) + 1] for one in links} == {f"{URL}/"}, (path, text)
    asked = "/volume/v3/RED/volumes?limit=1"
    assert f"{URL}{asked}&marker=" in told[asked][1]


@pytest.mark.parametrize(
    "url", ["cloud.example.org", "ftp://cloud.example.org", "https://", "https://a/?b"]
)
def test_what_is_no_address_is_refused(tmp_path: Path, url: str):
    done = program(tmp_path, url)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"{tmp_path}/cloud.toml: url is to be http(s)://HOST[:PORT][/PATH], not {url}"
    ]
