# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's own RAPI daemon, in front of our master: it answers as our door does."""

import asyncio
import json
import socket
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from moorage.api.rapi.looking import BULK
from moorage.api.rapi.making import Make
from moorage.api.rapi.route import Route
from moorage.api.rapi.routes import ROUTES
from moorage.testing.cluster import ClusterBuilder, SimCluster
from peers import GANETI, as_ganetis_users, ganetis_node, unpacked
from rapi_door import Answer, RapiDoor, rapi_door

# In memory: the paths of sockets must be short.
pytestmark = [pytest.mark.oracle, pytest.mark.memory]

JSON = "application/json"
DIFFERENCES = Path(__file__).parents[1] / "data" / "rapi-differences.txt"
GETS = [one for one in ROUTES if one.method == "GET" and one.serve.media == JSON]
QUERIED = (
    *("instance", "node", "group", "job"),
    *("network", "export", "lock", "filter"),
)
ABSENT = "of what is not there"
NAMES = {
    "instance_name": "web1",
    "node_name": "node1",
    "group_name": "default",
    "network_name": "lan",
    "job": "1",
    "disk": "d1",
    "pool_name": "fast",
    "filter": "absent",
}
"""What stands in the parts of paths that vary."""


MADE: tuple[dict[str, Any], ...] = (
    {
        "op_id": "OP_NETWORK_ADD",
        "network_name": "lan",
        "network": "192.0.2.0/24",
        "gateway": "192.0.2.1",
    },
    {
        "op_id": "OP_NETWORK_CONNECT",
        "network_name": "lan",
        "group_name": "default",
        "network_mode": "bridged",
        "network_link": "br0",
    },
    {"op_id": "OP_STORAGE_POOL_ADD", "pool_name": "fast", "provider": "san"},
    {
        "op_id": "OP_INSTANCE_CREATE",
        "instance_name": "web1",
        "disk_template": "ext",
        "disks": [{"size": 128, "provider": "san", "name": "d1"}],
        "nics": [{"network": "lan", "ip": "pool"}],
        "beparams": {"vcpus": 2},
        "tags": ["prod", "web"],
        "pnode": "node1",
        "os_type": "tiny",
    },
    {
        "op_id": "OP_INSTANCE_CREATE",
        "instance_name": "db1",
        "disk_template": "drbd",
        "disks": [{"size": 128}],
        "pnode": "node1",
        "snode": "node2",
        "os_type": "tiny",
    },
)
"""What the cluster has."""


class Doors(NamedTuple):
    """Ours, and Ganeti's: its address, and a client that speaks HTTP."""

    ours: RapiDoor
    theirs: str
    session: aiohttp.ClientSession

    async def asked_of_ganeti(self, path: str, body: Any) -> Answer:
        """Ask Ganeti's daemon."""
        headers, data = {}, None
        if body is not ...:
            headers, data = {"Content-Type": JSON}, json.dumps(body)
        url = f"{self.theirs}{path}"
        async with self.session.get(url, headers=headers, data=data) as told:
            return Answer(told.status, await told.json(content_type=None))


@asynccontextmanager
async def ganetis_daemon(directory: Path, master: Path) -> AsyncIterator[str]:
    """Serve a master by Ganeti's daemon; it tells its address."""
    place = unpacked(GANETI)
    if place is None:
        pytest.skip("Debian's packages of Ganeti cannot be had")
    node = directory / "node1"
    env = ganetis_node(place, node, master) | as_ganetis_users(place, directory)
    (node / "var/lib/ganeti/ssconf_master_node").write_text("node1\n")
    (node / "var/lib/ganeti/rapi/users").write_text("root secret write\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(f"{place}/usr/share/ganeti/3.0/ganeti-rapi", "-f", "--no-ssl"),
        *("-b", "127.0.0.1", "-p", str(port)),
        env=env,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(20):
            while not _listens(port):
                assert process.returncode is None
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
async def doors(tmp_path) -> AsyncIterator[Doors]:
    cluster = await SimCluster.start(tmp_path / "sim", ClusterBuilder(3))
    for opcode in MADE:
        await cluster.run(**opcode)
    async with (
        rapi_door(cluster, tmp_path) as ours,
        ganetis_daemon(tmp_path, tmp_path / "luxi.sock") as theirs,
    ):
        login = {"Authorization": f"Basic {b64encode(b'root:secret').decode()}"}
        async with aiohttp.ClientSession(headers=login) as session:
            yield Doors(ours, theirs, session)
    await cluster.stop()


def listed() -> list[str]:
    """Return the differences that are on record: path, and a key or a condition."""
    lines = DIFFERENCES.read_text().splitlines()
    assert lines == sorted(lines)
    return [line.partition(": ")[0] for line in lines]


def got(route: Route) -> Iterator[str]:
    """Yield the variants of a resource that are asked for."""
    yield route.path
    if BULK in route.args:
        yield f"{route.path}?bulk=1"


def differences(ours: Any, theirs: Any, at: str = "") -> Iterator[str]:
    """Yield the keys at which two answers are not equal; of rows that of the row."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            here = f"{at}.{key}".lstrip(".")
            if key in ours and key in theirs:
                yield from differences(ours[key], theirs[key], here)
            else:
                yield here
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            yield at
        for one, other in zip(ours, theirs, strict=False):
            yield from differences(one, other, at)
    elif ours != theirs:
        yield at


async def compared(doors: Doors, route: Route, path: str) -> set[str]:
    """Return where the answers to a request differ: the path, and a key."""
    asked = path.format(**NAMES)
    body: Any = ...
    if path.endswith("/wait"):
        body = dict.fromkeys(("previous_job_info", "previous_log_serial"))
        body["fields"] = ["status", "summary"]
    if path.endswith("/storage"):
        asked += "?storage_type=lvm-vg&output_fields=name,size"
    if path.endswith("/loss"):
        asked += "?node=node1"
    ours = await doors.ours.ask("GET", asked, body)
    theirs = await doors.asked_of_ganeti(asked, body)
    if (ours.status, theirs.status) == (200, 404):
        return {path}
    assert ours.status == theirs.status, path
    if isinstance(route.serve, Make):
        assert type(ours.body) is type(theirs.body) is int  # each made a job
        return set()
    if ours.status != 200:
        assert route.path == "/2/filters/{filter}"  # there is none, in either
        assert ours.body.keys() == theirs.body.keys()
        return set()
    found = differences(ours.body, theirs.body)
    return {f"{path} {key}".strip() for key in found}


async def at_rest(cluster: SimCluster) -> None:
    """Wait until no job is under way: both doors are to tell the same of each."""
    for number in list(cluster.engine.queue.working):
        await cluster.finished(number)


async def test_each_answer_is_that_of_ganetis_daemon(doors):
    """Key by key; what differs is on a list, with its reason."""
    found: set[str] = set()
    for route in GETS:
        if "{resource}" not in route.path:
            for path in got(route):
                found |= await compared(doors, route, path)
            continue
        await at_rest(doors.ours.cluster)  # some resources made jobs
        for what in QUERIED:
            known = await doors.ours.ask("GET", f"/2/query/{what}/fields")
            names = ",".join(one["name"] for one in known.body["fields"])
            path = route.path.replace("{resource}", what)
            found |= await compared(doors, route, f"{path}?fields={names}")
    assert found == {one for one in listed() if not one.endswith(ABSENT)}


async def test_what_is_not_there_is_refused_alike(doors):
    found: set[str] = set()
    absent = dict.fromkeys(NAMES, "absent") | {"job": "99999"}
    for path in (one.path for one in GETS if "{" in one.path):
        if path.endswith(("/wait", "/storage")) or "{resource}" in path:
            continue
        asked = path.format(**absent)
        ours = await doors.ours.ask("GET", asked)
        theirs = await doors.asked_of_ganeti(asked, ...)
        if ours.status != theirs.status:
            found.add(f"{path} {ABSENT}")
    assert found == {one for one in listed() if one.endswith(ABSENT)}
