# SPDX-License-Identifier: BSD-2-Clause
"""Microversions: what came with one is not there below it, and is there at it.

The tests are made of what the declarations say. The page tells of every step; of those
that no declaration knows, it says that nothing changes, or a test here shows what does.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from cloud_things import Things
from django.db import transaction
from every_route import sample, send, told
from microversion_parse import Version
from msgspec import Struct
from msgspec.structs import fields
from site_of_people import Answer, Site

from moorage_cloud.api.compute.service import COMPUTE
from moorage_cloud.api.volume.service import VOLUME
from moorage_cloud.api.wire.bodies import Field, fields_of
from moorage_cloud.api.wire.routes import Endpoint
from moorage_cloud.api.wire.service import Service
from moorage_cloud.api.wire.versions import version

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "block-storage.md"
ROW = re.compile(r"^\| (3\.\d+) \| (.+) \| (.+) \|$", re.MULTILINE)
SERVICES = pytest.mark.parametrize(
    "service", [VOLUME, COMPUTE], ids=lambda one: one.name
)
NOT_THERE = (
    "itemNotFound 404: The resource could not be found.",
    "itemNotFound 404: Volume summary could not be found.",  # it is taken for an id
    "badMethod 405: ",
    "badRequest 400: There is no such action: ",
)
PLAUSIBLE = {
    "glance_metadata": "{'os': 'debian'}",
    "created_at": "gt:2020-01-01",
    "updated_at": "gt:2020-01-01",
    "metadata": "{'k': 'v'}",
    "extra_specs": "{'k': 'v'}",
    "sort": "id:asc",
    "sort_key": "id",
    "sort_dir": "asc",
    "marker": "",
    "volume-type": "fast",
}
"""Values that mean something to fields of texts."""


def before(at: Version) -> str:
    return f"{at.major}.{at.minor - 1}"


def after(at: Version) -> str:
    return f"{at.major}.{at.minor + 1}"


def marked(kind: object, within: str = "") -> Iterator[tuple[Field, str]]:
    """Yield fields that some versions have not, and the key of what they are in."""
    if not (isinstance(kind, type) and issubclass(kind, Struct)):
        return
    for one in fields_of(kind):
        if one.low or one.high:
            yield one, within
        yield from marked(one.within, one.key)


def is_there(answer: Answer) -> bool:
    return not (answer.status >= 400 and answer.fault.startswith(NOT_THERE))


def asked(
    things: Things, service: Service, one: Endpoint, at: str, **more: Any
) -> Answer:
    """Ask as who may, and let nothing come of it."""
    own = service is COMPUTE or "message" in one.path
    person = things.site.anna if own else things.site.root
    with transaction.atomic():
        headers = {"X-Auth-Token": person.token}
        answer = send(service, one, things, headers, at=at, **more)
        transaction.set_rollback(True)
    assert answer.status < 500 or answer.status == 503, told(service, one)
    return answer


@pytest.fixture
def things(site: Site) -> Things:
    """Return one of everything."""
    return Things(site)


def test_the_page_tells_of_each_step_and_keeps_to_the_declarations():
    rows = {step: here for step, _, here in ROW.findall(PAGE.read_text())}
    assert list(rows) == [f"3.{number}" for number in range(1, 72)]
    declared = {str(one.low) for one in VOLUME.routes.endpoints if one.low}
    for one in VOLUME.routes.endpoints:
        for kind in (one.body, one.query, one.answer):
            declared |= {str(mark.low) for mark, _ in marked(kind) if mark.low}
    changes = {step for step, here in rows.items() if not here.startswith("nothing:")}
    assert changes == declared | BY_HAND.keys()


@SERVICES
def test_a_route_is_there_from_its_step_on(things: Things, service: Service):
    for one in service.routes.endpoints:
        if one.low:
            name = told(service, one)
            assert not is_there(asked(things, service, one, before(one.low))), name
            assert is_there(asked(things, service, one, str(one.low))), name


@SERVICES
def test_a_field_of_a_body_is_refused_below_its_step(things: Things, service: Service):
    for one in service.routes.endpoints:
        for mark, within in marked(one.body):
            assert mark.low
            body = sample(one.body, "", things.ids)
            (body[within] if within else body)[mark.key] = None
            if mark.key == "no_snapshots":
                body[within][mark.key] = False  # it is never null
            low = max(mark.low, one.low or mark.low)
            answer = asked(things, service, one, str(low), body=body)
            odd = f"('{mark.key}' was unexpected)"
            assert odd not in str(answer.body), told(service, one)
            if one.low and mark.low <= one.low:
                continue
            answer = asked(things, service, one, before(mark.low), body=body)
            begins = getattr(_within(one.body, within), "open_below", "0.0")
            lax = version(before(mark.low)) < version(begins)
            assert (odd in str(answer.body)) != lax, told(service, one)


def _within(kind: Any, key: str) -> Any:
    (found,) = [one.within for one in fields_of(kind) if one.key == key]
    return found


@SERVICES
def test_a_question_is_refused_or_means_nothing_below_its_step(
    things: Things, service: Service
):
    for one in service.routes.endpoints:
        for mark, _ in marked(one.query):
            assert mark.low
            (hint,) = [
                given.type
                for given in fields(one.query)
                if given.encode_name == mark.key
            ]
            usual = sample(hint, mark.key, things.ids)
            value = PLAUSIBLE.get(mark.key, usual)
            query = "?" + urlencode({mark.key: value})
            low = max(mark.low, one.low or mark.low)
            where = f"{told(service, one)} {mark.key}"
            fine = asked(things, service, one, str(low), query=query)
            if one.method == "GET":
                assert fine.status < 300, (where, fine.body)
            if one.low and mark.low <= one.low:
                continue
            at = before(mark.low)
            with transaction.atomic():
                mine = {"X-Auth-Token": things.site.anna.token}
                plain = send(service, one, things, mine, at=at)
                transaction.set_rollback(True)
            with transaction.atomic():
                older = send(service, one, things, mine, at=at, query=query)
                transaction.set_rollback(True)
            begins = getattr(one.query, "strict_from", None)
            if begins and version(begins) <= version(at):
                assert f"Invalid filters {mark.key} are found" in older.fault, where
            else:
                assert (older.status, older.body) == (plain.status, plain.body), where
            if one.method != "GET":  # it is a matter of rules
                newer = send(service, one, things, mine, at=str(low), query=query)
                assert newer.status != plain.status, where


@SERVICES
def test_a_field_of_an_answer_is_told_from_its_step_on(
    things: Things, service: Service
):
    seen: dict[str, bool] = {}
    for one in service.routes.endpoints:
        if one.method != "GET":
            continue
        for mark, within in marked(one.answer):
            place = (things, service, one, mark.key, within)
            if mark.low and not (one.low and mark.low <= one.low):
                assert not tells(*place, before(mark.low)), (told(service, one), mark)
            if mark.high:
                assert not tells(*place, after(mark.high)), (told(service, one), mark)
            there = mark.high or max(filter(None, (mark.low, one.low)))
            seen[mark.key] = seen.get(mark.key, False) or tells(*place, str(there))
    assert all(seen.values()), seen


def tells(
    things: Things, service: Service, one: Endpoint, key: str, within: str, at: str
) -> bool:
    query = "?with_count=1&detail=1" if one.query else ""
    return key in keys(asked(things, service, one, at, query=query).body, within)


def keys(body: Any, within: str) -> set[str]:
    """Return the keys of what a body has by a name; by none, its own."""
    if isinstance(body, list):
        return {key for one in body for key in keys(one, within)}
    if not isinstance(body, dict):
        return set()
    if not within:
        return set(body)
    found = keys(body[within], "") if within in body else set()
    if within in body and isinstance(body[within], list):
        found = {key for one in body[within] for key in one}
    return found | {key for one in body.values() for key in keys(one, within)}


# --- what a step changes without a declaration ----------------------------------------


def tags(site: Site, at: str) -> bool:
    path = f"/volumes/{site.anna.new_volume()['id']}/metadata"
    return "ETag" in site.anna.volumes("GET", path, at=at).headers


def refuses_odd_filters(site: Site, at: str) -> bool:
    return site.anna.volumes("GET", "/volumes?odd=1", at=at).status == 400


def tells_limits_of_others(site: Site, at: str) -> bool:
    site.anna.new_volume()
    path = f"/limits?project_id={site.red.pk}"
    told = site.root.volumes("GET", path, at=at).body["limits"]["absolute"]
    return bool(told["totalVolumesUsed"])


def extends_in_use(site: Site, at: str) -> bool:
    made = site.anna.new_volume()
    attach = {"volumeAttachment": {"volumeId": made["id"]}}
    site.anna.servers("POST", f"/{site.server('a1')}/os-volume_attachments", attach)
    site.docks.settle()
    body = {"os-extend": {"new_size": 2}}
    path = f"/volumes/{made['id']}/action"
    return site.anna.volumes("POST", path, body, at=at).status == 202


def refuses_an_empty_change(site: Site, at: str) -> bool:
    path = f"/volumes/{site.anna.new_volume()['id']}"
    return site.anna.volumes("PUT", path, {"volume": {}}, at=at).status == 400


def refuses_force_that_is_false(site: Site, at: str) -> bool:
    made = site.anna.new_volume()
    attach = {"volumeAttachment": {"volumeId": made["id"]}}
    site.anna.servers("POST", f"/{site.server('a1')}/os-volume_attachments", attach)
    site.docks.settle()
    body = {"snapshot": {"volume_id": made["id"], "force": False}}
    return site.anna.volumes("POST", "/snapshots", body, at=at).status == 400


BY_HAND: dict[str, Callable[[Site, str], bool]] = {
    "3.15": tags,
    "3.31": refuses_odd_filters,
    "3.39": tells_limits_of_others,
    "3.42": extends_in_use,
    "3.53": refuses_an_empty_change,
    "3.66": refuses_force_that_is_false,
}


@pytest.mark.parametrize("step", BY_HAND)
def test_a_step_changes_what_is_done(site: Site, step: str):
    assert not BY_HAND[step](site, before(version(step)))


@pytest.mark.parametrize("step", BY_HAND)
def test_at_its_step_it_is_so(site: Site, step: str):
    assert BY_HAND[step](site, step)
