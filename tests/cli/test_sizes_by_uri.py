# SPDX-License-Identifier: BSD-2-Clause
"""``gnt-cluster repair-disk-sizes`` measures a disk without a device by its URI."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.served import Served, served

DISK = "size=64M,provider=usersan,access=userspace"


@pytest.fixture
def sim() -> Iterator[Served]:
    with served(ClusterBuilder()) as found:
        yield found


async def resized(size: int, cluster: SimCluster) -> None:
    """Let the storage give its only volume another size."""
    (name,) = cluster.nodes.san.volumes
    cluster.nodes.san.volumes[name] |= {"size": size}


def test_a_disk_without_a_device_is_measured_by_its_uri(typed, sim: Served) -> None:
    def types(line: str) -> str:
        screen = typed(line, **sim.environ)
        assert screen.status == 0, screen.err
        return screen.out + screen.err

    recorded: Callable[[], str] = partial(
        types, "gnt-disk list --no-headers --units=m -o size root"
    )
    types(f"gnt-instance add -n node1 -t ext --disk 0:{DISK},name=root --no-nics web1")
    sim.inside(partial(resized, 96))
    assert types("gnt-cluster repair-disk-sizes") == "web1: disk/0: size is 96 MiB\n"
    assert recorded() == "96\n"
    types("gnt-instance shutdown web1")
    sim.inside(partial(resized, 48))
    told = types("gnt-cluster repair-disk-sizes web1")
    assert "disk/0 of web1 is left out: it is not attached on its node" in told
    assert recorded() == "96\n"
