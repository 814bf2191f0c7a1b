# SPDX-License-Identifier: BSD-2-Clause
"""What requests cost the database: as many statements for many things as for few."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cloud_things import Things
from django.db import connection
from site_of_people import SECRET, Person, Site, ask

from moorage_cloud.api.urls import SERVICES
from moorage_cloud.api.volume.volumes import SORTABLE
from moorage_cloud.api.wire.service import Service
from moorage_cloud.identity import people
from moorage_cloud.identity.models import ApplicationCredential, Role
from moorage_cloud.models import Server, VolumeType
from moorage_cloud.verbs import quota

OF_A_CREATE = 14
"""Statements: two for the token, one for the type, eight for four rows of quota and
what limits them, one for the volume, one that asks where it is, and one for its
story."""


@contextmanager
def statements() -> Iterator[list[str]]:
    """Yield the statements that are executed meanwhile."""
    found: list[str] = []

    def noted(execute: Any, sql: str, *more: Any) -> Any:
        found.append(sql)
        return execute(sql, *more)

    with connection.execute_wrapper(noted):
        yield found


def add_more(site: Site, turn: int) -> None:
    """Make one more of everything that routes list."""
    anna, backend = site.anna, site.docks.type.domain.backends.first()
    name = f"more{turn}"
    site.docks.piers[backend.clustername].statuses[name] = "running"
    server = Server.objects.create(
        name=name,
        instance=name,
        userid=anna.user.pk,
        project=anna.project.pk,
        backend=backend,
    )
    made = anna.new_volume(metadata={"k": name}, server_id=str(server.uuid))
    site.docks.settle()
    wanted = {"snapshot": {"volume_id": made["id"], "metadata": {"k": name}}}
    assert anna.volumes("POST", "/snapshots", wanted).status == 202
    site.docks.settle()
    offered = {"transfer": {"volume_id": anna.new_volume()["id"]}}
    assert anna.volumes("POST", "/volume-transfers", offered).status == 202
    VolumeType.objects.create(name=name, disk_template="file", specs={"k": "v"})
    project = people.add_project(name)
    people.grant(people.add_user(name, SECRET, project), project, Role.MEMBER)
    people.grant(anna.user, project, Role.MEMBER)
    ApplicationCredential.objects.create(
        name=name,
        user=anna.user,
        project=site.red,
        roles=["member"],
        secret="x",  # noqa: S106 - the hash of none
    )


def look(service: Service, path: str, who: Person) -> None:
    headers = {"X-Auth-Token": who.token, "X-Subject-Token": who.token}
    if service.name:
        headers["OpenStack-API-Version"] = f"{service.name} latest"
    answer = ask("GET", path, **headers)
    assert answer.status < 500, path


LISTS = [one for one in SERVICES if one.projects or len(one.routes.endpoints) > 1]


@pytest.mark.slow
@pytest.mark.parametrize("service", LISTS, ids=lambda one: one.root)
def test_a_request_takes_as_many_statements_for_many_things(
    site: Site, service: Service
):
    quota.set_limits(site.red.pk, dict.fromkeys(quota.RESOURCES, -1))
    things = Things(site)
    paths = [
        f"/{service.root}{one.path.format(**things.ids)}"
        for one in service.routes.endpoints
        if one.method == "GET"
    ]
    turn, told_before = 0, dict[tuple[str, str], int]()
    for wanted in (1, 3):
        while turn < wanted:
            turn += 1
            add_more(site, turn)
        for path in paths:
            for who in (site.anna, site.root):
                key = (path, who.user.name)
                look(service, path, who)  # what is kept is read once
                with statements() as found:
                    look(service, path, who)
                before = told_before.setdefault(key, len(found))
                assert len(found) == before, (*key, *found)


def test_a_volume_is_made_with_few_statements(site: Site):
    site.anna.new_volume()
    with statements() as found:
        site.anna.new_volume()
    assert len(found) <= OF_A_CREATE, found


def plan(person: Person, path: str) -> str:
    """Return how the database finds the volumes that a path lists."""
    with statements() as found:
        assert person.volumes("GET", path).status == 200
    asked = [one for one in found if "ORDER BY" in one and 'FROM "cloud_volume"' in one]
    with connection.cursor() as cursor:
        # Which values are wanted changes no plan: there are no statistics.
        cursor.execute(
            f"EXPLAIN QUERY PLAN {asked[-1]}".replace("%s", "1").replace("%%", "%")
        )
        return " ".join(row[-1] for row in cursor.fetchall())


def check(found: str) -> None:
    """Refuse a plan that sorts all volumes, or looks for some among them."""
    assert "USING INDEX volumes_" in found, found
    assert "TEMP B-TREE" not in found, found


@pytest.mark.parametrize("key", SORTABLE)
def test_volumes_are_sorted_by_an_index(site: Site, key: str):
    made = site.anna.new_volume()
    for direction in ("asc", "desc"):
        path = f"/volumes/detail?sort={key}:{direction}"
        check(plan(site.anna, path))
        check(plan(site.anna, f"{path}&marker={made['id']}"))


@pytest.mark.parametrize("query", ["", "name=x", "status=error", "size=7"])
def test_volumes_are_found_by_an_index(site: Site, query: str):
    check(plan(site.anna, f"/volumes/detail?{query}"))


def test_volumes_of_all_are_listed_by_an_index(site: Site):
    check(plan(site.root, "/volumes/detail?all_tenants=1"))
