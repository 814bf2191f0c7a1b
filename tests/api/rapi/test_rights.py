# SPDX-License-Identifier: BSD-2-Clause
"""Every route, by everybody; every reserved parameter, in every place for one.

What is asked for is made from the declarations. What came of it is not: a word that
only root may say is looked for in the cluster's configuration afterwards. The seed is
the minute's unless MOORAGE_SEED names it.
"""

import os
import re
import time
from collections.abc import AsyncIterator, Iterator
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import json

from moorage.api.rapi.making import Make
from moorage.api.rapi.openapi import properties
from moorage.api.rapi.roles import Role
from moorage.api.rapi.route import Route
from moorage.api.rapi.routes import ROUTES
from moorage.jobs.rights import reserved
from moorage.model import (
    Disk,
    Instance,
    Network,
    Node,
    NodeGroup,
    StoragePool,
    hvparams,
)
from moorage.model.reserved import DISK, HYPERVISOR
from moorage.ops import OPERATIONS
from moorage.testing.cluster import ClusterBuilder, SimCluster
from rapi_door import RapiDoor, rapi_door

SEED = int(os.environ.get("MOORAGE_SEED") or time.time() // 60)
USERS = {
    Role.KNOWN: "guest:secret",
    Role.READ: "eye:secret",
    Role.OPERATE: "op:secret",
    Role.WRITE: "root:secret",
    Role.ADOPT: "keeper:secret",
    Role.ROOT: "top:secret",
}
STRANGERS = ("", "top:wrong", "top:", "nobody:secret", ":", "top:secret\0", "short:")
NAMES = {"instance_name": "web1", "node_name": "node2", "disk": "data1", "job": "1"}
EVIL = "/evil/word"
OTHERS = ("/2/events", "/metrics")
"""Whose answers are no JSON, or have no end: they have tests of their own."""
WORDS = {
    "storage_type": "ext",
    "network": "192.0.2.0/24",
    "amount": 8,
    "nodes": ["node2"],
    "groups": ["default"],
    "instances": [{"instance_name": "web8"}],
    "why": "lost",
    "__version__": 1,
}
MADE = tuple(one for one in ROUTES if isinstance(one.serve, Make) and one.serve.body)


def made(route: Route) -> Make:
    assert isinstance(route.serve, Make)
    return route.serve


def path(route: Route) -> str:
    return re.sub(r"{(\w+)}", lambda it: NAMES.get(it[1], "other"), route.path)


def query(route: Route) -> dict[str, str]:
    return {one.name: "1" for one in route.args if one.required}


def needed(route: Route) -> dict[str, Any]:
    """Return the smallest body that a route takes."""
    serve = made(route)
    _, names = properties(serve.op)
    own = names & set(serve.fields(route.path)) - serve.renames.keys()
    extra = serve.extra.keys() & WORDS.keys()
    return {name: WORDS.get(name, "new") for name in sorted(own | extra)}


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[RapiDoor]:
    builder = ClusterBuilder().disk("data1").disk("data2")
    builder = builder.instance("web1", disks=("data2",)).instance("other")
    cluster = await SimCluster.start(tmp_path / "sim", builder)
    async with rapi_door(cluster, tmp_path) as found:
        yield found
    await cluster.stop()


async def test_every_route_is_for_who_may_ask(door: RapiDoor) -> None:
    for route, (role, user) in product(ROUTES, USERS.items()):
        if route.path in OTHERS and role >= route.role:
            continue
        asked = {"params": query(route), "user": user}
        answer = await door.ask(route.method, path(route), **asked)
        assert (answer.status == 403) is (role < route.role), (route, role, answer)
        assert answer.status < 500 or answer.status in (502, 503), (route, answer)


@pytest.mark.parametrize("user", STRANGERS)
async def test_no_route_is_for_nobody(door: RapiDoor, user: str) -> None:
    before = door.cluster.config
    for route in ROUTES:
        door.forgive()
        answer = await door.ask(route.method, path(route), user=user)
        assert answer.status == 401, route
    assert door.cluster.config is before
    assert door.cluster.engine.jobs == {}


def marked() -> Iterator[tuple[Route, dict[str, Any], str]]:
    """Yield routes with bodies that say what is root's, and its name."""
    for route in MADE:
        serve = made(route)
        back = {name: other for other, name in serve.renames.items()}
        for name, mark in reserved(OPERATIONS[serve.op]).items():
            for other in {name, back.get(name, name)} & {*serve.fields(route.path)}:
                within = mark.within and mark.within.__name__
                for value, word in values(name, within):
                    yield route, {**needed(route), other: value}, word


def values(name: str, within: str | None) -> Iterator[tuple[Any, str]]:
    """Yield values of a reserved field that somebody would have root act by."""
    if within == "hypervisor":
        for word in HYPERVISOR:
            yield {word: EVIL} if name == "hvparams" else {"tiny": {word: EVIL}}, word
            yield (
                {"kvm": {word: EVIL}}
                if name == "hvparams"
                else {"tiny": {"kvm": {word: EVIL}}},
                word,
            )
    elif within in ("disk", "disks"):
        for word in DISK:
            yield from ((one, word) for one in _disks(word, within))
    else:
        given: Any = [[5, 6]] if "uid" in name else EVIL
        yield given, "" if within else name


def _disks(word: str, within: str) -> Iterator[Any]:
    one = {word: EVIL}
    if within == "disk":
        yield one
        yield {"san": one}
        return
    yield [one]
    yield [{"size": 8}, {"size": 8, "params": one}]
    yield [["add", -1, one]]
    yield [["add", one]]
    yield [[0, {"params": one}]]


async def test_what_is_roots_is_nobody_elses(door: RapiDoor) -> None:
    """By its name: whoever writes may not, and root is asked for what it means."""
    before, cases = door.cluster.config, 0
    for route, body, word in marked():
        answer = await door.ask(route.method, path(route), body)
        if answer.status == 400:
            continue  # no such shape there: it says nothing
        cases += 1
        assert answer.status == 403, (route, body, answer)
        assert f"may not set {word}" in answer.body["explain"], (body, answer)
    assert cases > 150
    assert door.cluster.config is before
    assert door.cluster.engine.jobs == {}


BY_NAME = {("OP_DISK_ADD", "params"), ("OP_INSTANCE_SET_PARAMS", "disks")}
"""Where a provider's volume is taken by the name of a disk that is added."""


async def test_who_may_adopt_by_name_may_nothing_else_of_roots(door: RapiDoor) -> None:
    """What a provider finds by a disk's name: no file, device or volume is named."""
    before, cases = door.cluster.config, 0
    for route, body, word in marked():
        op = made(route).op
        field = next(one for one in body if one not in needed(route))
        adopts = word == "reuse_data" and (op, field) in BY_NAME
        answer = await door.ask(route.method, path(route), body, user="keeper:secret")
        cases += answer.status == 403
        if adopts:
            assert answer.status in (200, 400), (route, body, answer)
        else:
            assert answer.status in (403, 400), (route, body, answer)
    assert cases > 150
    assert [*door.cluster.config.all(Disk)] == [*before.all(Disk)]


async def test_root_may_say_what_is_roots(door: RapiDoor) -> None:
    for route, body, _ in marked():
        answer = await door.ask(route.method, path(route), body, user="top:secret")
        assert answer.status in (200, 400), (route, body, answer)


# -- in whatever place -----------------------------------------------------------------


def places(word: str) -> Iterator[Any]:
    """Yield shapes in which somebody might hide a parameter."""
    one = {word: EVIL}
    instance = {"instance_name": "web9", "disk_template": "diskless", "disks": []}
    disky = {"instance_name": "web9", "disk_template": "ext"}
    yield from (EVIL, one, [one], {"kvm": one}, {"san": one}, {"default": one})
    yield from ([["add", -1, one]], [[0, one]], [["modify", 0, one]], [["add", one]])
    yield from ([["add", -1, one, None]], {"kvm": {"kvm": one}}, {"x": [one]})
    yield from ({"kvm": {word.upper(): EVIL}}, {"kvm": {f" {word}": EVIL}})
    yield from ([{**instance, "hvparams": one}], [{**disky, "disks": [one]}])
    yield [{**disky, "disks": [{"size": 8, "provider": "san", "params": one}]}]
    yield [[0, {"provider": "san", "params": one}]]


def hidden(dice: Random) -> Iterator[tuple[Route, dict[str, Any]]]:
    """Yield bodies with a reserved word in each field, some of all shapes."""
    words = sorted(HYPERVISOR | DISK)
    for route in MADE:
        for name in made(route).fields(route.path):
            for _ in range(3):
                shape = dice.choice([*places(dice.choice(words))])
                yield route, {**needed(route), name: shape}


async def test_what_is_roots_is_taken_in_no_disguise(door: RapiDoor) -> None:
    dice, cases = Random(SEED), 0  # noqa: S311
    for route, body in hidden(dice):
        if EVIL in (body.get("comment"), body.get("why")):
            continue  # anybody may say so
        answer = await door.ask(route.method, path(route), body)
        cases += 1
        if answer.status == 200:
            await door.cluster.finished(answer.body)
            await settle(door)
        told = json.encode([*everything(door)]).decode()
        assert EVIL not in told, (SEED, route, body)
    assert cases > 500


async def settle(door: RapiDoor) -> None:
    """Wait for jobs that follow."""
    for number, job in list(door.cluster.engine.jobs.items()):
        if not job.finished:
            await door.cluster.finished(number)


def everything(door: RapiDoor) -> Iterator[Any]:
    """Yield all that is on record of the cluster."""
    config = door.cluster.config
    yield config.cluster
    for kind in (Instance, Disk, NodeGroup, Node, Network, StoragePool):
        yield from config.all(kind)


def test_whatever_names_a_file_of_a_node_is_reserved() -> None:
    files = {one for one in hvparams.KNOWN if re.search(r"path|file|chroot|dir", one)}
    inside = {"root_path"}
    """Of the guest's own kernel: a device within."""
    assert files - inside <= HYPERVISOR


# -- secrets ---------------------------------------------------------------------------

SECRET = "geheimnis"  # noqa: S105


@pytest.mark.slow
async def test_nobody_is_shown_a_secret(door: RapiDoor) -> None:
    """Not by a list, a job, a query of all fields, or an event: whatever the role."""
    secrets = {
        "osparams_private": {"pass": f"{SECRET}1"},
        "osparams_secret": {"pass": f"{SECRET}2"},
    }
    body = {
        "__version__": 1,
        "instance_name": "web7",
        "disk_template": "ext",
        "disks": [{"size": 8, "provider": "san"}],
        "pnode": "node1",
        "os_type": "tiny",
        "start": False,
        **secrets,
    }
    for method, where, given in (
        ("POST", "/2/instances", body),
        ("POST", "/2/instances", {**body, "pnode": "absent"}),
        ("PUT", "/2/instances/web7/modify", secrets),
        ("POST", "/2/instances/web7/reinstall", secrets),
        ("POST", "/2/instances-multi-alloc", {"instances": [body]}),
        ("PUT", "/2/modify", {"osparams_private_cluster": {"tiny": {"p": SECRET}}}),
    ):
        answer = await door.ask(method, where, given, user="top:secret")
        for user in USERS.values():
            await nothing_of_it(door, user, where)
        if answer.status == 200:
            await door.cluster.finished(answer.body)
            await settle(door)
        for user in USERS.values():
            await nothing_of_it(door, user, where)


async def nothing_of_it(door: RapiDoor, user: str, after: str) -> None:
    for where in ("/2/jobs?bulk=1", "/2/instances?bulk=1", "/2/info"):
        told = (await door.ask("GET", where, user=user)).body
        assert SECRET not in str(told), (where, after, user)
    for number in door.cluster.engine.jobs:
        told = (await door.ask("GET", f"/2/jobs/{number}", user=user)).body
        assert SECRET not in str(told), (number, told)
    told = (await door.ask("GET", "/2/instances/web7", user=user)).body
    assert SECRET not in str(told)
    for what in ("instance", "job", "disk", "node", "group", "network", "pool"):
        defined = (await door.ask("GET", f"/2/query/{what}/fields", user=user)).body
        names = [one["name"] for one in defined["fields"]]
        asked = {"fields": names}
        told = await door.ask("PUT", f"/2/query/{what}", asked, user=user)
        assert SECRET not in str(told.body), (what, user)
