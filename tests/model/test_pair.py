"""Two disks never share a port or a minor, whoever has them."""

from typing import Any

import pytest

from moorage.errors import Conflict
from moorage.model import Change, Config, Disk, apply, pair_of, successor
from moorage.model.change import from_json, to_json
from moorage.testing.cluster import ClusterBuilder


def mirrored(uuid: str, *more: Any) -> Disk:
    name = f"{uuid}.disk0"
    parts = tuple(
        Disk(uuid=f"{uuid}-{part}", dev_type="plain", logical_id=("xenvg", f), size=8)
        for part, f in (("data", f"{name}_data"), ("meta", f"{name}_meta"))
    )
    return Disk(
        uuid=uuid,
        dev_type="drbd",
        logical_id=(*more, "secret"),
        size=8,
        nodes=tuple(more[:2]),
        children=parts,
    )


@pytest.fixture
def config() -> Config:
    kept = mirrored("kept", "node1", "node2", 11000, 0, 3)
    return apply(apply(Config(), ClusterBuilder().change()), Change((kept,)))


@pytest.mark.requirement("S3-49")
@pytest.mark.parametrize(
    ("other", "what"),
    [
        (("node1", "node3", 11001, 0, 0), "minor 0 of node node1"),
        (("node3", "node2", 11001, 0, 3), "minor 3 of node node2"),
        (("node3", "node1", 11000, 0, 1), "port 11000"),
    ],
)
def test_a_detached_disk_keeps_its_minors_and_port(
    config: Config, other: Any, what: str
) -> None:
    with pytest.raises(Conflict, match=what):
        apply(config, Change((mirrored("new", *other),)))


def test_what_a_disk_had_is_free_when_it_is_gone(config: Config) -> None:
    old = config.disk("kept")
    moved = successor(old, 1.0, logical_id=("node1", "node3", 11000, 0, 3, "secret"))
    config = apply(config, Change((moved,)))
    assert [len(config.mirrored_on(config.node(f"node{n}"))) for n in (1, 2, 3)] == [
        1,
        0,
        1,
    ]
    config = apply(config, Change((mirrored("b", "node3", "node2", 11001, 0, 3),)))
    config = apply(config, Change((), (moved,)))
    apply(config, Change((mirrored("c", "node1", "node3", 11000, 0, 3),)))


def test_a_node_that_keeps_a_copy_is_in_use(config: Config) -> None:
    with pytest.raises(Conflict, match="node node2 is still in use"):
        apply(config, Change((), (config.node("node2"),)))


def test_a_mirrored_disk_comes_back_from_a_journal_as_it_was(config: Config) -> None:
    disk = config.disk("kept")
    assert from_json(to_json(Change((disk,)))) == Change((disk,))
    pair = pair_of(disk)
    assert pair
    assert pair.logical_id == disk.logical_id
    assert (pair.minor("node2"), pair.other("node2")) == (3, "node1")
    assert disk.volume == "kept.disk0_data"
