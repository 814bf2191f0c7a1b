# SPDX-License-Identifier: BSD-2-Clause
"""What is said to who mistypes a name, and that it costs no look at every name."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from moorage.errors import NotFound
from moorage.model import Config, Disk, Instance, Node, load
from moorage.testing.cluster import ClusterBuilder

MANY = 50_000
FEW_LOOKS = 10_000
"""What a look at every name would be far above."""
_LETTERS = "bcdfghjklmnpqrstvwxz"


def name(number: int) -> str:
    """Return one of 160,000 names without digits."""
    letters = []
    for _ in range(4):
        number, letter = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return f"mail-{''.join(letters)}.example.com"


class Counted:
    """An index that counts what is looked up, and that nobody can walk."""

    def __init__(self, index: Mapping[Any, Any]) -> None:
        self.index = index
        self.looks = 0

    def get(self, key: Any, default: Any = None) -> Any:
        self.looks += 1
        return self.index.get(key, default)

    def __getitem__(self, key: Any) -> Any:
        self.looks += 1
        return self.index[key]

    def __contains__(self, key: Any) -> bool:
        self.looks += 1
        return key in self.index


@pytest.fixture(scope="module")
def many() -> Config:
    builder = ClusterBuilder()
    for number in range(MANY):
        builder.instance(name(number), "node1")
    return load(7, builder.change().put)


def hint(config: Config, cls: type[Any], word: str) -> str:
    with pytest.raises(NotFound) as caught:
        config.get(cls, word)
    return caught.value.hint


@pytest.mark.parametrize(
    "word",
    [
        "mali-bbbb.example.com",
        "mail-bbbb.exmple.com",
        "mail-bbbb.examplee.com",
        "mail-bbbb.examp1e.com",
        "mail_bbbb.example.com",
        "Mial-bbbb.Example.com",
    ],
)
def test_a_slip_among_fifty_thousand_names_costs_few_looks(
    many: Config, word: str
) -> None:
    names, objects = Counted(many.names), Counted(many.objects)
    seen = replace(many, names=names, objects=objects)  # type: ignore[arg-type]
    said = hint(seen, Instance, word)
    if "1" in word:  # another number, another machine
        assert said == "gnt-instance list"
    else:
        assert said == "did you mean mail-bbbb.example.com?"
    assert names.looks + objects.looks < FEW_LOOKS


def test_what_nobody_could_mean_costs_few_looks(many: Config) -> None:
    names, objects = Counted(many.names), Counted(many.objects)
    seen = replace(many, names=names, objects=objects)  # type: ignore[arg-type]
    assert hint(seen, Instance, "q" * 10_000) == "gnt-instance list"
    assert names.looks + objects.looks < FEW_LOOKS


def test_among_many_a_slip_may_mean_several(many: Config) -> None:
    said = hint(many, Instance, "mail-abbb.example.com").removesuffix("?")
    meant = said.removeprefix("did you mean ").split(" or ")
    assert len(meant) == 3
    assert all(one.endswith("bbb.example.com") for one in meant)


def test_among_few_what_is_roughly_alike_is_named() -> None:
    config = load(7, ClusterBuilder().disk("database-main").change().put)
    assert hint(config, Disk, "datebase_mian") == "did you mean database-main?"


def test_many_of_one_kind_leave_suggestions_of_another(many: Config) -> None:
    assert hint(many, Node, "ndoe1") == "did you mean node1?"
    assert hint(many, Node, "node4") == "gnt-node list"
