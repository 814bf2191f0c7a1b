# SPDX-License-Identifier: BSD-2-Clause
"""What a request may look like, who may send it, and how much of it."""

import asyncio
import gzip
import json
import logging
import re
import ssl
import time
import tracemalloc
from base64 import b64encode
from collections import Counter
from contextlib import nullcontext

import pytest
from yarl import URL

from moorage.api.rapi.limits import Gate, Limits
from moorage.api.rapi.passwords import scrypt
from moorage.api.rapi.refusals import HttpError
from moorage.api.rapi.roles import Role
from moorage.api.rapi.routes import ROUTES, described
from moorage.ops import OPERATIONS
from moorage.testing.cluster import ClusterBuilder, SimCluster
from rapi_door import RapiDoor, rapi_door

USERS = {
    Role.KNOWN: "guest:secret",
    Role.READ: "eye:secret",
    Role.OPERATE: "op:secret",
    Role.WRITE: "root:secret",
    Role.ROOT: "top:secret",
}
STARTUP = "/2/instances/web1/startup"


@pytest.fixture
async def door(tmp_path):
    cluster = await SimCluster.start(
        tmp_path / "sim", ClusterBuilder().disk("data1").instance("web1")
    )
    async with rapi_door(cluster, tmp_path) as found:
        yield found
    await cluster.stop()


@pytest.fixture
async def strict(tmp_path):
    cluster = await SimCluster.start(
        tmp_path / "sim", ClusterBuilder().instance("web1")
    )
    limits = Limits(body=1000, arrival=0.3, failures=3, address_failures=10)
    async with rapi_door(cluster, tmp_path, limits) as found:
        yield found
    await cluster.stop()


def is_refused(answer, status, words=""):
    assert answer.status == status, answer
    assert answer.body.keys() - {"error"} == {"code", "message", "explain"}
    assert answer.body["code"] == status
    assert words in answer.body["explain"]
    return True


async def test_nobody_gets_what_is_not_theirs(door: RapiDoor):
    for route in ROUTES:
        path = re.sub(r"{job}", "1", re.sub(r"{(?!job)\w+}", "absent", route.path))
        for role, user in USERS.items():
            if role < route.role:
                answer = await door.ask(route.method, path, user=user)
                assert is_refused(answer, 403), (route, user)
    assert door.cluster.engine.jobs == {}


@pytest.mark.parametrize(("role", "user"), USERS.items())
async def test_each_role_may_do_what_it_may(door: RapiDoor, role, user):
    assert (await door.ask("GET", "/2/info", user=user)).status == 200
    console = await door.ask("GET", "/2/query/node?fields=name", user=user)
    assert (console.status == 200) is (role >= Role.READ)
    started = await door.ask("PUT", STARTUP, user=user)
    assert (started.status == 200) is (role >= OPERATIONS["OP_INSTANCE_STARTUP"].role)
    tagged = await door.ask("PUT", "/2/tags?tag=a", user=user)
    assert (tagged.status == 200) is (role >= OPERATIONS["OP_TAGS_SET"].role)


async def test_the_file_of_users_is_read_again_when_it_changes(door: RapiDoor):
    assert is_refused(await door.ask("GET", "/2", user="new:secret"), 401)
    door.users.write_text("new secret read\n")
    assert (await door.ask("GET", "/2", user="new:secret")).status == 200
    assert is_refused(await door.ask("GET", "/2"), 401)
    door.users.unlink()
    assert is_refused(await door.ask("GET", "/2", user="new:secret"), 401)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("GET", "/3", ..., 404, "Nothing matches"),
        ("GET", "/2/instances/absent", ..., 404, "absent"),
        ("GET", "/2/jobs/77", ..., 404, "77"),
        ("GET", "/2/jobs/x", ..., 404, ""),
        ("PATCH", "/2/info", ..., 501, "Method PATCH is unsupported for path /2/info"),
        ("OPTIONS", "/2", ..., 501, ""),
        ("PUT", "/2/tags", ..., 400, "tag"),
        ("GET", "/2/instances?bulk=maybe", ..., 400, "bulk"),
        ("PUT", "/2/instances/web1/modify", [1], 400, "body"),
        ("PUT", "/2/instances/web1/modify", {"cheese": 1}, 400, "cheese"),
        ("PUT", "/2/instances/web1/modify", {"instance_name": "b"}, 400, "overwrite"),
        (
            "PUT",
            "/2/instances/web1/modify",
            {"beparams": {}, "custom_beparams": {}},
            400,
            "together",
        ),
        ("PUT", "/2/instances/web1/modify", {"hvparams": 7}, 400, "hvparams"),
        ("PUT", "/2/instances/web1/modify", {"OP_ID": "OP_NODE_REMOVE"}, 400, "OP_ID"),
        ("DELETE", "/2/instances/web1", {"ignore_failures": True}, 400, "overwrite"),
        ("POST", "/2/instances", {"name": "a"}, 400, "version 0"),
        ("POST", "/2/instances", {"__version__": 2}, 400, "version 2"),
        ("PUT", "/2/nodes/node1/role", "master", 400, "Can't set 'master' role"),
        ("PUT", "/2/modify", {"compression_tools": []}, 403, ""),
        ("PUT", "/2/query/node", {}, 400, "fields"),
        ("GET", "/2/query/cheese?fields=name", ..., 404, "cheese"),
        ("GET", "/2/instances/web1/console", ..., 503, "does not run"),
        ("GET", "/2/jobs/1/wait", {"fields": "status"}, 400, "list"),
        ("POST", "/2/instances/web1/replace-disks", {"disks": "a"}, 400, "disk index"),
        ("GET", "/2/nodes/node1/storage", ..., 400, "output_fields"),
        ("PUT", "/2/instances/web1/startup?force=2x", ..., 400, "force"),
        ("GET", f"/2/instances?bulk={'9' * 5000}", ..., 400, "bulk"),
        ("POST", f"/2/instances/web1/disk/{'9' * 5000}/grow", {}, 404, "index"),
        ("PUT", "/2/instances/web1/snapshot", {"disks": [[9, {}]]}, 400, "snapshot"),
    ],
)
async def test_what_is_off_is_told_and_makes_no_job(
    door: RapiDoor, method, path, body, status, words
):
    assert is_refused(await door.ask(method, path, body), status, words)
    assert door.cluster.engine.jobs == {}


async def test_a_body_is_json_or_nothing(door: RapiDoor):
    for kind in ("application/json", "application/json; charset=utf-8"):
        answer = await door.ask("PUT", STARTUP, {}, headers={"Content-Type": kind})
        assert answer.status == 200
    text = {"headers": {"Content-Type": "text/plain"}}
    assert is_refused(await door.ask("PUT", STARTUP, {}, **text), 415)
    plain = {"data": b"{", "headers": {"Content-Type": "application/json"}}
    assert is_refused(await door.ask("PUT", STARTUP, **plain), 400)
    deep = {"data": b"[" * 100_000, "headers": {"Content-Type": "application/json"}}
    assert is_refused(await door.ask("PUT", STARTUP, **deep), 400)
    assert (await door.ask("PUT", STARTUP, None)).status == 200
    assert (await door.ask("PUT", STARTUP)).status == 200


async def test_a_reason_comes_first_in_the_trail(door: RapiDoor):
    number = (await door.ask("PUT", f"{STARTUP}?reason=because")).body
    trail = door.cluster.engine.job(number).ops[0].input["reason"]
    assert [one[:2] for one in trail[:2]] == [
        ["gnt:user", "because"],
        ["gnt:library:rlib2:instances_name_startup", ""],
    ]


async def test_a_dry_run_changes_nothing(door: RapiDoor):
    await door.does("PUT", "/2/tags?tag=a&dry-run=1")
    assert (await door.ask("GET", "/2/tags")).body == []


async def test_what_check_refuses_is_a_job_that_failed(door: RapiDoor):
    number = (await door.ask("PUT", "/2/instances/absent/startup")).body
    await door.cluster.finished(number)
    told = (await door.ask("GET", f"/2/jobs/{number}")).body
    assert told["status"] == "error"
    assert told["opresult"][0][0] == "OpPrereqError"
    assert len(told["opresult"][0]) == 2


async def test_a_drained_queue_takes_no_job(door: RapiDoor):
    await door.cluster.engine.queue.drain(draining=True)
    assert is_refused(await door.ask("PUT", STARTUP), 503, "drained")


async def test_whole_numbers_have_no_point(door: RapiDoor):
    speed = {"node_name": "node1", "ndparams": {"cpu_speed": 1.0}}
    await door.cluster.run("OP_NODE_SET_PARAMS", **speed)
    found = (await door.ask("GET", "/2/nodes/node1")).body["ndparams"]["cpu_speed"]
    assert (found, type(found)) == (1, int)


async def test_a_reinstallation_is_one_job_of_three(door: RapiDoor):
    path = "/2/instances/web1/reinstall"
    number = (await door.ask("POST", path, {"os": "tiny"})).body
    ops = [op.input["OP_ID"] for op in door.cluster.engine.job(number).ops]
    assert ops == [
        "OP_INSTANCE_SHUTDOWN",
        "OP_INSTANCE_REINSTALL",
        "OP_INSTANCE_STARTUP",
    ]
    old = (await door.ask("POST", f"{path}?os=tiny&nostartup=1")).body
    assert len(door.cluster.engine.job(old).ops) == 2
    both = await door.ask("POST", f"{path}?os=tiny", {"os": "tiny"})
    assert is_refused(both, 400)


async def test_who_guesses_has_to_wait(strict: RapiDoor):
    for _ in range(3):
        assert is_refused(await strict.ask("GET", "/2", user="root:guess"), 401)
    assert is_refused(await strict.ask("GET", "/2", user="root:secret"), 429)


async def test_who_guesses_shuts_out_nobody_else_behind_the_same_address(
    strict: RapiDoor,
):
    for _ in range(3):
        await strict.ask("GET", "/2", user="root:guess")
    assert (await strict.ask("GET", "/2/info", user="op:secret")).status == 200
    for number in range(9):  # of an address, there are three times as many in all
        await strict.ask("GET", "/2", user=f"name{number}:guess")
    assert is_refused(await strict.ask("GET", "/2/info", user="op:secret"), 429)


async def test_what_is_packed_is_not_unpacked(door: RapiDoor):
    bomb = gzip.compress(b" " * (64 << 20))
    sizes = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    tracemalloc.start()
    try:
        for user in ("root:secret", "eye:secret", ""):
            more = {"data": bomb, "headers": sizes, "user": user}
            told = await door.ask("PUT", "/2/query/instance", **more)
            assert told.status == (415 if user == "root:secret" else told.status)
            assert told.status in (401, 413, 415)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


async def test_a_body_has_an_end(strict: RapiDoor):
    assert is_refused(await strict.ask("PUT", STARTUP, {"a": "x" * 2000}), 413)

    async def slowly():
        yield b"{"
        await asyncio.sleep(2)

    kind = {"Content-Type": "application/json"}
    assert is_refused(
        await strict.ask("PUT", STARTUP, data=slowly(), headers=kind), 408
    )


async def test_who_only_looks_says_little(door: RapiDoor):
    """Lists in lists take thirty times their length; the master reads them, too."""
    many = {"fields": ["name"], "qfilter": ["|", *[["=", "name", "x"]] * 10_000]}
    path, kind = "/2/query/instance", {"Content-Type": "application/json"}
    assert is_refused(await door.ask("PUT", path, many, user="eye:secret"), 413)
    assert is_refused(await door.ask("GET", "/2/jobs", many, user="guest:secret"), 413)

    async def pieces():
        for _ in range(20):
            yield b"[],[]," * 1000

    told = await door.ask("GET", "/2", data=pieces(), user="op:secret", headers=kind)
    assert is_refused(told, 413)
    few = many | {"qfilter": ["|", *[["=", "name", "web1"]] * 1000]}
    assert (await door.ask("PUT", path, few, user="eye:secret")).status == 200


def test_a_user_has_only_so_much_under_way():
    gate = Gate(Limits(under_way=1), time.monotonic)
    with gate.within("anna"), gate.within("bert"):
        with pytest.raises(HttpError) as told, gate.within("anna"):
            pass
        assert told.value.status == 429
    with gate.within("anna"):
        pass


@pytest.mark.parametrize(
    ("here", "there", "apart"),
    [
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", True),
        ("::ffff:192.0.2.1", "192.0.2.1", False),
        ("2001:db8::1", "2001:db8::2", False),
    ],
)
def test_who_guesses_shuts_out_his_own_address_alone(here, there, apart):
    """A socket for both kinds of addresses shows those of IPv4 as a part of IPv6."""
    gate = Gate(Limits(), time.monotonic)
    for _ in range(1000):
        gate.failed(here, "anna")
    with pytest.raises(HttpError):
        gate.check(here, "anna")
    refused = nullcontext() if apart else pytest.raises(HttpError)
    with refused:
        gate.check(there, "anna")


async def test_each_request_is_logged_with_its_user_and_job(door: RapiDoor, caplog):
    with caplog.at_level(logging.INFO, "moorage.api.rapi"):
        number = (await door.ask("PUT", STARTUP)).body
        await door.ask("GET", "/2", user="")
    first, second = [one.getMessage() for one in caplog.records]
    assert first.startswith(f"200 PUT {STARTUP} by root from 127.0.0.1, job {number}")
    assert second.startswith("401 GET /2 by nobody from 127.0.0.1")


async def test_a_path_writes_no_line_into_the_log(door: RapiDoor, caplog):
    with caplog.at_level(logging.INFO, "moorage.api.rapi"):
        path = URL("/2/x%0a200%20GET%20/2%1b[31m", encoded=True)
        await door.ask("GET", str(path), user="")
    (told,) = [one.getMessage() for one in caplog.records]
    assert told.isprintable()


async def test_a_header_that_is_no_text_is_a_login_that_failed(strict: RapiDoor):
    told = {"Authorization": "Basic \xe9"}
    for status in (401, 401, 401, 429):
        assert is_refused(await strict.ask("GET", "/2", user="", headers=told), status)


async def test_who_guesses_many_at_once_has_to_wait_too(strict: RapiDoor):
    strict.users.write_text(f"anna {scrypt('secret')} write\n")
    asked = [strict.ask("GET", "/2", user=f"anna:{n}") for n in range(12)]
    found = Counter(one.status for one in await asyncio.gather(*asked))
    assert found == {401: 3, 429: 9}


async def test_a_flag_has_few_digits(door: RapiDoor):
    assert is_refused(await door.ask("GET", f"/2/jobs?bulk={'1' * 5000}"), 400, "bulk")


async def test_the_master_may_be_gone(door: RapiDoor, tmp_path):
    (tmp_path / "door.sock").rename(tmp_path / "away.sock")
    assert is_refused(await door.ask("GET", "/2/info"), 502, "no master")
    (tmp_path / "away.sock").rename(tmp_path / "door.sock")
    assert (await door.ask("GET", "/2/info")).status == 200


async def test_nonsense_ends_nothing(door: RapiDoor):
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    login = b64encode(b"root:secret").decode()
    for text in (
        b"\x00\xff" * 100,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET " + b"/x" * 10_000 + b" HTTP/1.1\r\n\r\n",
        b"POST /2 HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        f"GET /2?a=%ff HTTP/1.1\r\nAuthorization: Basic {login}\r\n\r\n".encode(),
        b"GET /2 HTTP/1.1\r\nAuthorization: Basic !!!\r\nHost: x\r\n\r\n",
    ):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", door.port, ssl=trust
        )
        writer.write(text)
        await writer.drain()
        async with asyncio.timeout(5):
            assert b"500" not in (await reader.read(2000)).split(b"\r\n")[0]
        writer.close()
    assert (await door.ask("GET", "/2")).status == 200


@pytest.mark.parametrize(
    ("header", "body", "status"),
    [
        ("Transfer-Encoding: chunked", b"zz\r\n{}", 400),
        ("Transfer-Encoding: chunked", b"2\r\n{}x", 400),
        ("Content-Encoding: deflate\r\nContent-Length: 9", b"no zlib, ", 415),
        ("Content-Encoding: gzip\r\nContent-Length: 9", b"no gzip, ", 415),
    ],
)
async def test_a_body_that_is_cut_wrongly_is_told(
    door: RapiDoor, header, body, status, caplog
):
    login = b64encode(b"root:secret").decode()
    head = f"PUT {STARTUP} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {login}\r\n"
    told = await says(door, f"{head}{header}\r\n\r\n".encode() + body)
    assert b" %d " % status in told.splitlines()[0]
    assert door.cluster.engine.jobs == {}
    assert all(one.exc_info is None for one in caplog.records)


async def test_who_hangs_up_in_a_body_is_no_defect(door: RapiDoor, caplog):
    login = b64encode(b"root:secret").decode()
    head = f"PUT {STARTUP} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {login}\r\n"
    with caplog.at_level(logging.INFO, "moorage.api.rapi"):
        await says(door, f"{head}Content-Length: 9\r\n\r\n".encode(), listen=False)
        for _ in range(500):
            await asyncio.sleep(0.01)
            if caplog.records:
                break
    assert [one.levelno for one in caplog.records] == [logging.INFO]
    assert caplog.records[0].getMessage().startswith("400 PUT")


async def test_who_speaks_no_http_leaves_a_line(door: RapiDoor, caplog):
    assert b" 400 " in await says(door, b"GET /2 HTTP/1.1\r\nA: \x00\r\n\r\n")
    assert all(one.exc_info is None for one in caplog.records)


async def says(door: RapiDoor, text: bytes, *, listen: bool = True) -> bytes:
    """Say something on a connection of its own; return how the answer begins."""
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port, ssl=trust)
    writer.write(text)
    await writer.drain()
    async with asyncio.timeout(5):
        told = await reader.read(2000) if listen else b""
    writer.close()
    return told


async def test_the_document_describes_every_route(door: RapiDoor):
    told = (await door.ask("GET", "/2/openapi.json")).body
    assert told == json.loads(json.dumps(described()))
    assert told["openapi"] == "3.1.0"
    every = {(path, name) for path, one in told["paths"].items() for name in one}
    assert every == {(route.path, route.method.lower()) for route in ROUTES}
    ids = [
        one["operationId"] for path in told["paths"].values() for one in path.values()
    ]
    assert len(set(ids)) == len(ids)


async def test_a_repeated_request_with_a_key_makes_one_job(door: RapiDoor):
    twice = {"headers": {"Idempotency-Key": "once"}}
    first = await door.ask("PUT", STARTUP, {}, **twice)
    again = await door.ask("PUT", STARTUP, {}, **twice)
    assert first.status == again.status == 200
    assert first.body == again.body
    assert list(door.cluster.engine.jobs) == [first.body]
    other = f"{STARTUP.removesuffix('startup')}shutdown"
    assert is_refused(await door.ask("PUT", other, {}, **twice), 409)
    assert (await door.ask("PUT", STARTUP, {})).body != first.body


async def test_bodies_together_have_an_end(tmp_path):
    cluster = await SimCluster.start(tmp_path / "nodes", ClusterBuilder())
    limits = Limits(bodies=100_000)
    async with rapi_door(cluster, tmp_path, limits) as door:
        long = {"data": b'{"x": "' + b"y" * 200_000 + b'"}'}
        kind = {"headers": {"Content-Type": "application/json"}}
        assert is_refused(await door.ask("POST", "/2/disks", **long, **kind), 429)
        short = {"data": b'{"x": "' + b"y" * 50_000 + b'"}'}
        for _ in range(5):  # what was answered counts no more
            assert is_refused(await door.ask("POST", "/2/disks", **short, **kind), 400)
    await cluster.stop()
