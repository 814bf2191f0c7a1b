# SPDX-License-Identifier: BSD-2-Clause
"""Consoles in the page, as the door carries them: who may, what is told, the end."""

import asyncio
import json
import ssl
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path

import aiohttp
import pytest
from msgspec.structs import replace

from browsing import COOKIE, Browser
from moorage.web import consoles, rendering


@pytest.fixture
def secret(browser):
    async def found():
        return (await browser.open("/ui/instance/web1")).hidden["secret"]

    return found


@asynccontextmanager
async def opened(browser, secret, path="/ui/console/web1/line", **headers):
    """Open a web socket as a page's script does; headers are those of a browser."""
    url = f"https://127.0.0.1:{browser.door.port}{path}"
    given = {"Cookie": f"{COOKIE}={browser.cookie}"} | headers
    session, words = browser.door._session, [consoles.PROTOCOL, secret]
    async with session.ws_connect(url, headers=given, protocols=words) as link:
        yield link
    await asyncio.sleep(0.05)  # TLS says good-bye on both sides


async def test_what_is_typed_goes_to_the_guest_and_who_typed_is_told(browser, secret):
    page = await browser.open("/ui/instance/web1")
    assert 'href="/ui/console/web1"' in page.text
    page = await browser.open("/ui/console/web1")
    assert "gnt-instance console web1" in page.words
    assert "Without JavaScript there is no console in a page: type" in page.words
    async with opened(browser, await secret()) as link:
        told = json.loads(await link.receive_str())
        assert told == {"instance": "web1", "node": "node1"}
        assert await link.receive_bytes() == b"web1 serial: "
        await link.send_bytes(b"root\n")
        assert await link.receive_bytes() == b"root\n"
    told = await browser.door.ask("GET", "/2/audit", user="top:secret")
    (line,) = [one for one in told.body.splitlines() if "console" in one]
    assert json.loads(line)["user"] == "root", line


async def test_a_guest_that_is_down_has_a_reason_and_no_console(browser, secret):
    page = await browser.open("/ui/instance/web2")
    assert "Console It does not run. Start" in page.words
    async with opened(browser, await secret(), "/ui/console/web2/line") as link:
        told = json.loads(await link.receive_str())
        assert told["error"] == "instance web2 is not running: it has no console"
        assert told["hint"] == "gnt-instance startup web2"
        assert (await link.receive()).type is aiohttp.WSMsgType.CLOSE


async def test_another_site_opens_no_console(browser, secret):
    word = await secret()
    for status, shown, headers in (
        (403, word, {"Origin": "https://elsewhere.example.org"}),
        (403, word, {"Sec-Fetch-Site": "cross-site"}),
        (403, "x" * 43, {}),
        (401, word, {"Cookie": f"{COOKIE}={'x' * 43}"}),
    ):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await opened(browser, shown, **headers).__aenter__()
        assert refused.value.status == status


async def test_a_secret_that_is_no_text_opens_no_console(browser):
    """No library sends such a header: it is written byte by byte."""
    port = browser.door.port
    words = (
        f"GET /ui/console/web1/line HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Cookie: {COOKIE}={browser.cookie}\r\nConnection: close\r\n"
        "Sec-WebSocket-Protocol: moorage, "
    )
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    writer.write(words.encode() + b"\xff\r\n\r\n")
    assert (await reader.readline()).split()[1] == b"403"
    writer.close()


async def test_who_only_looks_gets_no_console(door):
    eye = Browser(door)
    await eye.sign_in("eye")
    page = await eye.open("/ui/console/web1")
    assert "this takes operate" in page.words
    assert "data-open" not in page.text
    async with opened(eye, page.hidden["secret"]) as link:
        told = json.loads(await link.receive_str())
        assert "has the role read: ConnectInstance takes operate" in told["error"]


@pytest.mark.parametrize("line", ["eye secret read\n", "root secret read\n"])
async def test_a_console_ends_with_the_session_and_with_the_role(
    door, browser, secret, monkeypatch, line
):
    monkeypatch.setattr(consoles, "_LOOK", 0.05)
    async with opened(browser, await secret()) as link:
        await link.receive_str()
        await link.receive_bytes()
        door.users.write_text(line)
        assert (await link.receive()).type is aiohttp.WSMsgType.CLOSE


async def test_consoles_that_are_open_keep_nobody_from_asking(browser, secret):
    gate = browser.door.pages._door.gate
    gate.limits = replace(gate.limits, under_way=2)
    word = await secret()
    async with opened(browser, word) as one, opened(browser, word) as other:
        for link in (one, other):
            await link.receive_str()
        assert (await browser.open("/ui/instance")).status == 200
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await opened(browser, word).__aenter__()
        assert refused.value.status == 429


async def test_a_guest_is_not_heard_faster_than_it_is_shown(browser, secret):
    most = consoles._AHEAD + consoles._PIECE
    async with opened(browser, await secret()) as link:
        await link.receive_str()
        came = len(await link.receive_bytes())
        say = asyncio.create_task(spoken(link, 4 * most))
        with suppress(TimeoutError):
            while came <= most:
                came += len(await link.receive_bytes(timeout=0.3))
        assert came <= most
        await link.send_str(str(came))
        assert await link.receive_bytes(timeout=5)
        say.cancel()


async def spoken(link, size):
    for _ in range(size // 4096):
        await link.send_bytes(b"x" * 4096)


async def test_the_door_ends_although_somebody_is_at_a_console(browser, secret):
    async with opened(browser, await secret()) as link:
        await link.receive_str()
        await link.receive_bytes()
        closing = asyncio.create_task(browser.door.pages.close())
        assert (await link.receive()).type is aiohttp.WSMsgType.CLOSE
        await closing


def test_libraries_are_served_as_their_authors_made_them():
    """Each file by its hash (`scripts/vendored.py` fetches them), and no other."""
    static = Path(rendering.__file__).with_name("static")
    sums = (static / "SHA256SUMS").read_text().splitlines()
    known = {name: wanted for wanted, name in (line.split() for line in sums)}
    for name, wanted in known.items():
        assert sha256((static / name).read_bytes()).hexdigest() == wanted, name
    there = (
        one.relative_to(static) for one in static.glob("*-*/**/*") if one.is_file()
    )
    assert set(map(str, there)) == set(known)
