# SPDX-License-Identifier: BSD-2-Clause
"""The administrator's commands name people and projects as those call themselves."""

import json

from site_of_people import Site
from snf_manage import types

from moorage_cloud.models import Server


def test_a_volume_that_is_made_for_somebody_is_theirs(site: Site):
    types("volume-create --size 1 --name given --user anna --project red")
    (listed,) = site.anna.volumes("GET", "/volumes/detail").body["volumes"]
    assert (listed["name"], listed["user_id"]) == ("given", site.anna.user.pk)
    used = json.loads(types("quota --project red -o json"))
    assert {row["resource"]: row["in_use"] for row in used}["volumes"] == 1


def test_a_limit_that_is_set_by_name_holds(site: Site):
    types("quota --project red --set volumes=0")
    answer = site.anna.volumes("POST", "/volumes", {"volume": {"size": 1}})
    assert answer.status == 413, answer.body


def test_a_server_that_is_taken_for_somebody_is_theirs(harbour: Site):
    Server.objects.all().delete()
    types("server-create --backend-id a --instance snf-a1 --user anna --project red")
    (listed,) = harbour.anna.servers("GET", "").body["servers"]
    assert listed["name"] == "snf-a1"
