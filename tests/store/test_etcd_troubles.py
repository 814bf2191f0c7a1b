# SPDX-License-Identifier: BSD-2-Clause
"""What is said of members of etcd that need somebody."""

import base64
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread

import pytest
from msgspec import json

from moorage.model.store_trouble import StoreMember
from moorage.store.etcd import EtcdSettings, health, troubles
from support.etcd_members import Members, members

QUOTA = 32 * 1024 * 1024
SLOW = "etcd_disk_wal_fsync_duration_seconds"


class Member:
    """A member that answers what it is told to; what a real one does too rarely."""

    def __init__(self) -> None:
        self.answers: dict[str, object] = {
            "/v3/maintenance/status": {"version": "3.4.23", "leader": "7"},
        }
        self.metrics = ""
        self.url = ""

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve on loopback."""
        member = self

        class Door(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self._say(json.encode(member.answers[self.path]))

            def do_GET(self) -> None:
                self._say(member.metrics.encode())

            def _say(self, data: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@pytest.fixture
def pair() -> Iterator[tuple[Member, Member]]:
    first, second = Member(), Member()
    with first.served(), second.served():
        yield first, second


async def said(*found: Member) -> list[str]:
    settings = EtcdSettings(endpoints=tuple(one.url for one in found), cluster="a")
    told = await troubles(settings)
    assert all(one.command.startswith("etcdctl ") for one in told)
    assert not any(one.urgent for one in told)
    return [one.said for one in told]


async def test_members_that_need_nobody_are_no_finding(
    pair: tuple[Member, Member],
) -> None:
    assert await said(*pair) == []


async def test_each_member_tells_how_large_it_is(pair: tuple[Member, Member]) -> None:
    status = {"version": "3.4.23", "leader": "7", "dbSize": "8192"}
    pair[0].answers["/v3/maintenance/status"] = status
    pair[0].metrics = f"etcd_server_quota_backend_bytes {QUOTA}\n"
    away = "http://127.0.0.1:1"
    urls = pair[0].url, pair[1].url, away
    found = await health(EtcdSettings(endpoints=urls, cluster="a"))
    assert found.engine == "etcd"
    assert found.members == (
        StoreMember(name=pair[0].url, up=True, size=8192, quota=QUOTA),
        StoreMember(name=pair[1].url, up=True, size=0),
        StoreMember(name=away, up=False),
    )
    assert [away in one.said for one in found.troubles] == [True]


async def test_members_of_two_versions_are_told(pair: tuple[Member, Member]) -> None:
    pair[1].answers["/v3/maintenance/status"] = {"version": "3.5.0", "leader": "7"}
    assert await said(*pair) == [
        "etcd's members are of different versions: 3.4.23, 3.5.0"
    ]


async def test_a_member_without_a_leader_is_told(pair: tuple[Member, Member]) -> None:
    pair[1].answers["/v3/maintenance/status"] = {"version": "3.4.23", "leader": "0"}
    (one,) = await said(*pair)
    assert one.startswith(f"etcd's member {pair[1].url} knows of no leader")


@pytest.mark.parametrize(("over", "told"), [(10, 0), (11, 1)])
async def test_a_disk_is_slow_when_more_than_one_write_in_a_hundred_is(
    pair: tuple[Member, Member], over: int, told: int
) -> None:
    pair[0].metrics = (
        f"# HELP {SLOW} of the log\n"
        f'{SLOW}_bucket{{le="0.128"}} {1000 - over}\n'
        f'{SLOW}_bucket{{le="+Inf"}} 1000\n{SLOW}_count 1000\n'
    )
    found = await said(*pair)
    assert len(found) == told
    assert all("has a slow disk" in one for one in found)


@pytest.mark.real
@pytest.mark.slow
async def test_a_real_etcd_that_fills_up_and_loses_a_member() -> None:
    with members(options=(f"--quota-backend-bytes={QUOTA}",)) as found:
        settings = EtcdSettings(endpoints=tuple(found.clients), cluster="a")
        assert await troubles(settings) == []
        fill(found, 0.8)
        told = await troubles(settings)
        assert len(told) == 3
        assert all("of its 32 MiB" in one.said for one in told)
        assert all(one.command.endswith(" defrag") for one in told)
        with pytest.raises(OSError, match="HTTP Error"):
            fill(found, 2.0)
        found.signal(2, signal.SIGKILL)
        told = await troubles(settings)
        assert told[0].urgent
        assert told[0].said == "etcd's quota is full: it takes no more writes"
        away = [one.said for one in told if "cannot be asked" in one.said]
        assert len(away) == 1
        assert found.clients[2] in away[0]


def fill(found: Members, part: float) -> None:
    """Write until each member's database is larger than a part of its quota."""
    value = base64.b64encode(b"x" * 256 * 1024).decode()
    for number in count():
        told = [found.ask(one, "maintenance/status", {}) for one in range(3)]
        if min(int(one["dbSize"]) for one in told) > part * QUOTA:
            return
        key = base64.b64encode(b"%d" % number).decode()
        found.ask(0, "kv/put", {"key": key, "value": value})
