# SPDX-License-Identifier: BSD-2-Clause
"""``vg=`` and ``metavg=`` of a single disk: in add, modify and gnt-disk add."""

from collections.abc import Callable, Iterator

import pytest

from moorage.testing.cluster import ClusterBuilder
from moorage.testing.served import Served, served

BARE = "--no-install --no-nics"
META = "0:size=64M,metavg=none"


@pytest.fixture
def sim() -> Iterator[Served]:
    with served(ClusterBuilder()) as found:
        for node in ("node1", "node2"):
            devices = {"devices": {"/dev/sdz": 100000}}
            found.cluster.nodes.san.groups[f"{node} other"] = devices
        yield found


def test_a_disk_is_in_the_volume_groups_that_it_names(
    types: Callable[..., str], sim: Served
) -> None:
    types(f"gnt-instance add -t plain -n node1 {BARE} --disk 0:size=64M,vg=other web1")
    types("gnt-instance modify --disk add:size=64M,vg=other web1")
    types("gnt-disk add -t plain -n node1 -s 64M -D vg=other data1")
    both = "--disk 0:size=64M,vg=other,metavg=xenvg"
    types(f"gnt-instance add -t drbd -n node1:node2 {BARE} {both} web2")
    types("gnt-disk add -t drbd -n node1:node2 -s 64M -D metavg=other data2")
    volumes = [
        key.partition("-")[0] + key[-5:] for key in sim.cluster.nodes.san.logical
    ]
    assert sorted(volumes) == sorted(
        ["node1 other/uuiddisk0"] * 2
        + ["node1 other/uuiddisk1"]
        + [f"{node} other/uuid_data" for node in ("node1", "node2")]
        + [f"{node} xenvg/uuid_meta" for node in ("node1", "node2")]
        + [f"{node} other/uuid_meta" for node in ("node1", "node2")]
        + [f"{node} xenvg/uuid_data" for node in ("node1", "node2")]
    )


@pytest.mark.parametrize(
    "line",
    [
        f"gnt-instance add -t plain -n node1 {BARE} --disk 0:size=64M,vg=none web1",
        f"gnt-instance add -t drbd -n node1:node2 {BARE} --disk {META} web1",
        "gnt-disk add -t plain -n node1 -s 64M -D vg=none data1",
        "gnt-disk add -t drbd -n node1:node2 -s 64M -D metavg=none data1",
        "gnt-instance modify --disk add:size=64M,dev_type=plain,vg=none web0",
    ],
)
def test_a_volume_group_that_is_not_there_is_refused_at_once(
    types: Callable[..., str], sim: Served, line: str
) -> None:
    types(f"gnt-instance add -t diskless -n node1 {BARE} web0")
    refused = types(line, status=1)
    assert "node node1 has no volume group none" in refused
    assert "hint: on node1: vgcreate none /dev/" in refused
    assert "nothing was changed" in refused
    assert not sim.cluster.nodes.san.logical


def test_the_second_node_needs_them_too(types: Callable[..., str], sim: Served) -> None:
    del sim.cluster.nodes.san.groups["node2 other"]
    line = "gnt-disk add -t drbd -n node1:node2 -s 64M -D metavg=other data1"
    assert "node node2 has no volume group other" in types(line, status=1)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("gnt-disk modify -D vg=xenvg data1", "a disk's 'vg' cannot be changed"),
        (
            "gnt-disk add -t plain -n node1 -s 64M -D metavg=other x",
            "disk template 'plain' has no parameter 'metavg'",
        ),
        (
            "gnt-disk add -t sharedfile -s 64M -D vg=other x",
            "disk template 'sharedfile' has no parameter 'vg'",
        ),
        (
            "gnt-disk add -t plain -n node1 -s 64M -D host=a x",
            "disk template 'plain' has no parameter 'host'",
        ),
    ],
)
def test_what_a_template_has_no_use_for_is_refused(
    types: Callable[..., str], line: str, told: str
) -> None:
    types("gnt-disk add -t plain -n node1 -s 64M -D vg=other data1")
    assert told in types(line, status=1)
