# SPDX-License-Identifier: BSD-2-Clause
"""Who signs in, and how long that lasts."""

import pytest

from browsing import Browser
from moorage.api.rapi.passwords import sha256
from moorage.web import sessions


@pytest.fixture
def clock(door):
    """Return the time of the sessions, in a list of one."""
    now = [1000.0]
    door.pages.sessions._clock = lambda: now[0]
    return now


async def test_a_stranger_is_led_to_the_sign_in_and_back(door):
    browser = Browser(door)
    page = await browser.open("/ui/instance?filter=web2")
    assert "Sign in" in page.words
    words = {"name": "root", "password": "secret"}
    back = await browser.fill(page, "/ui/sign-in", **words)
    assert "web2" in back.words
    assert "web1" not in back.words


@pytest.mark.parametrize(
    ("name", "password"),
    [("root", "wrong"), ("nobody", "secret"), ("root", ""), ("", "x")],
)
async def test_who_is_nobody_gets_nothing(door, name, password):
    browser = Browser(door)
    page = await browser.sign_in(name, password)
    assert page.status == 401
    assert "Nobody is known by this name" in page.words
    assert not browser.cookie


async def test_a_token_signs_in_without_a_name(door):
    (door.directory / "tokens").write_text(f"probe {sha256('abc')} read\n")
    page = await Browser(door).sign_in("", "abc")
    assert "probe read" in page.words


async def test_guesses_are_counted_as_at_any_other_door(door):
    browser = Browser(door)
    for _ in range(20):
        await browser.sign_in("root", "wrong")
    page = await browser.sign_in("root", "secret")
    assert page.status == 429
    assert "Too many logins failed" in page.words
    assert (await door.ask("GET", "/2/info")).status == 429


async def test_the_cookie_is_kept_from_scripts_other_sites_and_plain_http(door):
    browser = Browser(door)
    page = await browser.open("/ui/sign-in")
    seen = await browser.post(
        "/ui/sign-in", {**page.hidden, "name": "root", "password": "secret"}
    )
    cookie = seen.headers["Set-Cookie"]
    assert cookie.startswith("__Host-")
    for word in ("HttpOnly", "Secure", "SameSite=Strict", "Path=/"):
        assert word in cookie
    assert browser.cookie not in seen.text


async def test_it_ends_without_use_and_with_its_time(browser, clock):
    await browser.sign_in()
    clock[0] += sessions.IDLE - 1
    assert (await browser.send("GET", "/ui")).status == 200
    clock[0] += sessions.IDLE
    assert (await browser.send("GET", "/ui")).status == 303
    await browser.sign_in()
    for _ in range(int(sessions.LASTS / sessions.IDLE) * 2):
        assert (await browser.send("GET", "/ui")).status == 200
        clock[0] += sessions.IDLE / 2
    assert (await browser.send("GET", "/ui")).status == 303


@pytest.mark.parametrize("path", ["/ui", "/ui/instance/removed", "/ui/nonsense"])
async def test_what_a_page_fetches_by_itself_is_no_use(browser, clock, path):
    """An open page that is live lasts no longer than one that nobody looks at.

    Nor does that of an object which has gone.
    """
    await browser.send("GET", "/ui")
    for _ in range(4):
        clock[0] += sessions.IDLE / 4
        await browser.send("GET", path, headers={"Sec-Fetch-Mode": "cors"})
    assert (await browser.send("GET", "/ui")).status == 303


async def test_who_is_in_already_is_led_on(browser):
    page = await browser.send("GET", "/ui/sign-in?next=/ui/disk")
    assert (page.status, page.headers["Location"]) == (303, "/ui/disk")


@pytest.mark.parametrize(
    "line", ["", "root other write\n", "root secret write,until=2000-01-01T00:00:00\n"]
)
async def test_it_ends_with_its_user_or_password(door, browser, line):
    assert (await browser.send("GET", "/ui")).status == 200
    door.users.write_text(line + "eye secret read\n")
    assert (await browser.send("GET", "/ui")).status == 303


async def test_another_role_counts_at_once(door, browser):
    door.users.write_text("root secret read\n")
    assert "root read" in (await browser.open("/ui")).words
    form = await browser.open("/ui/do/instance/remove?on=web1")
    assert "this takes write" in form.words


async def test_who_signs_out_is_out(browser):
    page, cookie = await browser.open("/ui"), browser.cookie
    await browser.fill(page, "/ui/sign-out")
    browser.cookie = cookie
    assert (await browser.send("GET", "/ui")).status == 303


async def test_a_cookie_opens_no_resource(browser):
    assert (await browser.send("GET", "/2/info")).status == 401


async def test_one_user_has_so_many_sessions_and_the_oldest_goes(door, browser):
    for _ in range(sessions.MOST_OF_ONE - 1):
        await Browser(door).sign_in()
    assert (await browser.send("GET", "/ui")).status == 200
    await Browser(door).sign_in()
    assert (await browser.send("GET", "/ui")).status == 303
