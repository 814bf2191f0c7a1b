# SPDX-License-Identifier: BSD-2-Clause
"""The snapshot: how objects are found."""

import random

import pytest
from msgspec.structs import replace

from moorage.errors import Ambiguous, NotFound
from moorage.model import Change, Config, Disk, Node, apply, load, successor
from moorage.model.change import encode
from moorage.testing.cluster import ClusterBuilder
from moorage.units import Mib


def built(builder: ClusterBuilder) -> Config:
    return load(7, builder.change().put)


@pytest.fixture
def config() -> Config:
    return built(
        ClusterBuilder()
        .disk("a")
        .disk("b", "sharedfile", logical_id=("loop", "/shared/b"), params={})
        .disk("c")
        .disk("free", epoch=4)
        .instance("web", "node1", ("b", "a"))
        .instance("one", "node2", ("c",))
        .instance("none", "node3")
    )


def test_a_disk_has_a_serial_number_and_times(config: Config) -> None:
    disk = encode(config.disk("free"))
    assert {"serial_no", "ctime", "mtime"} <= disk.keys()


@pytest.mark.requirement("S3-11")
def test_disks_come_in_the_order_of_their_slots(config: Config) -> None:
    web = config.instance("web")
    assert [disk.uuid for disk in config.disks_of(web)] == ["b", "a"]
    assert [config.iv_name(disk) for disk in config.disks_of(web)] == [
        "disk/0",
        "disk/1",
    ]
    assert config.owner(config.disk("free")) is None
    assert [disk.uuid for disk in config.detached()] == ["free"]


def test_nodes_of_an_instance(config: Config) -> None:
    web = config.instance("web")
    assert [node.name for node in config.nodes_of(web)] == ["node1"]
    assert config.secondary_nodes(web) == []


@pytest.mark.requirement("S3-30", "S3-31", "S3-32")
@pytest.mark.parametrize(
    ("name", "template"), [("none", "diskless"), ("one", "ext"), ("web", "mixed")]
)
def test_the_template_of_an_instance_is_computed(
    config: Config, name: str, template: str
) -> None:
    assert config.template_of(config.instance(name)) == template


@pytest.mark.requirement("S3-46")
def test_a_name_that_fits_two_disks_is_refused_with_both_uuids() -> None:
    known = ClusterBuilder().disk("p").disk("q").change().put
    named = [replace(e, name="x") if isinstance(e, Disk) else e for e in known]
    with pytest.raises(Ambiguous, match="2 disks are named 'x'") as caught:
        load(1, named).disk("x")
    assert caught.value.hint == "say which: p or q"
    assert load(1, named).disk("q").uuid == "q"


def test_instance_and_name_mean_one_disk_of_several_with_the_name() -> None:
    builder = ClusterBuilder().disk("p").disk("q").disk("r").disk("s")
    known = builder.instance("web", disks=("p",)).instance("db", disks=("q", "s"))
    named = [
        replace(e, name="root") if isinstance(e, Disk) else e
        for e in known.change().put
    ]
    odd = [replace(e, name="web/root") if e.uuid == "s" else e for e in named]
    config = load(1, [replace(e, name="swap") if e.uuid == "s" else e for e in named])
    with pytest.raises(Ambiguous, match="3 disks are named 'root'") as caught:
        config.disk("root")
    assert caught.value.hint == "say which: db/root or r or web/root"
    assert (config.disk("web/root").uuid, config.disk("db/root").uuid) == ("p", "q")
    for unknown in ("web/swap", "nobody/root", "/root", "web/", "web/p"):
        with pytest.raises(NotFound):
            config.disk(unknown)
    assert load(1, odd).disk("web/root").uuid == "s"
    with pytest.raises(Ambiguous) as caught:
        load(1, named).disk("db/root")
    assert caught.value.hint == "say which: q or s"


def test_an_unknown_name_gets_close_ones(config: Config) -> None:
    with pytest.raises(NotFound, match="instance 'wbe' is not known") as caught:
        config.instance("wbe")
    assert "web" in caught.value.hint
    with pytest.raises(NotFound, match="node group 'x' is not known") as caught:
        config.group("x")
    assert caught.value.hint == "gnt-group list"


def test_objects_are_listed_by_name_whatever_changes() -> None:
    """Lists are kept from one snapshot to the next, and agree with ones made anew."""
    chance = random.Random(7)  # noqa: S311 - names, no secrets
    config = built(ClusterBuilder())
    for number in range(300):
        disks = config.named(Disk)
        name = chance.choice([None, f"d{chance.randrange(50)}-{number}"])
        if disks and chance.random() < 0.6:
            old = chance.choice(disks)
            gone = chance.random() < 0.4
            put = () if gone else (successor(old, 0.0, name=name),)
            change = Change(put, (old,) if gone else ())
        else:
            fields = {
                "dev_type": "ext",
                "size": Mib(1),
                "logical_id": ("san", f"v{number}"),
            }
            change = Change((Disk(uuid=f"u{number}", name=name, **fields),))
        config = apply(config, change)
        anew = load(1, config.objects.values())
        assert config.named(Disk) == anew.named(Disk)
        assert config.named(Node) == anew.named(Node)
