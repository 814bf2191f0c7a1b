# SPDX-License-Identifier: BSD-2-Clause
"""Two storage pools of one provider are two rooms: asked, listed and filled apart."""

import json
from collections.abc import Callable, Iterator

import pytest

from moorage.storage.templates import template_named
from moorage.testing.cluster import ClusterBuilder, SimCluster
from moorage.testing.machine import provider
from moorage.testing.served import Served, served

ROOMY = provider("roomy", "capacity", tier="ssd or hdd")


async def furnished(cluster: SimCluster) -> None:
    """Install a provider with 1000 MiB of ssd, 300 of them free, and more of hdd."""
    for node in cluster.nodes.nodes.values():
        node.machine.installed = [*node.machine.installed, ROOMY]
    cluster.nodes.san.capacity |= {
        "roomy/ssd": "1000 300\n",
        "roomy/hdd": "9000 8000\n",
        "roomy": "512 64\n",
    }


@pytest.fixture
def sim() -> Iterator[Served]:
    with served(ClusterBuilder()) as found:
        found.inside(furnished)
        yield found


@pytest.fixture
def types(typed, sim: Served) -> Callable[..., str]:
    def types_(line: str, status: int = 0) -> str:
        screen = typed(line, **sim.environ)
        assert screen.status == status, screen.err
        return screen.out if status == 0 else screen.err

    for tier, pool in (("ssd", "fast"), ("hdd", "slow")):
        types_(f"gnt-storage pool add -p roomy -D tier={tier} -g default {pool}")
    types_("gnt-storage pool add -p roomy -g default bare")
    return types_


def test_each_pool_tells_its_own_room(types: Callable[..., str], sim: Served) -> None:
    shown = types(
        "gnt-storage pool list --no-headers --separator=: --units=m -o name,total,free"
    )
    assert shown.split() == ["bare:512:64", "fast:1000:300", "slow:9000:8000"]
    told = json.loads(types("gnt-storage pool list --json -o name,rooms"))
    rooms = {one["name"]: one["rooms"] for one in told}
    assert rooms["fast"] == {f"node{at}": [300, 1000] for at in (1, 2, 3)}
    assert rooms["bare"]["node2"] == [64, 512]
    assert "fast (roomy)\n" in types("gnt-storage diagnose fast")
    assert "valid (roomy/fast) [300M free of 1000M]" in types(
        "gnt-storage diagnose fast"
    )

    async def asked(cluster: SimCluster) -> set[tuple[str | None, ...]]:
        ran = cluster.nodes.nodes["node1"].machine.ran
        names = ("EXTP_PROVIDER", "EXTP_TIER", "VOL_POOL", "EXTP_POOL")
        return {
            tuple(one.env.get(name) for name in names)
            for one in ran
            if one.argv[0].endswith("/capacity")
        }

    assert sim.inside(asked) == {
        ("roomy", None, None, None),
        ("roomy", "ssd", "fast", "fast"),
        ("roomy", "hdd", "slow", "slow"),
    }


def test_a_disk_goes_where_its_pool_has_room(types: Callable[..., str]) -> None:
    told = types("gnt-disk add --pool fast -s 400M data1", status=1)
    assert "unit ext/roomy/fast (asked 400 MiB, free 300 MiB)" in told
    types("gnt-disk add --pool slow -s 400M data1")
    told = types("gnt-disk add --pool bare -s 100M data2", status=1)
    assert "unit ext/roomy (asked 100 MiB, free 64 MiB)" in told
    told = types("gnt-disk move --pool fast data1", status=1)
    assert "unit ext/roomy/fast" in told
    shown = types("gnt-disk info data1")
    assert "Storage unit: ext/roomy/slow\n" in shown


def test_an_instance_is_placed_by_the_room_of_its_pools(
    types: Callable[..., str],
) -> None:
    add = "gnt-instance add -I hail --no-install --no-nics"
    told = types(f"{add} --disk 0:size=400M,pool=fast web1", status=1)
    assert "ext/roomy/fast" in told
    types(
        f"{add} --disk 0:size=400M,pool=slow --disk 1:size=200M,pool=fast,name=f web1"
    )
    told = types("gnt-disk grow f 400M", status=1)
    assert "ext/roomy/fast" in told
    types("gnt-cluster verify")


def test_pools_of_the_same_presets_are_one_room(types: Callable[..., str]) -> None:
    types("gnt-storage pool add -p roomy -D tier=ssd -g default swift")
    shown = types(
        "gnt-storage pool list --no-headers --separator=: --units=m -o name,total,free"
    )
    assert "swift:1000:300" in shown.split()
    told = types("gnt-node list --no-headers -o storage node1")
    assert told.count("roomy/fast") == 1
    assert "swift" not in told
    types("gnt-disk add --pool swift -s 200M data1")
    assert "Storage unit: ext/roomy/fast\n" in types("gnt-disk info data1")
    told = types(
        "gnt-instance add -I hail --no-install --no-nics "
        "--disk 0:size=200M,pool=fast --disk 1:size=200M,pool=swift web1",
        status=1,
    )
    assert "ext/roomy/fast" in told


@pytest.mark.parametrize(
    ("template", "one", "other"),
    [
        ("plain", {"vg": "fast"}, {"vg": "slow"}),
        ("sharedfile", {"directory": "/srv/a"}, {"directory": "/srv/b"}),
        ("rbd", {"pool": "fast"}, {"pool": "slow"}),
        ("rbd", {"pool": "rbd"}, {"pool": "rbd", "conf": "/etc/ceph/east.conf"}),
        ("gluster", {"volume": "gv0"}, {"volume": "gv1"}),
    ],
)
def test_what_says_where_a_disk_is_says_which_room(
    template: str, one: dict[str, str], other: dict[str, str]
) -> None:
    kind = template_named(template)
    assert kind.unit_key({}, one) != kind.unit_key({}, other)
