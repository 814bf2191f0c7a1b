# SPDX-License-Identifier: BSD-2-Clause
"""What other sites send, and what names and logs bring along."""

import asyncio
import re
import time
from collections import Counter
from functools import partial
from hashlib import sha256
from urllib.parse import urlencode

import pytest
from msgspec import json

from browsing import COOKIE, Browser
from moorage.web.deeds import DEEDS
from moorage.web.serving import HEADERS

SCRIPT = "<script>alert(1)</script>"
ELSEWHERE = (
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "https://[evil"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
)


def jobs(browser):
    return len(browser.door.cluster.engine.jobs)


@pytest.mark.parametrize("headers", ELSEWHERE)
@pytest.mark.parametrize("path", ["/ui/do/instance/shutdown", "/ui/sign-out"])
async def test_a_form_from_another_site_does_nothing(browser, headers, path):
    page, before = await browser.open("/ui/do/instance/shutdown?on=web1"), jobs(browser)
    seen = await browser.post(path, {**page.hidden, "step": "do"}, headers=headers)
    assert seen.status == 403
    assert "came from another site" in seen.words
    assert jobs(browser) == before
    assert (await browser.send("GET", "/ui")).status == 200


@pytest.mark.parametrize("headers", ELSEWHERE)
async def test_nobody_is_signed_in_by_another_site(door, headers):
    browser = Browser(door)
    words = {"name": "root", "password": "secret"}
    seen = await browser.post("/ui/sign-in", words, headers=headers)
    assert seen.status == 403
    assert not browser.cookie


async def test_a_form_without_its_session_s_secret_does_nothing(door, browser):
    other = Browser(door)
    page = await other.sign_in("op")
    before = jobs(browser)
    for secret in ("", "x", page.hidden["secret"], "é"):
        form = {"on": "web1", "step": "do", "secret": secret}
        seen = await browser.post("/ui/do/instance/shutdown", form)
        assert seen.status == 403
        assert "not of a page of yours" in seen.words
    assert jobs(browser) == before


@pytest.mark.parametrize(
    "kind", ["application/json", "text/plain", "multipart/form-data"]
)
async def test_a_form_of_another_type_is_none(browser, kind):
    seen = await browser.post(
        "/ui/do/instance/shutdown", {"on": "web1"}, headers={"Content-Type": kind}
    )
    assert seen.status == 415


async def test_forms_have_an_end(browser):
    page = await browser.open("/ui/do/instance/add-tags?on=web1")
    long = await browser.post(
        "/ui/do/instance/add-tags", {**page.hidden, "tags": "x" * 70_000}
    )
    assert long.status == 413
    many = await browser.post(
        "/ui/do/instance/add-tags", {**page.hidden, "tags": ["x"] * 2000}
    )
    assert many.status == 400


@pytest.mark.parametrize(
    "path",
    [
        "/ui", "/ui/instance", "/ui/instance/web1", "/ui/do/instance/migrate?on=web1",
        "/ui/job", "/ui/sign-in", "/ui/nonsense", "/ui/do/disk?deed=attach&on=data1",
    ],
)  # fmt: skip
async def test_what_is_opened_changes_nothing_and_is_framed_by_nobody(browser, path):
    before = jobs(browser)
    seen = await browser.send("GET", path)
    assert jobs(browser) == before
    for name, value in HEADERS.items():
        assert seen.headers[name] == value
    assert seen.headers["Cache-Control"] == "no-store"
    policy = seen.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "http" not in policy
    assert " style=" not in seen.text
    assert " onclick" not in seen.text
    assert "<script>" not in seen.text


async def test_markup_is_text_wherever_it_stands(browser):
    for path in (
        f"/ui/instance?filter={SCRIPT}",
        f"/ui/instance/{SCRIPT.replace('/', '%2F')}",
        f"/ui/do/disk/attach?on={SCRIPT}",
        f"/ui/do/instance/{SCRIPT.replace('/', '%2F')}?on=web1",
        f"/ui/sign-in?next={SCRIPT}",
    ):
        seen = await browser.open(path)
        assert SCRIPT not in seen.text, path
    form = await browser.open("/ui/do/disk/rename?on=data1")
    for step in ("look", "do"):
        seen = await browser.fill(
            form, "/ui/do/disk/rename", step=step, new_name=f'"{SCRIPT}'
        )
        assert SCRIPT not in seen.text
    cluster = browser.door.cluster
    number = await cluster.submit("OP_INSTANCE_REMOVE", instance_name=SCRIPT)
    await cluster.finished(number)
    for path in ("/ui", "/ui/job", f"/ui/job/{number}"):
        seen = await browser.open(path)
        assert SCRIPT not in seen.text
        assert "alert(1)" in seen.words


@pytest.mark.parametrize(
    "leads",
    [
        "https://evil.example/", "//evil.example", "/2/info", "/ui\\@evil.example",
        "/uiX", "javascript:alert(1)", "/ui/\r\nX: y",
    ],
)  # fmt: skip
async def test_signing_in_leads_to_our_pages_alone(door, leads):
    browser = Browser(door)
    words = {"name": "root", "password": "secret", "next": leads}
    seen = await browser.post("/ui/sign-in", words)
    assert seen.status == 303
    assert seen.headers["Location"] == "/ui"


async def test_files_are_the_page_s_own_alone(door):
    browser = Browser(door)
    style = await browser.send("GET", "/ui/static/style.css")
    assert style.status == 200
    again = {"If-None-Match": style.headers["ETag"]}
    assert (
        await browser.send("GET", "/ui/static/style.css", headers=again)
    ).status == 304
    for path in ("line.js", "style.css?tag", "xterm-6.0.0/css/xterm.css"):
        kept = (await browser.send("GET", f"/ui/static/{path}")).headers[
            "Cache-Control"
        ]
        assert ("max-age" in kept) is (path != "line.js")
    for path in ("serving.py", "..%2Fserving.py", "..%2F..%2F..%2Fetc%2Fpasswd"):
        assert (await browser.send("GET", f"/ui/static/{path}")).status in (401, 404)


async def test_who_may_only_look_does_nothing_by_any_form(door):
    """Whatever he sends: each form is asked for by its address, and filled in."""
    browser = Browser(door)
    secret = (await browser.sign_in("eye")).hidden["secret"]
    before, config = jobs(browser), door.cluster.config
    for deed in DEEDS:
        ops = [deed.opcode("web1", {})]
        mark = sha256(json.encode(ops, order="sorted")).hexdigest()
        form = {"on": "web1", "secret": secret, "looked": mark}
        for step in ("look", "do"):
            path = f"/ui/do/{deed.kind}/{deed.word}"
            seen = await browser.post(path, form | {"step": step})
            assert seen.status in (200, 400, 403, 404), (path, seen.status)
    number = await door.cluster.submit("OP_TEST_DELAY", duration=0.0)
    for step in ({"step": "cancel"}, {"step": "priority", "priority": "-20"}):
        seen = await browser.post(f"/ui/job/{number}", {"secret": secret, **step})
        assert "this takes" in seen.words or seen.status == 403
    await door.cluster.finished(number)
    assert jobs(browser) == before + 1
    assert door.cluster.config is config


async def test_an_older_cookie_is_no_good_once_somebody_signed_in_anew(browser):
    old = browser.cookie
    await browser.post("/ui/sign-in", {"name": "eye", "password": "secret"})
    assert browser.cookie != old
    browser.cookie = old
    assert (await browser.send("GET", "/ui")).status == 303


async def test_pages_that_are_open_keep_nobody_from_asking(door, browser):
    headers = {"Cookie": f"{COOKIE}={browser.cookie}"}
    url = f"https://127.0.0.1:{door.port}/ui/events"
    get = partial(door._session.get, url, headers=headers)
    most = door.pages._door.gate.limits.under_way
    answers = await asyncio.gather(*(get() for _ in range(most + 8)))
    assert Counter(one.status for one in answers) == {200: most, 429: 8}
    assert (await browser.open("/ui/instance")).status == 200
    for one in answers:
        one.close()


async def test_a_thousand_wrong_passwords_keep_nobody_out_for_long(door, browser):
    """Of one address most are not even looked at; who is in already stays in."""
    began = time.process_time()
    wrong = {"name": "root", "password": "x" * 1000}
    guesses = (Browser(door).post("/ui/sign-in", wrong) for _ in range(1000))
    statuses = Counter(one.status for one in await asyncio.gather(*guesses))
    assert set(statuses) == {401, 429}
    assert statuses[401] <= door.pages._door.gate.limits.failures
    assert (await browser.open("/ui")).status == 200
    assert time.process_time() - began < 10
    door.forgive()


async def test_what_a_terminal_would_obey_is_no_part_of_a_command(browser):
    text = "name == '\x1b[201~\nreboot'"
    seen = await browser.open("/ui/instance?" + urlencode({"filter": f"not {text}"}))
    (line,) = re.findall("<code>(gnt-instance list[^<]*)</code>", seen.text)
    assert line.isprintable()
    odd = urlencode({"on": "\x1b]52;c;eA==\x07"})
    seen = await browser.open(f"/ui/do/instance/migrate?{odd}")
    (line,) = re.findall('<div class="command"><code>([^<]*)</code>', seen.text)
    assert line.isprintable()
