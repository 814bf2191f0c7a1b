# SPDX-License-Identifier: BSD-2-Clause
"""Ganeti's query language."""

import pytest

from moorage.client.qfilter import of_words, parse
from moorage.errors import BadInput


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('name == "a"', ["==", "name", "a"]),
        ("name = 'a'", ["==", "name", "a"]),
        ("size>=1024", [">=", "size", 1024]),
        ("size < 1.5", ["<", "size", 1.5]),
        ("be/memory != -1", ["!=", "be/memory", -1]),
        ("disk.size/0 > 5", [">", "disk.size/0", 5]),
        ("drained", ["?", "drained"]),
        ("not drained", ["!", ["?", "drained"]]),
        ("a or b and not c", ["|", ["?", "a"], ["&", ["?", "b"], ["!", ["?", "c"]]]]),
        ("(a or b) and c", ["&", ["|", ["?", "a"], ["?", "b"]], ["?", "c"]]),
        ("a and b and c", ["&", ["?", "a"], ["?", "b"], ["?", "c"]]),
        ('"web" in tags', ["=[]", "tags", "web"]),
        ('"web" not in tags', ["!", ["=[]", "tags", "web"]]),
        ("name =~ m/^web[0-9]/", ["=~", "name", "^web[0-9]"]),
        ("name =~ m#a/b#is", ["=~", "name", "(?is)a/b"]),
        ("name !~ m/x/", ["!", ["=~", "name", "x"]]),
        ('name =* "we?*"', ["=~", "name", "^we..*(\\..*)?$"]),
        ('name !* "a.b"', ["!", ["=~", "name", "^a\\.b(\\..*)?$"]]),
        (r'name == "a\"b"', ["==", "name", 'a"b']),
        ('name == ""', ["==", "name", ""]),
    ],
)
def test_parse(text: str, found: list[object]) -> None:
    assert parse(text) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it ends where a field or a value should be"),
        ("name ==", "it ends where a value after == should be"),
        ("name == web", "'web' is not a value"),
        ("(a", "a parenthesis is not closed"),
        ("a b", "'b' stands where the filter should end"),
        ('"a"', "must be followed by: in FIELD"),
        ('"a" in "b"', "'b' is not a field"),
        ("name =~ m/(/", "the regular expression is wrong"),
        ('name =~ "x"', "takes m/.../"),
        ("name & x", "is not understood"),
        (") a", "stands where a field should"),
    ],
)
def test_what_is_wrong_is_said(text: str, why: str) -> None:
    with pytest.raises(BadInput) as found:
        parse(text)
    assert why in found.value.message


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], None),
        (["a"], ["|", ["==", "name", "a"]]),
        (["a", "b"], ["|", ["==", "name", "a"], ["==", "name", "b"]]),
        (["web*"], ["|", ["=~", "name", "^web.*(\\..*)?$"]]),
        (['name == "a"'], ["==", "name", "a"]),
    ],
)
def test_operands(words: list[str], found: object) -> None:
    assert of_words(words, ("name",)) == found


def test_a_job_is_named_by_its_number() -> None:
    assert of_words(["12"], ("id",)) == ["|", ["==", "id", 12]]


def test_a_forced_filter_may_look_like_a_name() -> None:
    assert of_words(["drained"], ("name",), forced=True) == ["?", "drained"]
    with pytest.raises(BadInput, match="takes one filter, not 2"):
        of_words(["a", "b"], ("name",), forced=True)
