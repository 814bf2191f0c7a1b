# SPDX-License-Identifier: BSD-2-Clause
"""What no commit can do to storage pools and their disks."""

import pytest

from moorage.errors import Conflict
from moorage.model import (
    Change,
    Cluster,
    Config,
    Disk,
    NodeGroup,
    StoragePool,
    apply,
    successor,
)


def disk(uuid: str, **fields: object) -> Disk:
    at = {"dev_type": "ext", "logical_id": ("san", uuid), "size": 64, "pool": "p"}
    return Disk(uuid=uuid, **(at | fields))  # type: ignore[arg-type]


def pool(name: str = "fast", uuid: str = "p", **fields: object) -> StoragePool:
    at = {"template": "ext", "provider": "san", "groups": ("g1",)}
    return StoragePool(uuid=uuid, name=name, **(at | fields))  # type: ignore[arg-type]


@pytest.fixture
def config() -> Config:
    groups = (NodeGroup(uuid="g1", name="one"), NodeGroup(uuid="g2", name="two"))
    return apply(Config(), Change((*groups, pool(), disk("d", group="g1"))))


@pytest.mark.requirement("S0-77")
def test_two_pools_have_two_names(config: Config) -> None:
    with pytest.raises(Conflict, match="the name 'fast' is taken"):
        apply(config, Change((pool(uuid="q"),)))


def test_the_disks_of_a_pool_are_known(config: Config) -> None:
    found = config.pool("fast")
    assert [one.uuid for one in config.disks_in(found)] == ["d"]
    assert config.pool_of(config.disk("d")) == found
    after = apply(config, Change((), (config.disk("d"),)))
    assert after.disks_in(found) == []


def test_the_cluster_has_a_map_of_its_pools(config: Config) -> None:
    """The layout, which no command writes; the rows are shown by ``gnt-cluster info``.

    See the tests of the command line.
    """
    cluster = Cluster(uuid="c", cluster_name="x", master_node="n", ctime=1.0)
    plain = pool("disks", "q", template="plain", provider=None, params={"vg": "ssd"})
    found = apply(config, Change((cluster, plain)))
    assert found.storage_pools() == {"disks": "plain", "fast": "san"}


@pytest.mark.requirement("S0-81")
def test_a_pool_with_a_disk_is_not_dropped(config: Config) -> None:
    with pytest.raises(Conflict, match="storage pool fast is still in use"):
        apply(config, Change((), (config.pool("fast"),)))


@pytest.mark.requirement("S0-82")
@pytest.mark.parametrize("group", ["g2"])
def test_a_disk_is_used_only_where_its_pool_is_connected(
    config: Config, group: str
) -> None:
    with pytest.raises(Conflict, match="fast is not connected"):
        apply(config, Change((disk("e", group=group),)))
    moved = successor(config.disk("d"), 1.0, group=group)
    with pytest.raises(Conflict, match="fast is not connected"):
        apply(config, Change((moved,)))
    apart = successor(config.pool("fast"), 1.0, groups=(group,))
    with pytest.raises(Conflict, match="fast is not connected"):
        apply(config, Change((apart,)))
    both = successor(config.pool("fast"), 1.0, groups=("g1", group))
    apply(config, Change((both, moved)))


def test_no_pool_refers_to_what_is_not_there(config: Config) -> None:
    for wrong in (disk("e", pool="gone"), pool("slow", uuid="q", groups=("gone",))):
        with pytest.raises(Conflict, match="refers to gone"):
            apply(config, Change((wrong,)))
    with pytest.raises(Conflict, match="still in use"):
        apply(config, Change((), (config.group("one"),)))
