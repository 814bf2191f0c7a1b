# SPDX-License-Identifier: BSD-2-Clause
"""How a filter is completed as it is typed."""

import json
from urllib.parse import urlencode

import pytest

from moorage.client import qfilter
from moorage.web.words import place


async def offered(browser, text, kind="instance"):
    """Return what is offered behind a text."""
    seen = await browser.open(f"/ui/words/{kind}?{urlencode({'text': text})}")
    assert seen.status == 200
    return [one["value"] for one in seen.text]


@pytest.mark.parametrize(
    ("text", "wants", "begun"),
    [
        ("", "field", ""),
        ("sta", "field", "sta"),
        ("not dra", "field", "dra"),
        ("status ", "operator", ""),
        ("status =", "value", ""),
        ('status == "run', "value", "run"),
        ('status == "running" ', "joint", ""),
        ('status == "running" or (pnode', "field", "pnode"),
        ('"gold" ', "in", ""),
        ('"gold" in ', "list", ""),
        ('"gold" not in ta', "list", "ta"),
        ("drained and ", "field", ""),
        ("== == ==", "nothing", ""),
    ],
)
def test_where_a_filter_goes_on(text, wants, begun):
    found = place(text)
    assert (found.wants, found.begun) == (wants, begun)
    assert text == found.before + text[len(found.before) :]


async def test_fields_operators_states_and_names_are_offered(browser):
    assert "status" in await offered(browser, "sta")
    assert "status == " in await offered(browser, "status ")
    assert await offered(browser, 'status == "run') == ['status == "running"']
    assert 'pnode == "node2"' in await offered(browser, "pnode ==  ".strip() + " ")
    assert 'status == "running" and ' in await offered(browser, 'status == "running"')
    assert await offered(browser, '"gold" in tag') == ['"gold" in tags']
    assert "web2" in await offered(browser, "we")
    assert "be/maxmem < " in await offered(browser, "be/maxmem ")
    for text in await offered(browser, 'status == "ADMIN'):
        assert qfilter.parse(text)


@pytest.mark.parametrize("text", ["<script>", '"' * 50, "(" * 900, "\x1b[31m", "="])
async def test_what_is_no_filter_is_completed_by_nothing_that_breaks(browser, text):
    for one in await offered(browser, text):
        assert one.startswith(text[:5])


async def test_who_may_not_look_is_told_no_names(browser):
    browser.cookie = ""
    assert (await browser.send("GET", "/ui/words/instance?text=w")).status == 401
    await browser.sign_in("guest")
    seen = await browser.send("GET", "/ui/words/instance?text=w")
    assert seen.status == 403
    assert "web1" not in json.dumps(seen.text)
