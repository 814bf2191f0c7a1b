# SPDX-License-Identifier: BSD-2-Clause
"""Changes: each is a compare-and-set, and each can be taken back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.errors import Conflict
from moorage.model import (
    KINDS,
    Change,
    Config,
    Disk,
    Entity,
    Instance,
    Nic,
    Node,
    NodeGroup,
    apply,
    load,
    successor,
)
from moorage.model.change import KIND_OF, decode, encode, from_json, to_json
from moorage.units import Mib

GROUP = NodeGroup(uuid="g", name="default")
NODES = tuple(
    Node(uuid=name, name=name, primary_ip="", secondary_ip="", group="g")
    for name in ("n1", "n2")
)
DISKS = tuple(
    Disk(uuid=f"d{n}", dev_type="ext", logical_id=("san", f"v{n}"), size=Mib(8))
    for n in range(4)
)
INSTANCES = tuple(
    Instance(uuid=name, name=name, primary_node="n1") for name in ("i1", "i2")
)
START = load(0, [GROUP, *NODES, *DISKS, *INSTANCES])


def plain(config: Config) -> dict[str, Any]:
    """Return a snapshot with its indexes as ordinary values."""
    return {
        "objects": dict(config.objects.items()),
        "kinds": {key: set(value) for key, value in config.kinds.items()},
        "names": {key: set(value) for key, value in config.names.items()},
        "owners": dict(config.owners.items()),
        "residents": {key: set(value) for key, value in config.residents.items()},
        "members": {key: set(value) for key, value in config.members.items()},
    }


def without_versions(config: Config) -> dict[str, Any]:
    """Return the objects without what only rises."""
    return {
        uuid: {
            name: value
            for name, value in encode(entity).items()
            if name not in ("serial_no", "mtime", "epoch")
        }
        for uuid, entity in config.objects.items()
    }


@st.composite
def moves(draw: st.DrawFn) -> list[tuple[str, ...]]:
    """Return things to do, some of them against the rules."""
    instance = st.sampled_from(["i1", "i2"])
    disk = st.sampled_from([disk.uuid for disk in DISKS])
    one = st.one_of(
        st.tuples(st.just("attach"), instance, disk),
        st.tuples(st.just("detach"), instance, disk),
        st.tuples(st.just("move"), instance, st.sampled_from(["n1", "n2", "nowhere"])),
        st.tuples(st.just("name"), disk, st.sampled_from(["a", "b"])),
        st.tuples(st.just("drop"), disk),
        st.tuples(st.just("add"), st.sampled_from(["x", "y"])),
    )
    return draw(st.lists(one, max_size=12))


def _attach(instance: Any, disk: str) -> Change:
    return Change((successor(instance, 1.0, disks=(*instance.disks, disk)),))


def _detach(instance: Any, disk: str) -> Change:
    left = tuple(one for one in instance.disks if one != disk)
    return Change((successor(instance, 1.0, disks=left),))


def _move(instance: Any, node: str) -> Change:
    return Change((successor(instance, 1.0, primary_node=node),))


def _name(disk: Any, name: str) -> Change:
    return Change((successor(disk, 1.0, name=name, epoch=disk.epoch + 1),))


def _drop(disk: Any) -> Change:
    return Change((), (disk,))


_VERBS: dict[str, Any] = {
    "attach": _attach,
    "detach": _detach,
    "move": _move,
    "name": _name,
    "drop": _drop,
}


def walked(todo: list[tuple[str, ...]]) -> list[tuple[Config, Change, Config]]:
    """Return each step that the rules allow: before, change, after."""
    config, steps = START, []
    for move in todo:
        known = config.objects
        verb, first, *rest = move
        gone = verb != "add" and first not in known
        if gone or (verb == "add" and first in known):
            continue
        change = (
            Change((replace(DISKS[0], uuid=first, name=first),))
            if verb == "add"
            else _VERBS[verb](known[first], *rest)
        )
        try:
            after = apply(config, change)
        except Conflict:
            continue
        steps.append((config, change, after))
        config = after
    return steps


@pytest.mark.requirement("S3-24")
@given(moves())
def test_indexes_are_those_of_a_fresh_load(todo: list[tuple[str, ...]]) -> None:
    for _, _, after in walked(todo):
        anew = load(after.serial_no, [*after.objects.values()])
        assert plain(after) == plain(anew)


@given(moves())
def test_a_disk_has_one_owner_and_no_reference_dangles(
    todo: list[tuple[str, ...]],
) -> None:
    for _, _, after in walked(todo):
        owned = [disk for one in after.all(Instance) for disk in one.disks]
        assert len(owned) == len(set(owned))
        assert set(owned) <= set(after.objects.keys())
        assert all(one.primary_node in after.objects for one in after.all(Instance))


@given(moves())
def test_back_is_the_inverse(todo: list[tuple[str, ...]]) -> None:
    for before, change, after in walked(todo):
        back = change.back(before.before(change))
        assert without_versions(apply(after, back)) == without_versions(before)


@given(moves())
def test_many_changes_are_taken_back_one_by_one(todo: list[tuple[str, ...]]) -> None:
    steps = walked(todo)
    config = steps[-1][2] if steps else START
    for before, change, _ in reversed(steps):
        back = change.back(before.before(change))
        config = apply(config, back.onto(config.before(back)))
    assert without_versions(config) == without_versions(START)


@given(moves())
def test_an_epoch_never_falls(todo: list[tuple[str, ...]]) -> None:
    for before, change, after in walked(todo):
        back = apply(after, change.back(before.before(change)))
        for disk in after.all(Disk):
            known = back.objects.get(disk.uuid)
            assert known is None or known.epoch >= disk.epoch  # type: ignore[attr-defined]


@given(moves())
def test_a_change_survives_the_journal(todo: list[tuple[str, ...]]) -> None:
    for _, change, _ in walked(todo):
        assert from_json(to_json(change)) == change


def test_a_version_that_was_overtaken_is_refused() -> None:
    disk = DISKS[0]
    after = apply(START, Change((successor(disk, 1.0, name="first"),)))
    with pytest.raises(Conflict, match="changed meanwhile"):
        apply(after, Change((successor(disk, 1.0, name="second"),)))
    with pytest.raises(Conflict, match="changed meanwhile"):
        apply(after, Change((), (disk,)))


@pytest.mark.requirement("S3-24")
def test_a_second_owner_is_refused_with_both_names() -> None:
    first = successor(INSTANCES[0], 1.0, disks=("d0",))
    second = successor(INSTANCES[1], 1.0, disks=("d0",))
    after = apply(START, Change((first,)))
    with pytest.raises(Conflict, match=r"attached to instance i1.*instance i2"):
        apply(after, Change((second,)))


def test_what_is_in_use_cannot_be_dropped() -> None:
    after = apply(START, Change((successor(INSTANCES[0], 1.0, disks=("d0",)),)))
    for entity in (DISKS[0], NODES[0], GROUP):
        with pytest.raises(Conflict, match="is still in use"):
            apply(after, Change((), (entity,)))


def test_a_falling_epoch_is_refused() -> None:
    risen = successor(DISKS[0], 1.0, epoch=3)
    after = apply(START, Change((risen,)))
    with pytest.raises(Conflict, match="epoch"):
        apply(after, Change((successor(risen, 1.0, epoch=2),)))


def test_a_name_stands_for_one_instance() -> None:
    twin = Instance(uuid="i3", name="i1", primary_node="n1")
    with pytest.raises(Conflict, match="'i1' is taken"):
        apply(START, Change((twin,)))


TEXT = st.text(max_size=8)
PARAMS = st.dictionaries(TEXT, st.one_of(TEXT, st.booleans(), st.integers()))
NICS = st.builds(Nic, uuid=TEXT, mac=TEXT, ip=st.none() | TEXT, name=st.none() | TEXT)
ENTITIES: st.SearchStrategy[Entity] = st.one_of(
    st.builds(
        Disk,
        uuid=TEXT,
        dev_type=TEXT,
        logical_id=st.tuples(TEXT, TEXT),
        size=st.integers(1, 2**40),
        name=st.none() | TEXT,
        params=PARAMS,
        quarantine=st.none() | TEXT,
        epoch=st.integers(0, 9),
    ),
    st.builds(
        Instance,
        uuid=TEXT,
        name=TEXT,
        primary_node=TEXT,
        disks=st.lists(TEXT).map(tuple),
        nics=st.lists(NICS, max_size=2).map(tuple),
        hvparams=PARAMS,
        network_port=st.none() | st.integers(1, 65535),
    ),
    st.builds(
        Node, uuid=TEXT, name=TEXT, primary_ip=TEXT, secondary_ip=TEXT, group=TEXT
    ),
)


@given(ENTITIES)
def test_every_object_survives_the_round_trip(entity: Entity) -> None:
    kind = KIND_OF[type(entity)]
    assert KINDS[kind] is type(entity)
    assert decode(kind, encode(entity)) == entity
    assert None not in encode(entity).values()
