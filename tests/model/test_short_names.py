# SPDX-License-Identifier: BSD-2-Clause
"""Short names: what the index says is what a look at all names would."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.errors import Ambiguous, Conflict
from moorage.model import Change, Config, Instance, Node, apply, load
from moorage.model.hostnames import short_for
from moorage.testing.cluster import ClusterBuilder

WORDS = ("a", "aa", "a.b", "a.b.c", "a.bb", "a.bb.c", "aa.b", "b", "b.a", ".a", "a..b")
"""Many are the beginning of others, at a dot and elsewhere."""
NAMES = st.sampled_from(WORDS)
CHANGES = st.lists(st.tuples(st.integers(0, 5), st.none() | NAMES), max_size=20)


def instance(uuid: str, name: str) -> Instance:
    made = ClusterBuilder(1).instance(uuid, "node1").objects[uuid]
    return cast("Instance", replace(made, name=name))


def changed(config: Config, uuid: str, made: Any, name: str | None) -> Config:
    """Return the snapshot after an object got a name, or was dropped."""
    old = config.objects.get(uuid)
    if name is None:
        return apply(config, Change(drop=(old,))) if old else config
    new = replace(old, name=name, serial_no=old.serial_no + 1) if old else made
    try:
        return apply(config, Change(put=(new,)))
    except Conflict:
        return config


def found(config: Config, cls: type[Any], word: str) -> list[str]:
    """Return the names that a word stands for, as the index has it."""
    try:
        name = config.full_name(cls, word)
    except Ambiguous as error:
        return error.hint.partition(": ")[2].split(" or ")
    return [name] if config.knows(cls, name) else []


def scanned(config: Config, cls: type[Any], word: str) -> list[str]:
    names = [one.name for one in config.all(cls)]
    return [word.lower()] if word.lower() in names else short_for(word, names)


@given(CHANGES)
def test_instances_go_by_what_comes_before_a_dot(
    changes: Sequence[tuple[int, str | None]],
) -> None:
    config = load(1, ClusterBuilder(1).objects.values())
    for number, name in changes:
        uuid = f"i{number}"
        made = instance(uuid, name or "")
        config = changed(config, uuid, made, name)
        _check(config, Instance)
        _check(config, Node)


@given(CHANGES)
def test_nodes_go_by_what_comes_before_a_dot(
    changes: Sequence[tuple[int, str | None]],
) -> None:
    config = load(1, ClusterBuilder(1).objects.values())
    first = config.node("node1")
    for number, name in changes:
        made = replace(first, uuid=f"n{number}", name=name or "", serial_no=1)
        config = changed(config, f"n{number}", made, name)
        _check(config, Node)


def _check(config: Config, cls: type[Any]) -> None:
    for word in (*WORDS, "A", "A.B", "node1", "", "c"):
        assert found(config, cls, word) == scanned(config, cls, word)[:3]


def test_nothing_is_left_of_those_who_are_gone() -> None:
    config = load(1, ClusterBuilder(1).objects.values())
    made = instance("i", "a.b.c")
    later = apply(config, Change(put=(made,)))
    assert later.full_name(Instance, "a") == "a.b.c"
    with pytest.raises(Conflict):
        apply(later, Change(put=(replace(made, uuid="j"),)))
    assert apply(later, Change(drop=(made,))).shorts == config.shorts
