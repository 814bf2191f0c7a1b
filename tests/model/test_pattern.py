# SPDX-License-Identifier: BSD-2-Clause
"""Patterns of filters end, whatever they are and whatever they are tried on."""

import pytest

from moorage.client.qfilter import glob_pattern
from moorage.errors import BadInput
from moorage.model import pattern
from moorage.model.pattern import Pattern


@pytest.mark.parametrize(
    "text",
    [
        "^(a+)+$",
        "(a|aa)+$",
        "(a|a)*$",
        "(?:a*)*b",
        "(a+){10}$",
        "(?x)(a+) +$",
        "(a+)(?#c)+$",
        r"(a+)\1$",
        r"(?P<x>a+)(?P=x)$",
        ".*.*.*.*=",
        "a*a*a*a*a*b",
        "(a|a)" * 20 + "b",
        "(a|b)?" * 20 + "c",
        "a?" * 30 + "a" * 30,
        "(?:a|ab)(?:c|bcd)" * 10,
        "a" * 3000,
        "(",
        "a{99999999999999999999}",
    ],
)
def test_what_could_take_for_ever_is_refused(text) -> None:
    with pytest.raises(BadInput):
        Pattern(text)


@pytest.mark.parametrize(
    ("text", "found", "fits"),
    [
        ("^web", "web1", True),
        ("web|db", "mydb", True),
        ("|".join(f"web{number}" for number in range(200)), "web199", True),
        ("^https?://[a-z]+(-test)?$", "http://web-test", True),
        (r"^web\d+\.example\.com$", "web12.example.com", True),
        ("^(web|db)[0-9]+$", "db7", True),
        ("(?i)^WEB", "web1", True),
        (r"[)*+]", "a)b", True),
        (r"\)*", "))", True),
        (glob_pattern("w*b?"), "web1.example.com", True),
        (glob_pattern("a*b*c*"), "axbxcx", True),
        ("^web$", "web1", False),
    ],
)
def test_what_people_type(text, found, fits) -> None:
    assert Pattern(text).fits(found) is fits


@pytest.mark.parametrize(
    "text",
    [
        "a*a*a*b",
        "^a*a*a*a*b",
        ".*.*.*=",
        "a+$",
        "(a|a)" * 13 + "b",
        "a?" * 13 + "a" * 13 + "[b]",
    ],
)
def test_the_worst_that_is_taken_ends(text) -> None:
    asked = Pattern(text)
    for length in (50, 100):
        assert not asked.fits("a" * length + "!")
    with pytest.raises(BadInput, match="too long"):
        asked.fits("a" * 20_000)


def test_all_texts_together_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern, "SECONDS", 0.0)
    asked = Pattern("^web")
    with pytest.raises(BadInput, match="took 0 s"):
        _ = [asked.fits("web1") for _ in range(1000)]
